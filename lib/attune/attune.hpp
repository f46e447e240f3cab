// attune: multi-head attention that trains where there is no heap.
#pragma once

#include <attune/core/attention_mask.hpp>
#include <attune/core/checked_view.hpp>
#include <attune/core/fingerprint.hpp>
#include <attune/core/gradient_rows.hpp>
#include <attune/core/gradients.hpp>
#include <attune/core/ids.hpp>
#include <attune/core/inference_in_pieces.hpp>
#include <attune/core/initialise.hpp>
#include <attune/core/layer.hpp>
#include <attune/core/low_rank.hpp>
#include <attune/core/memory.hpp>
#include <attune/core/narrow_weights.hpp>
#include <attune/core/parameters.hpp>
#include <attune/core/pieces.hpp>
#include <attune/core/quantise.hpp>
#include <attune/core/rng.hpp>
#include <attune/core/roles.hpp>
#include <attune/core/sine_table.hpp>
#include <attune/core/status.hpp>
#include <attune/core/tensor.hpp>
#include <attune/core/weights.hpp>

#include <attune/layers/activation.hpp>
#include <attune/layers/dropout.hpp>
#include <attune/layers/embedding.hpp>
#include <attune/layers/feed_forward.hpp>
#include <attune/layers/layer_norm.hpp>
#include <attune/layers/linear.hpp>
#include <attune/layers/pooling.hpp>
#include <attune/layers/positions.hpp>
#include <attune/layers/softmax.hpp>

#include <attune/attention/mask.hpp>
#include <attune/attention/multi_head_attention.hpp>
#include <attune/attention/recomputed_attention.hpp>
#include <attune/attention/rotary_positions.hpp>
#include <attune/attention/scaled_dot_product_attention.hpp>

#include <attune/models/checkpointed.hpp>
#include <attune/models/composition.hpp>
#include <attune/models/decoder_layer.hpp>
#include <attune/models/encoder_layer.hpp>
#include <attune/models/frozen.hpp>
#include <attune/models/repeat.hpp>
#include <attune/models/residual.hpp>
#include <attune/models/sampling.hpp>
#include <attune/models/sequential.hpp>
#include <attune/models/transformer_layer.hpp>

#include <attune/training/adam.hpp>
#include <attune/training/batch.hpp>
#include <attune/training/bfloat16_set.hpp>
#include <attune/training/cross_entropy.hpp>
#include <attune/training/huber.hpp>
#include <attune/training/in_pieces.hpp>
#include <attune/training/lockstep.hpp>
#include <attune/training/loss.hpp>
#include <attune/training/optimizer.hpp>
#include <attune/training/parameter_groups.hpp>
#include <attune/training/plan.hpp>
#include <attune/training/schedule.hpp>
#include <attune/training/sgd.hpp>
#include <attune/training/state.hpp>
#include <attune/training/trainer.hpp>
#include <attune/training/update_in_backward.hpp>
#include <attune/training/workspace.hpp>

#include <attune/exchange/cpp_header.hpp>
#include <attune/exchange/crc32.hpp>
#include <attune/exchange/element_type.hpp>
#include <attune/exchange/flash_store.hpp>
#include <attune/exchange/flat.hpp>
#include <attune/exchange/hugging_face_names.hpp>
#include <attune/exchange/model_file.hpp>
#include <attune/exchange/own_names.hpp>
#include <attune/exchange/pytorch_names.hpp>
#include <attune/exchange/quantise_safetensors.hpp>
#include <attune/exchange/read_safetensors.hpp>
#include <attune/exchange/safetensors.hpp>
#include <attune/exchange/state_dict.hpp>
#include <attune/exchange/write_safetensors.hpp>

#include <attune/self_test.hpp>
