// Two exported models in one program, one in floats and one in 8 bits: prints what each answers to the samples of inputs.hpp.
#include <bit>
#include <cstdint>
#include <cstring>

#include <console.hpp>

#include <gestures.hpp>
#include <gestures_file.hpp>
#include <words.hpp>
#include <words_file.hpp>

#include <inputs.hpp>

namespace {

template <class Model, class Names, class File>
void answer(const char* name, const auto& samples) {
  static typename Model::InferenceScratch scratch;
  static typename Model::Input x;
  static typename Model::Output y;
  for (const auto& sample : samples) {
    static_assert(sizeof sample == sizeof x);
    std::memcpy(&x, sample, sizeof x);
    attune::infer<Model>(attune::kInFlash<Names, File>, x, y, scratch);
    port::print(name);
    for (const float value : y.values) port::print(' ', port::hex8(std::bit_cast<std::uint32_t>(value)));
    port::print('\n');
  }
}

}  // namespace

int main() {
  answer<gestures::Model, gestures::Names, gestures_file>("gestures", kGestures);
  answer<words::Model, words::Names, words_file>("words", kWords);
  return 0;
}
