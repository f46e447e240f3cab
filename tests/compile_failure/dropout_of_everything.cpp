// expect: attune::Dropout: probability must be in [0, 1); kept values are divided by 1 - probability
#include <attune/layers/dropout.hpp>

attune::Dropout<attune::DropoutShape{.rows = 2, .d_model = 4, .probability = 1.0}>::Input x;
