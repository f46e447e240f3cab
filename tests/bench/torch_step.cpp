// PyTorch's side of a training step without Python: torch_models.py in libtorch's C++, for against_models.py,
// which has built the model and says its shape and where its parameters and buffers stand.
#include <torch/torch.h>

#include <cmath>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace {

using torch::Tensor;

enum Kind { kClassifier, kLanguage, kAttention };

struct Shape {
  int kind, seq_len, num_layers, num_heads, num_kv_heads, d_head, norm_before;
};

class Model {
 public:
  explicit Model(const Shape& of) : shape(of) {}

  Tensor loss(const Tensor& x, const Tensor& target) {
    const Tensor y = forward(x);
    if (shape.kind == kAttention) return torch::mse_loss(y, target);
    return torch::cross_entropy_loss(y.flatten(0, 1), target.flatten());
  }

  Shape shape;
  std::map<std::string, Tensor> tensors;

 private:
  Tensor find(const std::string& name) const {
    const auto found = tensors.find(name);
    return found == tensors.end() ? Tensor() : found->second;
  }
  Tensor linear(const std::string& name, const Tensor& x) const {
    const Tensor bias = find(name + ".bias");
    const Tensor weight = find(name + ".weight");
    return bias.defined() ? torch::linear(x, weight, bias) : torch::linear(x, weight);
  }
  Tensor norm(const std::string& name, const Tensor& x) const {
    const Tensor weight = find(name + ".weight"), bias = find(name + ".bias");
    if (bias.defined()) return torch::layer_norm(x, weight.sizes(), weight, bias);
    return x * torch::rsqrt(x.pow(2).mean(-1, true) + 1e-5) * weight;
  }
  Tensor rotated(const std::string& name, const Tensor& x) const {
    const auto halves = x.chunk(2, -1);
    return x * find(name + "cosine") + torch::cat({-halves[1], halves[0]}, -1) * find(name + "sine");
  }
  Tensor attention(const std::string& name, const Tensor& x) const {
    const auto batch = x.size(0), n = x.size(1);
    const int heads = shape.num_heads, kv_heads = shape.num_kv_heads, width = shape.d_head;
    const auto every =
        linear(name + "packed", x).view({batch, n, heads + 2 * kv_heads, width}).transpose(1, 2);
    const auto parts = every.split_with_sizes({heads, kv_heads, kv_heads}, 1);
    Tensor q = parts[0], k = parts[1];
    if (shape.kind == kLanguage) q = rotated(name, q), k = rotated(name, k);
    q = (q * std::pow(width, -0.5)).reshape({batch * kv_heads, heads / kv_heads * n, width});
    k = k.reshape({batch * kv_heads, n, width});
    const Tensor v = parts[2].reshape({batch * kv_heads, n, width});
    const Tensor scores = shape.kind == kLanguage ? torch::baddbmm(find(name + "mask"), q, k.transpose(1, 2))
                                                  : torch::bmm(q, k.transpose(1, 2));
    const Tensor context = torch::bmm(scores.softmax(-1), v).view({batch, heads, n, width});
    return linear(name + "output", context.transpose(1, 2).reshape({batch, n, heads * width}));
  }
  Tensor network(const std::string& name, const Tensor& x) const {
    if (shape.kind != kLanguage) return linear(name + "down", torch::gelu(linear(name + "up", x)));
    const auto halves = linear(name + "up", x).chunk(2, -1);
    return linear(name + "down", torch::silu(halves[0]) * halves[1]);
  }
  Tensor block(const std::string& name, Tensor x) const {
    if (shape.norm_before) {
      x = x + attention(name + "attention.", norm(name + "norm1", x));
      return x + network(name, norm(name + "norm2", x));
    }
    x = norm(name + "norm1", x + attention(name + "attention.", x));
    return norm(name + "norm2", x + network(name, x));
  }
  Tensor forward(Tensor x) const {
    if (shape.kind == kAttention) return attention("attention.", x);
    const bool language = shape.kind == kLanguage;
    x = language ? torch::embedding(find("embedding.weight"), x) : linear("embed", x) + find("positions");
    for (int i = 0; i < shape.num_layers; ++i) x = block("layers." + std::to_string(i) + ".", x);
    if (language) return torch::linear(norm("norm", x), find("embedding.weight"));
    return linear("head", x.mean(1)).unsqueeze(1);
  }
};

std::unique_ptr<Model> model;
std::unique_ptr<torch::optim::AdamW> optimizer;
Tensor x, target;

Tensor copy_of(const void* data, const long* sizes, int dimensions, bool ids) {
  const std::vector<int64_t> of(sizes, sizes + dimensions);
  return torch::from_blob(const_cast<void*>(data), of, ids ? torch::kInt64 : torch::kFloat32).clone();
}

}  // namespace

extern "C" {

void torch_step_begin(int kind, int seq_len, int num_layers, int num_heads, int num_kv_heads, int d_head,
                      int norm_before) {
  model =
      std::make_unique<Model>(Shape{kind, seq_len, num_layers, num_heads, num_kv_heads, d_head, norm_before});
}
/// A parameter, or a buffer.
void torch_step_tensor(const char* name, const float* data, const long* sizes, int dimensions, int trained) {
  model->tensors[name] = copy_of(data, sizes, dimensions, false).requires_grad_(trained != 0);
}
void torch_step_input(const void* data, const long* sizes, int dimensions, int ids) {
  x = copy_of(data, sizes, dimensions, ids != 0);
}
void torch_step_target(const void* data, const long* sizes, int dimensions, int ids) {
  target = copy_of(data, sizes, dimensions, ids != 0);
}
/// After the above.
void torch_step_prepare() {
  std::vector<Tensor> trained;
  for (const auto& [name, tensor] : model->tensors) {
    if (tensor.requires_grad()) trained.push_back(tensor);
  }
  optimizer = std::make_unique<torch::optim::AdamW>(trained, torch::optim::AdamWOptions(1e-3));
}
/// The loss of the last of so many steps.
float torch_step(long calls) {
  Tensor loss;
  for (long i = 0; i < calls; ++i) {
    for (Tensor& tensor : optimizer->param_groups()[0].params()) tensor.mutable_grad() = Tensor();
    loss = model->loss(x, target);
    loss.backward();
    optimizer->step();
  }
  return loss.item<float>();
}
}
