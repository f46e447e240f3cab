// Writes text, token by token, with a model in flash that base.cpp trained on a PC. A token goes through the
// model once, those of the prompt several at a time, and leaves keys and values in a cache, which has those
// of the last kTokens: text goes on for as long as one likes. At the end its beginning goes through the model
// in one go, to the same logits, bit for bit.
//
//   --prompt HEX       how the text begins, two digits a byte
//   --tokens N         of the text, the prompt among them
//   --temperature N    in thousandths; 0: always the likeliest token
//   --top-k N          draws among the N likeliest tokens; 0: among all
//   --seed N           of what is drawn
#include <algorithm>
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
constexpr int kBlock = 2;  // tokens of the prompt: as many as there is RAM for

/// What a step works on, first those of the prompt, then those of single tokens.
template <int tokens>
struct Step {
  Cache::Scratch<tokens> scratch;
  attune::Tensor<float, tokens, kVocabulary> logits;
};
struct StepAndDraw : Step<1> {
  attune::SamplingScratch<kVocabulary> sampling;
};
union PromptOrToken {
  Step<kBlock> prompt;
  StepAndDraw token;
};
constexpr attune::MemoryReport kMemory = [] {
  attune::MemoryReport memory = attune::stream_memory<Model, kLastTokens, kBlock>();
  memory.parameters = 0;  // which are in flash
  memory.scratch += sizeof(PromptOrToken) - sizeof(Step<kBlock>);
  return memory;
}();
static_assert(kMemory.total() <= 120 * 1024);  // the RAM contract, checked by the compiler

Cache cache;
PromptOrToken shared;
int prompt[Prompt::kLongest];

/// What going through the model at once comes to.
struct Batch {
  std::uint32_t logits_hash;
  std::uint64_t instructions;  // 0 where the program cannot tell
};

/// The beginning of the text, to go through the model at once. A board without a megabyte has no room for
/// that.
struct RunToCompletion {
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
    const Status status = attune::infer<Model>(kBase, tokens, logits, scratch, attune::CausalMask{});
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
constexpr bool kChecks = sizeof(RunToCompletion) + kMemory.total() < (ATTUNE_EXAMPLE_BOARD_RAM - 16) * 1024;
#else
constexpr bool kChecks = true;
#endif
std::conditional_t<kChecks, RunToCompletion, NoRoom> in_one_go;

/// A text on its way: what it has come to.
struct Text {
  Vocabulary vocabulary;
  Fnv1a hash;         // of its bytes
  Fnv1a logits_hash;  // of what is behind each of its first kTokens tokens, if anything is
  int tokens = 0, tokens_read = 0, drawn = 0;
  std::uint64_t instructions = 0;  // of all that were drawn; 0 where the program cannot tell

  void write(int id) {
    const std::string_view bytes = vocabulary.tokens[static_cast<std::size_t>(id)].text();
    port::write(bytes.data(), bytes.size());
    hash.add(bytes);
    in_one_go.keep(tokens++, id);
  }

  /// Tokens go through the model; `step.logits` are of what comes behind each.
  template <int together>
  Status read(const attune::Ids<together>& ids, Step<together>& step) {
    return Model::step(kBase, ids, step.logits, cache, step.scratch);
  }
  template <int together>
  void note_logits(const Step<together>& step) {
    const int noted = std::clamp(kTokens - tokens_read, 0, together);
    logits_hash.add(step.logits.values, noted * kVocabulary);
    tokens_read += together;
  }
};

/// Writes the prompt; all of it but its last token goes through the model.
Status read_prompt(Text& text, int count) {
  for (int i = 0; i < count; ++i) text.write(prompt[i]);
  const auto read = [&]<int together>(int first, Step<together>& step) {
    const Status status = text.read(attune::Ids<together>(prompt + first), step);
    if (status == Status::kOk) text.note_logits(step);
    return status;
  };
  Status status = Status::kOk;
  int first = 0;
  for (; status == Status::kOk && first + kBlock < count; first += kBlock) {
    status = read(first, shared.prompt);
  }
  for (; status == Status::kOk && first + 1 < count; ++first) status = read(first, shared.token);
  return status;
}

/// Writes the prompt and what is drawn behind it, up to `count` tokens.
Status write_text(Text& text, int prompt_tokens, int count, const attune::SamplingOptions& options,
                  attune::Rng& rng) {
  prompt_tokens = std::min(prompt_tokens, count);
  if (const Status status = read_prompt(text, prompt_tokens); status != Status::kOk) return status;
  StepAndDraw& step = shared.token;
  for (int last = prompt[prompt_tokens - 1]; text.tokens < count; text.write(last)) {
    port::begin_counting();
    if (const Status status = text.read<1>(last, step); status != Status::kOk) return status;
    const attune::Sampled next = attune::sample(step.logits, options, rng, step.sampling);
    text.instructions += port::end_counting();
    if (!next.ok()) return next.status;
    ++text.drawn;
    last = next.id;
    text.note_logits<1>(step);
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
