// expect: attune::kInFlash: this tensor has the first type and needs the second; name it in WEIGHTS or FLOATS
// expect by gcc: TensorOfAnotherType<attune::v1_0_unfused::detail::TensorNamed<attune::v1_0_unfused::detail::Name<9>{"1.weight"}>, attune::v1_0_unfused::ElementType::kF32, attune::v1_0_unfused::ElementType::kF16>
#include <attune/attune.hpp>

using Model = attune::Sequential<attune::Linear<attune::LinearShape{1, 2, 2, false}>,
                                 attune::Linear<attune::LinearShape{1, 2, 2, false}>>;
extern "C" const float model_file[96];
struct File {
  using Scalar = float;
  static constexpr char kHeader[] =
      R"({"1.weight":{"dtype":"F32","shape":[2,2],"data_offsets":[0,16]},"0.weight":{"dtype":"F16","shape":[2,2],"data_offsets":[16,24]}})";
  static constexpr std::size_t kSize = 8 + sizeof kHeader - 1 + 24;
  static constexpr const float* kData = model_file;
};
constexpr auto& kWeights = attune::kInFlash<attune::PyTorchModule<Model>, File>;
