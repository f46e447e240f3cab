// expect: the_file_is_refused
#include <attune/attune.hpp>

using Model = attune::Linear<attune::LinearShape{1, 2, 3}>;
constexpr char kFile[] = "\x02\0\0\0\0\0\0\0{}";
constexpr auto kParameters =
    attune::from_safetensors<attune::PyTorchModule<Model>, Model::Parameters>({kFile, sizeof kFile - 1});
