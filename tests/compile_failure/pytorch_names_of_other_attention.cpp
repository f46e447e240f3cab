// expect: attune::PyTorchModule: nn.MultiheadAttention needs num_heads * d_k, num_heads * d_v and d_out equal
// kilobytes: 15  the way from the call to the layer
// to d_model
#include <attune/attune.hpp>

using Model =
    attune::MultiHeadAttention<attune::AttentionShape{.seq_len = 4, .d_model = 8, .num_heads = 2, .d_v = 3}>;
static_assert(attune::SafetensorsLayout<attune::PyTorchModule<Model>>::kTensors == 4);
