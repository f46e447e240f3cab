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
};

/// Elements of one of the file's own tensors, one after the other from `first`.
template <class Element>
void read_tensor(std::string_view bytes, std::string_view name, int first, int count, Element* to) {
  const attune::SafetensorsFile file = attune::split_safetensors(bytes);
  attune::SafetensorsHeader header(file.header, file.body.size());
  attune::SafetensorsEntry entry;
  while (header.next(entry)) {
    const std::uint64_t begin = static_cast<std::uint64_t>(first) * sizeof(Element),
                        size = static_cast<std::uint64_t>(count) * sizeof(Element);
    if (entry.name != name || begin + size > entry.bytes()) continue;
    std::memcpy(to, file.body.data() + entry.begin + begin, static_cast<std::size_t>(size));
    return;
  }
  port::print("error no such elements of ", name, '\n');
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
    const std::string_view bytes = attune::bytes_of<File>();
    constexpr int kSize = Model::Input::size;
    int length = 0;
    read_tensor(bytes, "input", index * kSize, kSize, sequence.tokens.data());
    read_tensor(bytes, "length", index, 1, &length);
    for (Scalar& value : sequence.tokens.values) value *= input_scale;
    expect_ok(sequence.mask.set_length(length));
  }

  /// One step from the file's weights with the first sequences.
  template <class Trainer, int batch>
  static void take_step(Trainer& trainer, const TrainedModelData<Scalar>& data, bool reports) {
    static Sequence sequence;
    for (int i = 0; i < batch; ++i) {
      read(i, data.input_scale, sequence);
      int label = 0;
      read_tensor(attune::bytes_of<File>(), "label", i, 1, &label);
      const auto added = trainer.accumulate(sequence.tokens, label, sequence.mask);
      expect_ok(added.status);
      if (reports) report(&added.loss, 1, "losses");
    }
    if (reports) attune::write_safetensors<Names>(trainer.gradients(), ReportedFile{"gradients"});
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
    Model::forward(Trained::kWeights, sequence.tokens, logits, scratch, sequence.mask);
    Model::forward(copied, sequence.tokens, of_copy, scratch, sequence.mask);
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
