// The classifier: an image is a sequence of its eight rows, a row a token of eight pixels.
#pragma once

#include <attune/attune.hpp>

namespace digits {

inline constexpr int kRows = 8;
inline constexpr int kPixels = 8;  // of a row
inline constexpr int kClasses = 10;

inline constexpr int kWidth = ATTUNE_EXAMPLE_D_MODEL;
inline constexpr bool kSmall = kWidth <= 16;
inline constexpr int kBlocks = kSmall ? 1 : 2;
inline constexpr attune::EncoderLayerShape kEncoder{
    .attention = {.seq_len = kRows, .d_model = kWidth, .num_heads = ATTUNE_EXAMPLE_NUM_HEADS},
    .d_ff = 2 * kWidth,
    .activation = attune::Activation::kGelu,
    .norm = attune::NormPlacement::kBefore};
static_assert(ATTUNE_EXAMPLE_SEQ_LEN == kRows, "digits: an image has eight rows; seq_len must be 8");

using Model = attune::Sequential<attune::Linear<attune::LinearShape{kRows, kPixels, kWidth}>,
                                 attune::LearnedPositions<attune::PositionShape{kRows, kWidth}>,
                                 attune::Repeat<kBlocks, attune::EncoderLayer<kEncoder>>,
                                 attune::Pooling<attune::PoolingShape{kRows, kWidth}>,
                                 attune::Linear<attune::LinearShape{1, kWidth, kClasses}>>;
inline constexpr int kParameters = sizeof(Model::Parameters) / sizeof(float);

}  // namespace digits
