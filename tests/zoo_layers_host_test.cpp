// Every layer that the other models lack.
#include "zoo/property.hpp"

using Layers = zoo::List<zoo::TokenByToken, zoo::Pooled, zoo::Image, zoo::Forecast, zoo::Gated, zoo::Reduced>;

TEST(Zoo, layers_train_to_the_same_bits_in_every_way) { zoo::expect_same_trainings(Layers{}); }
TEST(Zoo, layers_infer_the_same_bits_in_every_way) { zoo::expect_same_inferences(Layers{}); }
