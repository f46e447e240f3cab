// Trains the base of spoken digits on a PC, on all speakers but one, and writes what the device gets: the
// base as a state_dict, and the recordings with which the one is adapted to and tested. examples/run calls
// it.
//
//   --out PREFIX    PREFIX.safetensors, PREFIX_recordings.safetensors, PREFIX_factory.safetensors: sums over
//                   the features of what the base was trained on, and PREFIX_probe.safetensors: features of
//                   some of it
//   --speaker S     who is left out, from 0 to 5; without it 0
//   --classes N     of digits below N only; without it all
//   --seed N        other initial parameters and another order; without it 1
//   --data DIR      recordings of the Free Spoken Digit Dataset as log-mel bands (examples/README.md says how
//   to
//                   get them); without it, voices that are made up
#include <algorithm>
#include <string>

#include <arguments.hpp>

#include "../base_files.hpp"
#include "../terminal.hpp"
#include "base_training.hpp"

namespace {

using namespace personalise;
using base_files::word_after, base_files::write;

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
  const int classes = std::clamp(port::argument("--classes", kDigits), 2, kDigits);
  const auto known = corpus.for_base(speaker, classes);
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
      !write(out + "_factory.safetensors", base_files::file_of("factory", factory_of(*base, known))) ||
      !write(out + "_probe.safetensors",
             base_files::file_of("probe", probe_of(*base, corpus.for_device(speaker)))) ||
      !write(out + "_recordings.safetensors",
             base_files::file_of("recordings", corpus.for_device(speaker)))) {
    port::print("the base was not trained, or cannot be written to ", out.c_str(), '\n');
    return 1;
  }
  return 0;
}
