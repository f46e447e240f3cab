// Ranks over MPI, the Message Passing Interface (mpi-forum.org). No other header of attune uses MPI or
// includes this one.
//
//   find_package(MPI REQUIRED)                                  # Debian: libopenmpi-dev
//   target_link_libraries(program PRIVATE MPI::MPI_CXX)
//
//   mpirun -n 4 ./program
#pragma once

#if !defined(OMPI_SKIP_MPICXX)
#define OMPI_SKIP_MPICXX 1  // only the C interface is used
#endif
#if !defined(MPICH_SKIP_MPICXX)
#define MPICH_SKIP_MPICXX 1
#endif
#include <mpi.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <exception>
#include <span>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <attune/host/ranks.hpp>

namespace ATTUNE_NAMESPACE::host {

/// Options of MpiRanks.
struct MpiOptions {
  /// Longest wait for another rank; must exceed the time of any step, validation or file access.
  std::chrono::duration<double> longest_wait = std::chrono::minutes(30);
};

/// The processes that mpirun started, or one process without mpirun. Create one object per program, from
/// start to end; the thread that made it calls its functions. A process that dies, or leaves the scope by an
/// exception, ends all of them with a message and a nonzero code. So does one that hangs. A rank that has
/// waited for `longest_wait` reports it, and ends all processes after another quarter of that time.
class MpiRanks final : public Ranks {
 public:
  /// Joins the job. All ranks must construct it together.
  explicit MpiRanks(const MpiOptions& options = {}) : longest_wait_(options.longest_wait) {
    int provided = 0;
    MPI_Init_thread(nullptr, nullptr, MPI_THREAD_FUNNELED, &provided);
    if (provided < MPI_THREAD_FUNNELED) throw std::runtime_error("attune::MpiRanks: MPI allows no threads");
    MPI_Comm_dup(MPI_COMM_WORLD, &ring_);  // a communicator apart from the program's messages
    MPI_Comm_rank(ring_, &rank_);
    MPI_Comm_size(ring_, &size_);
  }
  ~MpiRanks() override {
    if (std::uncaught_exceptions() > exceptions_) {  // the others would wait forever
      std::fprintf(stderr, "attune::MpiRanks: rank %d of %d leaves by an exception, and ends all\n", rank_,
                   size_);
      MPI_Abort(ring_, 1);
    }
    settle();
    MPI_Request ended;
    MPI_Ibarrier(ring_, &ended);
    wait(ended, -1);  // MPI_Finalize would wait forever
    MPI_Comm_free(&ring_);
    MPI_Finalize();
  }

  [[nodiscard]] int rank() const override { return rank_; }
  [[nodiscard]] int size() const override { return size_; }

  void send(std::span<const std::byte> bytes) override {
    for_each_message(bytes, [this](std::span<const std::byte> message) {
      MPI_Isend(message.data(), static_cast<int>(message.size()), MPI_BYTE, next(), 0, ring_,
                &sent_.emplace_back());
    });
  }
  void receive(std::span<std::byte> bytes) override {
    for_each_message(bytes, [this](std::span<std::byte> message) {
      MPI_Request request;
      MPI_Irecv(message.data(), static_cast<int>(message.size()), MPI_BYTE, before(), 0, ring_, &request);
      const MPI_Status status = wait(request, before());
      int count = 0;
      MPI_Get_count(&status, MPI_BYTE, &count);
      if (count != static_cast<int>(message.size()))
        throw std::runtime_error("attune::MpiRanks: the rank before runs another program");
    });
  }
  void settle() override {
    for (MPI_Request& request : sent_) wait(request, next());
    sent_.clear();
  }

 private:
  // MPI counts in int.
  template <class Byte, class Body>
  static void for_each_message(std::span<Byte> bytes, const Body& body) {
    constexpr std::size_t kMost = std::size_t{1} << 30;
    for (std::size_t at = 0; at < bytes.size(); at += kMost)
      body(bytes.subspan(at, (std::min)(kMost, bytes.size() - at)));
  }

  [[nodiscard]] int next() const { return (rank_ + 1) % size_; }
  [[nodiscard]] int before() const { return (rank_ + size_ - 1) % size_; }

  // Waits for another rank, or with -1 for all ranks. MPI's own waiting keeps a core busy that the other rank
  // may need.
  MPI_Status wait(MPI_Request& request, int whom) const {
    using Clock = std::chrono::steady_clock;
    const auto begin = Clock::now();
    MPI_Status status;
    bool said = false;
    for (int done = 0;;) {
      MPI_Test(&request, &done, &status);
      if (done != 0) return status;
      std::this_thread::yield();
      const std::chrono::duration<double> waited = Clock::now() - begin;
      if (!said && waited >= longest_wait_) {
        const std::string name = whom < 0 ? "the others" : "rank " + std::to_string(whom);
        std::fprintf(stderr, "attune::MpiRanks: rank %d of %d has waited %.0f s for %s\n", rank_, size_,
                     waited.count(), name.c_str());
        said = true;
      } else if (waited >= 1.25 * longest_wait_) {  // every waiting rank has reported it by now
        std::fprintf(stderr, "attune::MpiRanks: rank %d of %d ends all: the rank that does not wait hangs\n",
                     rank_, size_);
        MPI_Abort(ring_, 1);
      }
    }
  }

  const std::chrono::duration<double> longest_wait_;
  MPI_Comm ring_ = MPI_COMM_NULL;
  int rank_ = 0;
  int size_ = 1;
  std::vector<MPI_Request> sent_;
  int exceptions_ = std::uncaught_exceptions();
};

}  // namespace ATTUNE_NAMESPACE::host
