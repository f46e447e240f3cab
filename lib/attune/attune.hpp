// attune: multi-head attention that trains where there is no heap.
#pragma once

#include <attune/activation.hpp>
#include <attune/dropout.hpp>
#include <attune/feed_forward.hpp>
#include <attune/gradients.hpp>
#include <attune/initialise.hpp>
#include <attune/layer_norm.hpp>
#include <attune/linear.hpp>
#include <attune/lockstep.hpp>
#include <attune/loss.hpp>
#include <attune/mask.hpp>
#include <attune/memory.hpp>
#include <attune/multi_head_attention.hpp>
#include <attune/optimizer.hpp>
#include <attune/parameters.hpp>
#include <attune/plan.hpp>
#include <attune/rng.hpp>
#include <attune/scaled_dot_product_attention.hpp>
#include <attune/schedule.hpp>
#include <attune/self_test.hpp>
#include <attune/softmax.hpp>
#include <attune/status.hpp>
#include <attune/tensor.hpp>
#include <attune/trainer.hpp>
#include <attune/update_in_backward.hpp>
