// A classifier whose weights are in a file, as PyTorch saved it, and the file in flash: logits of its
// sequences, where it is and from a copy; a step of training; and the file again, with other weights and with
// the same.
#pragma once

#include <cstring>
#include <string_view>

#include "report.hpp"

namespace conformance {

template <class Scalar>
struct TrainedModelData {
  int sequences;
  Scalar input_scale;
  Scalar learning_rate;
  const int* trained_on;  // numbers of sequences
};

/// One of the file's own tensors, by its name.
inline attune::SafetensorsEntry entry_of(const attune::SafetensorsFile& file, std::string_view name) {
  attune::SafetensorsHeader header(file.header, file.body.size());
  attune::SafetensorsEntry entry;
  while (header.next(entry)) {
    if (entry.name == name) return entry;
  }
  port::print("error there is no tensor ", name, '\n');
  return {};
}
/// Element `index` of a tensor of integers, of any width.
inline int integer(std::string_view bytes, std::string_view name, int index) {
  const attune::SafetensorsFile file = attune::split_safetensors(bytes);
  const attune::SafetensorsEntry entry = entry_of(file, name);
  const auto size = static_cast<std::size_t>(entry.bytes() / entry.shape[0]);
  std::uint32_t value = 0;  // run_cases.py has seen that it fits
  std::memcpy(&value, file.body.data() + entry.begin + static_cast<std::size_t>(index) * size,
              size < sizeof value ? size : sizeof value);
  return static_cast<int>(value);
}

/// Takes a file's bytes, and hands them to whoever reads the report.
struct ReportedFile {
  const char* name;
  void operator()(const char* bytes, std::size_t count) const {
    port::Line line;
    line.add("file ");
    line.add(name);
    line.add(' ');
    for (std::size_t i = 0; i < count; ++i) {
      line.add(port::Hex{static_cast<unsigned char>(bytes[i]), 2});
    }
    line.add('\n');
  }
};

/// Takes a file's bytes, and knows whether they are those of another file.
struct ComparedFile {
  std::string_view other;
  std::size_t length = 0;
  bool same = true;
  void operator()(const char* bytes, std::size_t count) {
    same = same && count <= other.size() - length && std::memcmp(other.data() + length, bytes, count) == 0;
    length += count;
  }
  [[nodiscard]] bool is_all() const { return same && length == other.size(); }
};

/// Takes a file's bytes, and keeps their FNV-1a hash.
struct HashedFile {
  std::uint64_t hash = 0xCBF29CE484222325u;
  void operator()(const char* bytes, std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) {
      hash = (hash ^ static_cast<unsigned char>(bytes[i])) * 0x100000001B3u;
    }
  }
};

template <class Names, class File>
struct TrainedModel {
  using Model = typename Names::Model;
  using Scalar = typename Model::Scalar;
  static constexpr int kTokens = Model::Input::rows;
  static constexpr auto& kWeights = attune::kInFlash<Names, File>;

  struct Sequence {
    typename Model::Input tokens;
    attune::KeyPaddingMask<kTokens> mask;
  };
  static void read(int index, Scalar input_scale, Sequence& sequence) {
    const attune::SafetensorsFile file = attune::split_safetensors(attune::bytes_of<File>());
    constexpr std::size_t kBytes = sizeof sequence.tokens.values;
    std::memcpy(sequence.tokens.data(),
                file.body.data() + entry_of(file, "input").begin + static_cast<std::size_t>(index) * kBytes,
                kBytes);
    for (Scalar& value : sequence.tokens.values) value *= input_scale;
    expect_ok(sequence.mask.set_length(integer(attune::bytes_of<File>(), "length", index)));
  }

  /// One step from the file's weights with some of its sequences.
  template <class Trainer, int batch>
  static void take_step(Trainer& trainer, const TrainedModelData<Scalar>& data, bool reports) {
    static Sequence sequence;
    for (int i = 0; i < batch; ++i) {
      read(data.trained_on[i], data.input_scale, sequence);
      const int label = integer(attune::bytes_of<File>(), "label", data.trained_on[i]);
      const auto added = trainer.accumulate(sequence.tokens, label, sequence.mask);
      expect_ok(added.status);
      if (reports) report(&added.loss, 1, "losses");
    }
    if (reports) (void)attune::write_safetensors<Names>(trainer.gradients(), ReportedFile{"gradients"});
    expect_ok(trainer.update({.learning_rate = data.learning_rate}).status);
  }
};

template <class Names, int batch, class File>
void trained_model_case(File, const TrainedModelData<typename Names::Model::Scalar>& data) {
  using Trained = TrainedModel<Names, File>;
  using Model = typename Trained::Model;
  using Scalar = typename Model::Scalar;
  using Trainer =
      attune::Trainer<Model, attune::CrossEntropy<>, attune::Sgd<attune::Momentum::kNone, Scalar>, batch>;
  static typename Trained::Sequence sequence;
  static typename Model::Output logits, of_copy;
  static typename Model::InferenceScratch scratch;
  static typename Model::Parameters copied;
  static Trainer trainer;
  const std::string_view bytes = attune::bytes_of<File>();

  expect_ok(attune::read_safetensors<Names>(bytes, copied));
  for (int i = 0; i < data.sequences; ++i) {
    Trained::read(i, data.input_scale, sequence);
    attune::infer<Model>(Trained::kWeights, sequence.tokens, logits, scratch, sequence.mask);
    attune::infer<Model>(copied, sequence.tokens, of_copy, scratch, sequence.mask);
    report(logits, "logits");
    if (std::memcmp(&logits, &of_copy, sizeof logits) != 0) {
      port::print("error other logits from a copy than where the file is\n");
    }
  }

  const auto writes_it_again = [bytes](const auto& weights) {
    ComparedFile file{bytes};
    expect_ok(attune::rewrite_safetensors<Names>(bytes, weights, file));
    return file.is_all();
  };
  if (!writes_it_again(Trained::kWeights) || !writes_it_again(copied)) {
    port::print("error the file of unchanged weights has other bytes\n");
  }

  HashedFile hashes[2];
  for (HashedFile& hash : hashes) {
    trainer.load(copied);
    Trained::template take_step<Trainer, batch>(trainer, data, &hash == hashes);
    expect_ok(attune::rewrite_safetensors<Names>(bytes, trainer.parameters(), hash));
  }
  if (hashes[0].hash != hashes[1].hash) port::print("error the same step twice, to other weights\n");
  expect_ok(attune::rewrite_safetensors<Names>(bytes, trainer.parameters(), ReportedFile{"written"}));
}

}  // namespace conformance
