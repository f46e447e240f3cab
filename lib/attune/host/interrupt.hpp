// Ctrl-C as a wish to finish, for programs on an operating system. Never included by attune.hpp.
#pragma once

#include <atomic>
#include <csignal>

#include <attune/kernels/policy.hpp>

namespace attune::inline ATTUNE_ARITHMETIC::host {

/// While one exists, the first Ctrl-C (SIGINT) is noted and nothing else; a second one ends the program at
/// once. After the first, a pipe that nobody reads any more does not end the program either (in a pipeline
/// Ctrl-C reaches the reader, too): the program can still save its result. Where SIGINT was ignored before,
/// as for a job in the background, it still is. One at a time.
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

  /// Whether Ctrl-C was pressed since.
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

}  // namespace attune::inline ATTUNE_ARITHMETIC::host
