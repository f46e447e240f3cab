// Spoken digits: trains the base of examples/personalise without the last speaker, whose recordings and the
// others' it recognizes in every precision. Voices are made up, as in the example without --data.
#include <cstdio>
#include <memory>

#include "../../examples/personalise/base_training.hpp"
#include "precisions.hpp"

int main() {
  using namespace personalise;
  constexpr int kSpeaker = kSpeakers - 1;
  const Corpus corpus = synthetic_voices();
  const auto base = train_base(corpus.for_base(kSpeaker), 1, [](int, float) {});
  if (base == nullptr) return 1;
  const auto recordings = corpus.for_device(kSpeaker);
  const auto scratch = std::make_unique<Base::InferenceScratch>();
  const auto print = [&](const char* name, const auto& weights, const auto& products) {
    Example example;
    Base::Output logits;
    const auto recognized = [&](Use use) {
      int right = 0, all = 0;
      for (const Recording& recording : Recordings{.all = recordings}.of(use)) {
        load(recording, example);
        attune::infer<Base>(weights, example.tokens, logits, *scratch, example.padding, products);
        right += accuracy::largest(logits) == recording.digit;
        ++all;
      }
      return 100.0 * right / all;
    };
    std::printf("accuracy model=spoken_digits_new_speaker precision=\"%s\" right=%.2f unit=%%\n", name,
                recognized(Use::kOwnTest));
    std::printf("accuracy model=spoken_digits_others precision=\"%s\" right=%.2f unit=%%\n", name,
                recognized(Use::kOthersTest));
  };
  return accuracy::for_each_precision<Base>(*base, print) ? 0 : 1;
}
