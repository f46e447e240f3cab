// Writes text, token by token, with a model in flash that base.cpp trained on a PC. A token goes through the
// model once and leaves keys and values in a cache, which has those of the last kTokens: text goes on for as
// long as one likes. At the end its beginning goes through the model in one go, to the same logits, bit for
// bit.
//
//   --prompt HEX       how the text begins, two digits a byte
//   --tokens N         of the text, the prompt among them
//   --temperature N    in thousandths; 0: always the likeliest token
//   --top-k N          draws among the N likeliest tokens; 0: among all
//   --seed N           of what is drawn
#include <cstdint>

#include <instructions.hpp>

#include <stream_base.hpp>
#include <stream_vocabulary.hpp>

#include "../flash_rows.hpp"
#include "../fnv1a.hpp"
#include "../terminal.hpp"
#include "options.hpp"

namespace {

using namespace stream;
using attune::Status;

constexpr auto& kBase = attune::kInFlash<Names, stream_base>;
constexpr attune::CacheShape kLastTokens{.window = kTokens};
using Cache = attune::KeyValueCache<Model, kLastTokens>;
constexpr attune::MemoryReport kMemory = [] {
  attune::MemoryReport memory = attune::stream_memory<Model, kLastTokens>();
  memory.parameters = 0;  // which are in flash
  memory.scratch += sizeof(attune::SamplingScratch<kVocabulary>);
  return memory;
}();
static_assert(kMemory.total() <= 120 * 1024);  // the RAM contract, checked by the compiler

Cache cache;
Cache::Scratch<> scratch;
attune::SamplingScratch<kVocabulary> sampling_scratch;
attune::Tensor<float, 1, kVocabulary> logits;
int prompt[Prompt::kLongest];

/// What going through the model at once comes to.
struct Batch {
  std::uint32_t logits_hash;
  std::uint64_t instructions;  // 0 where the program cannot tell
};

/// The beginning of the text, to go through the model at once. A board without a megabyte has no room for
/// that.
struct InOneGo {
  Model::Input tokens;
  Model::Output logits;
  Model::InferenceScratch scratch;

  void keep(int place, int id) {
    if (place < kTokens) tokens[static_cast<std::size_t>(place)] = id;
  }
  /// Of the logits behind the first `count` tokens. Those behind the text, zeros, are hidden.
  Batch run(int count) {
    Fnv1a hash;
    port::begin_counting();
    const Status status = Model::forward(kBase, tokens, logits, scratch, attune::CausalMask{});
    const std::uint64_t instructions = port::end_counting();
    if (status == Status::kOk) hash.add(logits.values, count * kVocabulary);
    return {hash.value, instructions};
  }
};
struct NoRoom {
  void keep(int, int) {}
  Batch run(int) { return {}; }
};
#if defined(ATTUNE_EXAMPLE_BOARD_RAM)
constexpr bool kChecks = sizeof(InOneGo) + kMemory.total() < (ATTUNE_EXAMPLE_BOARD_RAM - 16) * 1024;
#else
constexpr bool kChecks = true;
#endif
std::conditional_t<kChecks, InOneGo, NoRoom> in_one_go;

/// A text on its way: what it has come to.
struct Text {
  Vocabulary vocabulary;
  Fnv1a hash;         // of its bytes
  Fnv1a logits_hash;  // of what is behind each of its first kTokens tokens, if anything is
  int tokens = 0, drawn = 0;
  std::uint64_t instructions = 0;  // of all that were drawn; 0 where the program cannot tell

  void write(int id) {
    const std::string_view bytes = vocabulary.tokens[static_cast<std::size_t>(id)].text();
    port::write(bytes.data(), bytes.size());
    hash.add(bytes);
    in_one_go.keep(tokens++, id);
  }

  /// The token goes through the model; `logits` are of what comes behind it.
  Status read(int id) { return Model::step(kBase, attune::Ids<1>(id), logits, cache, scratch); }
  void note_logits() {
    if (tokens <= kTokens) logits_hash.add(logits.values, kVocabulary);
  }
};

/// Writes the prompt and what is drawn behind it, up to `count` tokens.
Status write_text(Text& text, int prompt_tokens, int count, const attune::SamplingOptions& options,
                  attune::Rng& rng) {
  text.write(prompt[0]);
  int last = prompt[0];
  while (text.tokens < count) {
    const bool draws = text.tokens >= prompt_tokens;
    if (draws) port::begin_counting();
    if (const Status status = text.read(last); status != Status::kOk) return status;
    if (draws) {
      const attune::Sampled next = attune::sample(logits, options, rng, sampling_scratch);
      text.instructions += port::end_counting();
      if (!next.ok()) return next.status;
      ++text.drawn;
      last = next.id;
    } else {
      last = prompt[text.tokens];
    }
    text.note_logits();
    text.write(last);
  }
  return Status::kOk;
}

/// Whether the text's beginning has the same logits in one go; says so.
bool check_logits(const Text& text, Batch& batch) {
  const int count = std::min(text.tokens - 1, kTokens);
  batch = in_one_go.run(count);
  const bool same = batch.logits_hash == text.logits_hash.value;
  if (kChecks) {
    port::print("logits behind ", count,
                " tokens, one after the other and in one go: ", same ? "the same bits\n" : "NOT the same\n");
  } else {
    port::print("no room to compare its logits with those of the text in one go\n");
  }
  return same || !kChecks;
}

void print_result(const Text& text, const Options& options, const Batch& batch, std::size_t stack,
                  std::size_t heap_calls) {
  port::print("result example=stream target=", port::name(), " parameters=", kParameters,
              " vocabulary=", kVocabulary, " tokens=", text.tokens, " drawn=", text.drawn,
              " seed=", options.seed, " text_hash=", port::hex8(text.hash.value),
              " logits_hash=", port::hex8(text.logits_hash.value));
  if (kChecks) port::print(" batch_hash=", port::hex8(batch.logits_hash));
  const auto drawn = static_cast<std::uint64_t>(std::max(text.drawn, 1));
  terminal::print_count(" instructions_per_token", text.instructions / drawn);
  if (kChecks) terminal::print_count(" window_instructions", batch.instructions);
  port::print(" ram_bytes=", kMemory.total(), " cache_bytes=", sizeof cache, " stack_bytes=", stack,
              " heap_calls=", heap_calls, " base_bytes=", stream_base::kSize,
              " vocabulary_bytes=", stream_vocabulary::kSize, '\n');
}

}  // namespace

int main() {
  const Options options;
  Text text;
  text.vocabulary.tokens = flash_rows<Token, stream_vocabulary>();
  const int prompt_tokens = text.vocabulary.encode(options.prompt.text(), prompt);
  if (prompt_tokens < 0) {
    port::print(
        "the prompt has a character that the text does not have from which the vocabulary was learned\n");
    return 2;
  }
  port::print("stream on ", port::name(), ": ", kParameters, " parameters in flash, d_model ", kWidth,
              ", blocks ", kBlocks, ", the last ", kTokens, " tokens of ", kVocabulary,
              " in its cache; temperature ", port::fixed(options.sampling.temperature, 3), ", top-k ",
              options.sampling.top_k, ", seed ", options.seed, "\n\n");

  const std::size_t heap_calls_before = port::heap_calls();
  port::paint_stack();
  attune::Rng rng(options.seed);
  const Status status = write_text(text, prompt_tokens, options.tokens, options.sampling, rng);
  const std::size_t stack = port::stack_high_water();
  port::print("\n\n");
  if (status != Status::kOk) {
    port::print("stopped: ", attune::message(status), '\n');
    return 1;
  }
  Batch batch;
  const bool same = check_logits(text, batch);
  const std::size_t heap_calls = port::heap_calls() - heap_calls_before;
  terminal::print_memory("writing, the parameters in flash", kMemory);
  print_result(text, options, batch, stack, heap_calls);
  return same ? 0 : 1;
}
