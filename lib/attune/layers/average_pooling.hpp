// AvgPool1d and AvgPool2d: window_pooling.hpp.
#pragma once

#include <attune/layers/window_pooling.hpp>
