// expect: attune::Lockstep: one of the layers has functions without lanes
#include <attune/attune.hpp>

using Pool = attune::Pooling<attune::PoolingShape{.seq_len = 4, .d_model = 8, .kind = attune::PoolingKind::kMax}>;
using Model = attune::Sequential<attune::Linear<attune::LinearShape{.rows = 4, .d_in = 8, .d_out = 8}>, Pool>;
attune::Trainer<Model, attune::MeanSquaredError, attune::AdamW, 64, attune::Lockstep> trainer;
