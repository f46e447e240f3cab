// expect: attune: a layer of the model does not say how it runs token by token: give it WithLength<tokens>
#include <attune/attune.hpp>

struct Own {
  using Scalar = float;
  using Input = attune::Tensor<float, 8, 4>;
  using Output = Input;
  using Parameters = attune::NoParameters;
  struct Tape {};
  struct Scratch {};
  struct InferenceScratch {};
  static void forward(const Parameters&, attune::ConstView<Input>, attune::View<Output>, InferenceScratch&);
  static void forward(const Parameters&, attune::ConstView<Input>, attune::View<Output>, Tape&, Scratch&);
  static void backward(const Parameters&, attune::ConstView<Input>, Tape&, attune::ConstView<Output>, auto&&,
                       Parameters&, Scratch&);
};
attune::KeyValueCache<attune::Sequential<Own>, attune::CacheShape{.capacity = 8}>::Scratch<> scratch;
