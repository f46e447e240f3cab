// expect: attune::Pooling: the KeyPaddingMask is for another number of tokens
#include <attune/attune.hpp>

using Mean = attune::Pooling<attune::PoolingShape{.seq_len = 4, .d_model = 8}>;

void use(const Mean::Input& x, Mean::Output& y, Mean::InferenceScratch& scratch) {
  Mean::forward({}, x, y, scratch, attune::KeyPaddingMask<5>{});
}
