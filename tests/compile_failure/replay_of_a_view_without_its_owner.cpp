// expect: attune::Replay: a Sequence with a view has no default; load(std::uint32_t number, std::unique_ptr<Sequence>&) of the Setup makes it, and returns a Status
#include <attune/attune.hpp>
#include <attune/host/replay.hpp>

struct Setup {
  using Attention =
      attune::MultiHeadAttention<attune::AttentionShape{.seq_len = 2, .d_model = 4, .num_heads = 1}>;
  using Trainer = attune::Trainer<Attention>;
  using Sequence =
      attune::JournaledSequence<Attention::Input, Attention::Output, attune::AdditiveMask<float, 2, 2>>;
  static void start(Trainer& trainer, std::uint32_t number);
  static attune::Status load(std::uint32_t number, Sequence& sequence);
};

bool replays(std::span<const std::byte> journal) { return attune::host::Replay<Setup>().run(journal).ok(); }
