// expect: attune::KeyPaddingMask: the mask and the layer have different kv_len
#include <attune/attune.hpp>

using Mean = attune::Pooling<attune::PoolingShape{.seq_len = 4, .d_model = 8}>;

void use(const Mean::Input& x, Mean::Output& y, Mean::InferenceScratch& scratch) {
  attune::infer<Mean>({}, x, y, scratch, attune::KeyPaddingMask<5>{});
}
