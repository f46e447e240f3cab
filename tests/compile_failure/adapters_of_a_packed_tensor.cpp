// expect: attune::PeftNames: PEFT cannot store factors for parts of a packed tensor (in_proj_weight, qkv)
// kilobytes: 11  the way from the writer to the names
// errors by gcc: 2  the parts would share one name, too
// errors by clang: 3  the parts would share one name, too
#include <attune/attune.hpp>

constexpr attune::AttentionShape kShape{.seq_len = 2, .d_model = 4, .num_heads = 2};
using Attention = attune::MultiHeadAttention<kShape>;
constexpr Attention::Parameters kConstants{};
using Model = attune::Adapted<Attention, kConstants, attune::LowRank{.rank = 1}>;
attune::Status send(const Model::Parameters& parameters) {
  return attune::write_safetensors<attune::PeftNames<attune::PyTorchModule<Model>>>(
      parameters, [](const char*, std::size_t) {});
}
