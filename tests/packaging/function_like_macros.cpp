// Macros that other headers define do no harm, nor do names of std beside those of the library.
#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <charconv>
#include <chrono>
#include <cmath>
#include <concepts>
#include <condition_variable>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <ranges>
#include <span>
#include <sstream>
#include <string>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

#include <Eigen/Core>

#define min(a, b) ((a) < (b) ? (a) : (b))
#define max(a, b) ((a) > (b) ? (a) : (b))
#include <attune/attune.hpp>
#include <attune/host/parallel_inference.hpp>
#include <attune/host/parallel_trainer.hpp>
#include <attune/host/report/attention_maps.hpp>
#include <attune/host/training_progress.hpp>
#include <attune/host/training_run.hpp>
#include <attune/host/whole_file.hpp>

using namespace std;     // NOLINT: what a user may write
using namespace attune;  // NOLINT

using Model =
    EncoderLayer<EncoderLayerShape{.attention = {.seq_len = 4, .d_model = 8, .num_heads = 2}, .d_ff = 16}>;
using ModelTrainer = Trainer<Model, MeanSquaredError, AdamW, 2>;
static_assert(max(min(1, 2), 0) == 1);

std::uint32_t hash_after(ModelTrainer& trainer, const ModelTrainer::BatchInput& x,
                         const ModelTrainer::BatchTarget& target) {
  return trainer.step(x, target, {}).ok() ? hash_bits(trainer.parameters()) : 0;
}
