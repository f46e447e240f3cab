// Power cuts in a save of FlashStore, for the picture: a line `cut KIND PAGE FOUND` for each operation on the
// flash (a page erased, a unit of 8 bytes programmed), where FOUND is the state that a program finds after
// the power failed half way through it.
#include <cstdio>
#include <cstring>

#include <attune/attune.hpp>

namespace {

struct PowerFailed {};

// An array that behaves as NOR flash. The operation numbered `cut` stops half way.
class Flash {
 public:
  static constexpr std::uint32_t kPageSize = 128, kPages = 6, kProgramUnit = 8;
  static constexpr unsigned char kErased = 0xFF;

  attune::Status read(std::uint32_t at, void* to, std::size_t bytes) {
    std::memcpy(to, bytes_ + at, bytes);
    return attune::Status::kOk;
  }
  attune::Status program(std::uint32_t at, const void* from, std::size_t bytes) {
    for (std::size_t unit = 0; unit < bytes; unit += kProgramUnit) {
      const auto to = at + static_cast<std::uint32_t>(unit);
      const std::size_t done = begin("program", to, kProgramUnit);
      std::memcpy(bytes_ + to, static_cast<const char*>(from) + unit, done);
      end();
    }
    return attune::Status::kOk;
  }
  attune::Status erase(std::uint32_t at) {
    const std::size_t done = begin("erase", at, kPageSize);
    std::memset(bytes_ + at, kErased, done);
    end();
    return attune::Status::kOk;
  }
  attune::Status sync() { return attune::Status::kOk; }

  int operations = 0, cut = -1;
  const char* kind = "";
  std::uint32_t page = 0;

 private:
  std::size_t begin(const char* what, std::uint32_t at, std::size_t bytes) {
    kind = what;
    page = at / kPageSize;
    return operations == cut ? bytes / 2 : bytes;
  }
  void end() {
    if (operations++ == cut) throw PowerFailed{};
  }
  unsigned char bytes_[kPageSize * kPages] = {};
};

struct State {
  static constexpr std::uint32_t kFingerprint = 1;
  std::uint32_t step;
  float parameters[50];
};

State state_of(std::uint32_t step) {
  State state{.step = step, .parameters = {}};
  for (float& parameter : state.parameters) parameter = static_cast<float>(step);
  return state;
}

}  // namespace

int main() {
  static_assert(attune::FlashStore<Flash, State>::kSlots == 3);
  for (int cut = 0;; ++cut) {
    Flash flash;
    for (std::uint32_t page = 0; page < Flash::kPages; ++page) (void)flash.erase(page * Flash::kPageSize);
    attune::FlashStore<Flash, State> store(flash);
    if (store.save(state_of(100)) != attune::Status::kOk) return 1;
    flash.operations = 0;
    flash.cut = cut;
    bool failed = false;
    try {
      (void)store.save(state_of(200));
    } catch (PowerFailed) {
      failed = true;
    }
    State found{};
    if (attune::FlashStore<Flash, State>(flash).load(found) != attune::Status::kOk) return 2;
    const State whole = state_of(found.step == 100 ? 100 : 200);
    if (std::memcmp(&found, &whole, sizeof found) != 0) return 3;
    if (!failed) return found.step == 200 ? 0 : 4;
    std::printf("cut %s %u %u\n", flash.kind, static_cast<unsigned>(flash.page),
                static_cast<unsigned>(found.step));
  }
}
