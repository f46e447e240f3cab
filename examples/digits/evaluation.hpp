// How well images of the test part are recognized.
#pragma once

#include <instructions.hpp>

#include "../fnv1a.hpp"
#include "../terminal.hpp"
#include "images.hpp"

namespace digits {

struct Evaluation {
  std::uint16_t confusion[kClasses][kClasses];  // [what an image is][what it is taken for]
  int images;
  int correct;
  std::uint32_t logits_hash;   // FNV-1a over the bits of every logit: equal on two targets when all bits are
  std::uint64_t instructions;  // of the first inference; 0 where the program cannot tell

  void add(const Model::Output& logits, int label) {
    int largest = 0;
    for (int c = 1; c < kClasses; ++c) {
      if (logits(0, c) > logits(0, largest)) largest = c;
    }
    ++confusion[label][largest];
    correct += largest == label;
    Fnv1a hash;
    if (images++ > 0) hash.value = logits_hash;
    hash.add(logits.values, logits.size);
    logits_hash = hash.value;
  }
  [[nodiscard]] float accuracy() const {
    return images > 0 ? static_cast<float>(correct) / static_cast<float>(images) : 0.0f;
  }
};

/// The first `count` images of the test part; predict(image, logits) is the model, and seen(i) looks at the
/// logits of image i. Ends where a prediction is refused. All memory is the caller's.
template <class Predict, class Seen>
void evaluate(int count, Image& image, Model::Output& logits, Evaluation& evaluation, const Predict& predict,
              const Seen& seen) {
  for (int i = 0; i < count; ++i) {
    unpack(kPackedTest[i], image);
    if (i == 0) port::begin_counting();
    const attune::Status status = predict(image, logits);
    if (status != attune::Status::kOk) return;
    if (i == 0) evaluation.instructions = port::end_counting();
    evaluation.add(logits, kTestLabels[i] - '0');
    seen(i);
  }
}

inline void print(const Evaluation& evaluation) {
  terminal::print_confusion(evaluation.confusion);
  port::print("recognized ", evaluation.correct, " of ", evaluation.images, " images it has not seen, ",
              port::fixed(100 * evaluation.accuracy(), 1), " %\n");
}

/// The part of the result line that training and inference have in common.
inline void print_result(const Evaluation& evaluation) {
  port::print("result example=digits target=", port::name(), " seq_len=", kRows, " d_model=", kWidth,
              " heads=", kEncoder.attention.num_heads, " blocks=", kBlocks, " parameters=", kParameters,
              " images=", evaluation.images, " accuracy=", port::fixed(evaluation.accuracy(), 4),
              " logits_hash=", port::hex8(evaluation.logits_hash));
}

/// The end of the result line.
inline void print_result_end(std::uint64_t inference_instructions, std::uint32_t parameters_hash,
                             std::size_t ram, std::size_t stack, std::size_t heap_calls,
                             std::uint64_t microseconds) {
  terminal::print_instructions("inference", inference_instructions);
  const auto hundredths = static_cast<std::uint32_t>(microseconds / 10'000);
  port::print(" ram_bytes=", ram, " stack_bytes=", stack, " heap_calls=", heap_calls,
              " parameters_hash=", port::hex8(parameters_hash), " seconds=", hundredths / 100, '.',
              hundredths % 100 / 10, hundredths % 10, '\n');
}

}  // namespace digits
