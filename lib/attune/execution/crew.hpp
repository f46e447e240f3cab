// A crew: a fixed number of members (cores, threads, tasks of an RTOS) that share the work of a trainer or an
// inference.
//
//   static attune::TwoCores<SecondCore> cores;   // .bss
//   cores.start();                                // once
//   cores.for_each(n, [](int member, int index) { … });
//
// Members meet by flags: words that one member writes and others read. So a crew needs no exclusives (a
// Cortex-M0+ has none), no lock, no heap and no operating system. A port starts the second core, lets it wait
// and wakes it. Models of Crew: OneCore, TwoCores, and host::Threads on a PC.
//
// The member's number decides nothing about bits: members only need equal rounding and handling of subnormal
// numbers, which each core has in a register of its own (FPSCR, fcsr).
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>

#include <attune/kernels/checked.hpp>
#include <attune/kernels/policy.hpp>

namespace ATTUNE_NAMESPACE {

namespace detail {

/// A word that members share. All writes before a store() are visible after a load() of its value. Without
/// exclusives, as on a Cortex-M0+, clang would call a function for either; plain accesses between barriers
/// are enough.
class SharedWord {
 public:
  [[nodiscard]] std::uint32_t load() const {
    if constexpr (kHasExclusives) {
      return __atomic_load_n(&value_, __ATOMIC_ACQUIRE);
    } else {
      const std::uint32_t value = *const_cast<const volatile std::uint32_t*>(&value_);
      __atomic_thread_fence(__ATOMIC_ACQUIRE);
      return value;
    }
  }
  void store(std::uint32_t value) {
    if constexpr (kHasExclusives) {
      __atomic_store_n(&value_, value, __ATOMIC_RELEASE);
    } else {
      __atomic_thread_fence(__ATOMIC_RELEASE);
      *const_cast<volatile std::uint32_t*>(&value_) = value;
    }
  }

 private:
  static constexpr bool kHasExclusives = __atomic_always_lock_free(sizeof(std::uint32_t), nullptr);
  std::uint32_t value_;
};

}  // namespace detail

/// A number that one member writes and others read. It rises, and stays below 2³¹, or wraps like an unsigned
/// counter.
template <class Type>
concept CrewFlag = requires(Type& own, const Type& other, std::uint32_t number) {
  own.reset();          // back to zero; nobody is waiting
  own.publish(number);  // whoever reads this number sees everything written before
  { other.wait_for(number) } -> std::same_as<std::uint32_t>;  // the value, once it is at least `number`
};

/// Members that share work. for_each(count, body) calls body(member, index) once for each index in
/// [0, count) and returns after the last call. Indices begin in rising order; calls with the same member, in
/// [0, kMembers), never overlap; as many indices as there are members run at the same time, so they may wait
/// for each other. Call it from one place at a time, never from an interrupt handler, nor from `body`.
template <class Type>
concept Crew = requires(Type& crew, void (&body)(int, int)) {
  requires CrewFlag<typename Type::Flag>;
  { Type::kMembers } -> std::convertible_to<int>;
  crew.for_each(1, body);
};

namespace detail {

/// A crew. A wrong type is one error.
template <class Type>
constexpr bool check_crew() {
  static_assert(Crew<Type>,
                "attune: the first template argument is not a Crew: use OneCore, TwoCores<Core>, or "
                "host::Threads<members>");
  return Crew<Type>;
}
template <class Type>
concept CheckedCrew = check_crew<Type>();

}  // namespace detail

/// A crew of one: the same program on one core.
struct OneCore {
  static constexpr int kMembers = 1;  // the calling core
  /// A flag of the only member, which never waits in vain.
  class Flag {
   public:
    void reset() { value_ = 0; }
    void publish(std::uint32_t number) { value_ = number; }
    [[nodiscard]] std::uint32_t wait_for(std::uint32_t) const { return value_; }

   private:
    std::uint32_t value_;
  };
  /// Calls body(0, index) for each index.
  static void for_each(int count, const auto& body) {
    for (int index = 0; index < count; ++index) body(0, index);
  }
};

/// A flag of cores without an operating system: a word of memory that both see in order (not cached, or
/// coherent). `Core` has
///
///   kFlagBytes   distance between two flags: a cache line, if there are caches
///   relax()      waits for a moment, at best asleep until wake(); may return early
///   wake()       wakes the other core, after a store
template <class Core>
class alignas(Core::kFlagBytes) WordFlag {
 public:
  void reset() { value_.store(0); }
  void publish(std::uint32_t number) {
    if constexpr (requires { Core::trace_publish(this, number); }) Core::trace_publish(this, number);
    value_.store(number);
    Core::wake();
  }
  std::uint32_t wait_for(std::uint32_t number) const {
    if constexpr (requires { Core::trace_wait(this, number); }) Core::trace_wait(this, number);
    std::uint32_t now = value();
    for (; static_cast<std::int32_t>(now - number) < 0; now = value()) Core::relax();
    if constexpr (requires { Core::trace_waited(); }) Core::trace_waited();
    return now;
  }
  /// Its value now.
  [[nodiscard]] std::uint32_t value() const { return value_.load(); }

 private:
  detail::SharedWord value_;
};

/// Two cores without an operating system. Static storage, all zeros: no code before main. `Core` as for
/// WordFlag, and
///
///   start(entry)   the second core calls entry(), which never returns, on a stack of its own, with its
///                  floating-point unit on
///
/// Indices are dealt out in turn: core 1 has the odd ones. A core that an interrupt holds up is waited for.
template <class Core>
class TwoCores {
 public:
  static constexpr int kMembers = 2;
  using Flag = WordFlag<Core>;

  /// Starts the second core, once, from core 0. There is one crew of a Core.
  void start() {
    crew_ = this;
    Core::start([] { crew_->serve(); });
  }
  /// See Crew. Core 0 calls it, and is member 0.
  void for_each(int count, const auto& body) {
    ATTUNE_ASSERT(crew_ == this, "TwoCores: call start() first");
    const auto work = [&](int member) {
      for (int index = member; index < count; index += kMembers) body(member, index);
    };
    work_ = &work;
    call_ = run<decltype(work)>;
    const std::uint32_t turn = posted_.value() + 1U;
    posted_.publish(turn);
    run<decltype(work)>(&work, 0);
    (void)finished_.wait_for(turn);
  }

 private:
  // Not inlined: one function for both cores.
  template <class Work>
  [[gnu::noinline]] static void run(const void* work, int member) {
    (*static_cast<const Work*>(work))(member);
  }
  [[noreturn]] void serve() {
    for (std::uint32_t turn = 1;; ++turn) {
      (void)posted_.wait_for(turn);
      call_(work_, 1);
      finished_.publish(turn);
    }
  }

  static inline TwoCores* crew_ = nullptr;
  const void* work_;
  void (*call_)(const void*, int);
  Flag posted_, finished_;  // turns: written by core 0, by core 1
};

}  // namespace ATTUNE_NAMESPACE
