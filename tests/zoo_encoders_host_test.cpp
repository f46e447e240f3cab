// Attention, encoders, and a layer of one's own.
#include "zoo/property.hpp"

using Encoders = zoo::List<zoo::Attention, zoo::EncoderAfter, zoo::Repeated, zoo::OwnLayer>;

TEST(Zoo, encoders_train_to_the_same_bits_in_every_way) { zoo::expect_same_trainings(Encoders{}); }
TEST(Zoo, encoders_infer_the_same_bits_in_every_way) { zoo::expect_same_inferences(Encoders{}); }
