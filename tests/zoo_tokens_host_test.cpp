// Models of token ids.
#include "zoo/property.hpp"

using Tokens = zoo::List<zoo::Llama, zoo::Translator, zoo::Words>;

TEST(Zoo, tokens_train_to_the_same_bits_in_every_way) { zoo::expect_same_trainings(Tokens{}); }
TEST(Zoo, tokens_infer_the_same_bits_in_every_way) { zoo::expect_same_inferences(Tokens{}); }
