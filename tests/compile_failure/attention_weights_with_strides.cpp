// expect: attune::scaled_dot_product_attention: weights are a strided view
#include <attune/attune.hpp>

using Keys = attune::Tensor<float, 4, 8>;

void use(const Keys& query, const Keys& key, const Keys& value, Keys& context, attune::Tensor<float, 4, 16>& weights) {
  attune::scaled_dot_product_attention(query, key, value, context, attune::view(weights).columns<4>(0), 1.0f);
}
