// Trains the base of spoken digits on a PC, on all speakers but one, and writes what the device gets: the
// base as a state_dict, and the recordings with which the one is adapted to and tested. examples/run calls
// it.
//
//   --out PREFIX    PREFIX.safetensors and PREFIX_recordings.safetensors
//   --speaker S     who is left out, from 0 to 5; without it 0
//   --seed N        other initial parameters and another order; without it 1
//   --data DIR      recordings of the Free Spoken Digit Dataset as log-mel bands (examples/README.md says how
//   to
//                   get them); without it, voices that are made up
#include <cstdio>
#include <string>

#include <arguments.hpp>

#include "../terminal.hpp"
#include "../words.hpp"
#include "base_training.hpp"

namespace {

using namespace personalise;

bool write(const std::string& path, const std::string& bytes) {
  std::FILE* const file = std::fopen(path.c_str(), "wb");
  if (file == nullptr) return false;
  const bool written = std::fwrite(bytes.data(), 1, bytes.size(), file) == bytes.size();
  return (std::fclose(file) == 0) && written;
}

/// A file of one tensor, recordings [count, bytes], which begins at a multiple of 4.
std::string file_of(const std::vector<Recording>& recordings) {
  const std::size_t bytes = recordings.size() * sizeof(Recording);
  std::string header = "{\"recordings\":{\"dtype\":\"U8\",\"shape\":[" + std::to_string(recordings.size()) +
                       "," + std::to_string(sizeof(Recording)) + "],\"data_offsets\":[0," +
                       std::to_string(bytes) + "]}}";
  header.resize((header.size() + 7) / 8 * 8, ' ');
  std::string file;
  for (int i = 0; i < 8; ++i) file += static_cast<char>(header.size() >> (8 * i) & 0xFF);
  return file + header + std::string(reinterpret_cast<const char*>(recordings.data()), bytes);
}

}  // namespace

int main() {
  const std::string out = word_after("--out"), folder = word_after("--data");
  const int speaker = std::clamp(port::argument("--speaker", 0), 0, kSpeakers - 1);
  const int seed = std::max(port::argument("--seed", 1), 1);
  Corpus corpus;
  if (folder.empty()) {
    port::print(
        "Without --data: six voices that are made up. For people's, --data DIR: log-mel bands of the Free "
        "Spoken Digit ",
        "Dataset\n(https://github.com/Jakobovski/free-spoken-digit-dataset, CC BY-SA 4.0) in two files, "
        "which ",
        "examples/README.md describes.\n");
    corpus = synthetic_voices();
  } else if (!read_folder(folder, corpus)) {
    port::print("personalise cannot read the recordings in ", folder.c_str(), '\n');
    return 2;
  }
  const auto known = corpus.for_base(speaker);
  port::print("trains the base on a PC: ", kBaseSteps, " steps of ", kBaseBatch, " of ", known.size(),
              " recordings of all speakers but ", speaker, '\n');
  terminal::Progress progress(kBaseSteps);
  float smooth = 0;
  const auto base = train_base(known, static_cast<std::uint64_t>(seed), [&](int step, float loss) {
    smooth = step == 0 ? loss : smooth + (loss - smooth) * 0.02f;
    progress.show(step + 1, smooth);
  });
  std::string file;
  const auto sink = [&file](const char* bytes, std::size_t count) { file.append(bytes, count); };
  if (base == nullptr || attune::write_safetensors<Names>(*base, sink) != attune::Status::kOk ||
      !write(out + ".safetensors", file) ||
      !write(out + "_recordings.safetensors", file_of(corpus.for_device(speaker)))) {
    port::print("the base was not trained, or cannot be written to ", out.c_str(), '\n');
    return 1;
  }
  return 0;
}
