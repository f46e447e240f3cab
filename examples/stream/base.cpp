// Learns a vocabulary and trains the model on a PC, and writes what the device gets in flash: parameters and
// tokens. examples/run calls it. The same text gives the same bits on any number of threads.
//
//   --out PREFIX    PREFIX.safetensors and PREFIX_vocabulary.safetensors, and PREFIX.txt: how well it does
//   --data FILE     the text
//   --steps N       without it 2000
#include <algorithm>
#include <cmath>
#include <fstream>
#include <iterator>
#include <memory>

#include <arguments.hpp>

#include "../base_files.hpp"
#include "../terminal.hpp"
#include "learn_vocabulary.hpp"
#include "training.hpp"

namespace {

using namespace stream;

std::string text_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

port::Fixed decimal(double value, int decimals) { return port::fixed(static_cast<float>(value), decimals); }

bool train(Training& training, int steps) {
  terminal::Progress progress(steps);
  float smooth = 0;
  for (int step = 0; step < steps; ++step) {
    const auto result = training.step(step);
    if (!result.ok()) return false;
    smooth = step == 0 ? result.loss : smooth + (result.loss - smooth) * 0.02f;
    progress.show(step + 1, smooth);
  }
  return true;
}

std::string said_of(const HeldOutLoss& loss) {
  const double of_token = loss.nats / double(loss.tokens);
  char text[200];
  std::snprintf(text, sizeof text,
                "on %zu tokens that it has not seen: %.3f nats a token, perplexity %.1f; %.3f nats a byte\n",
                loss.tokens, of_token, std::exp(of_token), loss.nats / double(loss.bytes));
  return text;
}

}  // namespace

int main() {
  const std::string out = base_files::word_after("--out"), path = base_files::word_after("--data");
  const int steps = std::max(port::argument("--steps", kSteps), 1);
  const std::string text = text_of(path);
  const std::vector<Token> tokens = learn_vocabulary(text, kVocabulary);
  const Vocabulary vocabulary{tokens};
  Corpus corpus;
  if (tokens.size() == kVocabulary) corpus.ids = encode_all(text, vocabulary);
  if (corpus.ids.size() < Corpus::kMin) {
    port::print("stream cannot learn from ", path.c_str(), ": it wants a text of about 50 KB or more, with ",
                kVocabulary, " tokens in it\n");
    return 2;
  }
  port::print("trains on a PC: ", steps, " steps of ", kBatch, " windows of ", kTokens,
              " tokens; the text has ", text.size(), " bytes, ", corpus.ids.size(), " tokens, ",
              decimal(double(text.size()) / double(corpus.ids.size()), 2), " bytes each\n");
  const auto training = std::make_unique<Training>(std::move(corpus), steps);
  std::string file;
  const auto sink = [&file](const char* bytes, std::size_t count) { file.append(bytes, count); };
  if (!train(*training, steps) ||
      attune::write_safetensors<Names>(training->parameters(), sink) != attune::Status::kOk ||
      !base_files::write(out + ".safetensors", file) ||
      !base_files::write(out + "_vocabulary.safetensors", base_files::file_of("tokens", tokens)) ||
      !base_files::write(out + ".txt", said_of(training->held_out(vocabulary)))) {
    port::print("the model was not trained, or cannot be written to ", out.c_str(), '\n');
    return 1;
  }
  return 0;
}
