// Dropout with recomputed tapes, and convolutions.
#include "zoo/property.hpp"

using Recomputed = zoo::List<zoo::Recomputed, zoo::Convolution, zoo::Shared>;

TEST(Zoo, recomputed_train_to_the_same_bits_in_every_way) { zoo::expect_same_trainings(Recomputed{}); }
TEST(Zoo, recomputed_infer_the_same_bits_in_every_way) { zoo::expect_same_inferences(Recomputed{}); }
