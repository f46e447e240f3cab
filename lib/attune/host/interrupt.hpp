// Handles Ctrl-C as a request to finish, on an operating system. Never included by attune.hpp.
#pragma once

#include <atomic>
#include <csignal>

#include <attune/kernels/policy.hpp>

namespace ATTUNE_NAMESPACE::host {

/// While an Interrupt exists, the first Ctrl-C (SIGINT) only sets a flag, and a second one ends the program
/// at once. After the first, a pipe without a reader does not end the program either, so it can still save
/// its result. (In a pipeline, Ctrl-C also reaches the reader.) If SIGINT was ignored before, as for a
/// background job, it stays ignored. Only one Interrupt may exist at a time.
class Interrupt {
 public:
  Interrupt() {
    noted = false;
    before_ = std::signal(SIGINT, note);
    if (before_ == SIG_IGN) std::signal(SIGINT, SIG_IGN);
  }
  Interrupt(const Interrupt&) = delete;
  Interrupt& operator=(const Interrupt&) = delete;
  ~Interrupt() {
    if (before_ != SIG_ERR) std::signal(SIGINT, before_);
  }

  /// Whether Ctrl-C was pressed since construction.
  [[nodiscard]] bool requested() const { return noted; }

 private:
  static void note(int signal) {
    noted = true;
    std::signal(signal, SIG_DFL);
#ifdef SIGPIPE
    std::signal(SIGPIPE, SIG_IGN);
#endif
  }

  static inline std::atomic<bool> noted = false;
  static_assert(std::atomic<bool>::is_always_lock_free, "a signal handler may not lock");

  void (*before_)(int);
};

}  // namespace ATTUNE_NAMESPACE::host
