// What is trained beside constants.
#include "zoo/property.hpp"

using Adapted = zoo::List<zoo::Adapters, zoo::AdaptedLayers, zoo::Int8Base, zoo::PackedBase>;

TEST(Zoo, adapted_train_to_the_same_bits_in_every_way) { zoo::expect_same_trainings(Adapted{}); }
TEST(Zoo, adapted_infer_the_same_bits_in_every_way) { zoo::expect_same_inferences(Adapted{}); }
