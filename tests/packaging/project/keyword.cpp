// The one file that compiles the model.
#include "keyword.hpp"

#include <attune/attune.hpp>

using KeywordModel = attune::Linear<attune::LinearShape{.rows = 1, .d_in = 6, .d_out = 3}>;
static attune::Trainer<KeywordModel, attune::CrossEntropy<>> keyword_trainer;

ATTUNE_MODEL_UNIT(Keyword, keyword_trainer);
