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
/// exception, ends all of them with a message and a nonzero code. So does one that leaves the scope while a
/// neighbor waits for it, or hangs. A rank that has waited for `longest_wait` reports it, and ends all
/// processes after another quarter of that time. Messages name the rank by its number.
class MpiRanks final : public Ranks {
 public:
  /// Joins the job. All ranks must construct it together.
  explicit MpiRanks(const MpiOptions& options = {}) : longest_wait_(options.longest_wait) {
    int provided = 0;
    MPI_Init_thread(nullptr, nullptr, MPI_THREAD_FUNNELED, &provided);
    if (provided < MPI_THREAD_FUNNELED)
      throw std::runtime_error("attune::MpiRanks: this MPI does not support threads");
    MPI_Comm_dup(MPI_COMM_WORLD, &ring_);  // a communicator apart from the program's messages
    MPI_Comm_rank(ring_, &rank_);
    MPI_Comm_size(ring_, &size_);
  }
  ~MpiRanks() override {
    if (std::uncaught_exceptions() > exceptions_) {  // the others would wait forever
      std::fprintf(stderr, "attune::MpiRanks: rank %d of %d threw an exception and aborts all ranks\n", rank_,
                   size_);
      MPI_Abort(ring_, 1);
    }
    settle();
    for_each_neighbor([this](int neighbor) { announce(neighbor, kHasLeft); });
    MPI_Request ended;
    MPI_Ibarrier(ring_, &ended);
    wait(ended, -1);  // MPI_Finalize would wait forever
    for_each_neighbor([this](int neighbor) { take(neighbor, kHasLeft); });
    while (announced(MPI_ANY_SOURCE, kWaits)) take(MPI_ANY_SOURCE, kWaits);
    MPI_Waitall(static_cast<int>(announced_.size()), announced_.data(), MPI_STATUSES_IGNORE);
    MPI_Comm_free(&ring_);
    MPI_Finalize();
  }

  [[nodiscard]] int rank() const override { return rank_; }
  [[nodiscard]] int size() const override { return size_; }

  void send(std::span<const std::byte> bytes) override {
    for_each_message(bytes, [this](std::span<const std::byte> message) {
      MPI_Isend(message.data(), static_cast<int>(message.size()), MPI_BYTE, next(), kData, ring_,
                &sent_.emplace_back());
    });
  }
  void receive(std::span<std::byte> bytes) override {
    for_each_message(bytes, [this](std::span<std::byte> message) {
      MPI_Request request;
      MPI_Irecv(message.data(), static_cast<int>(message.size()), MPI_BYTE, before(), kData, ring_, &request);
      const MPI_Status status = wait(request, before());
      int count = 0;
      MPI_Get_count(&status, MPI_BYTE, &count);
      if (count != static_cast<int>(message.size()))
        throw std::runtime_error("attune::MpiRanks: rank " + std::to_string(before()) +
                                 " runs another program");
    });
  }
  void settle() override {
    for (MPI_Request& request : sent_) wait(request, next());
    sent_.clear();
  }

 private:
  // Tags: data, and empty messages with the state of a rank.
  static constexpr int kData = 0, kHasLeft = 1, kWaits = 2;

  // MPI counts in int.
  template <class Byte, class Body>
  static void for_each_message(std::span<Byte> bytes, const Body& body) {
    constexpr std::size_t kMax = std::size_t{1} << 30;
    for (std::size_t at = 0; at < bytes.size(); at += kMax)
      body(bytes.subspan(at, (std::min)(kMax, bytes.size() - at)));
  }

  [[nodiscard]] int next() const { return (rank_ + 1) % size_; }
  [[nodiscard]] int before() const { return (rank_ + size_ - 1) % size_; }

  template <class Body>
  void for_each_neighbor(const Body& body) const {
    if (next() != rank_) body(next());
    if (before() != next()) body(before());
  }
  void announce(int to, int tag) {
    MPI_Isend(nullptr, 0, MPI_BYTE, to, tag, ring_, &announced_.emplace_back());
  }
  [[nodiscard]] bool announced(int by, int tag) const {
    int there = 0;
    MPI_Iprobe(by, tag, ring_, &there, MPI_STATUS_IGNORE);
    return there != 0;
  }
  void take(int from, int tag) const { MPI_Recv(nullptr, 0, MPI_BYTE, from, tag, ring_, MPI_STATUS_IGNORE); }

  // Waits for another rank, or with -1 for all ranks. MPI's own waiting keeps a core busy that the other rank
  // may need.
  MPI_Status wait(MPI_Request& request, int whom) {
    using Clock = std::chrono::steady_clock;
    using Seconds = std::chrono::duration<double>;
    const auto begin = Clock::now();
    Seconds next_look{0.1}, left_at{-1};
    MPI_Status status;
    bool said = false;
    for (int done = 0;;) {
      MPI_Test(&request, &done, &status);
      if (done != 0) return status;
      std::this_thread::yield();
      const Seconds waited = Clock::now() - begin;
      if (waited >= next_look) {
        next_look = waited + Seconds{0.1};
        if (left_at.count() < 0 && whom >= 0 && announced(whom, kHasLeft)) left_at = waited;
      }
      if (left_at.count() >= 0 && waited >= left_at + Seconds{1}) {  // all that it had sent has come by now
        end_all("rank " + std::to_string(whom) + " has left without what this rank waits for");
      }
      if (!said && waited >= longest_wait_) {
        const std::string name = whom < 0 ? "the others" : "rank " + std::to_string(whom);
        std::fprintf(stderr, "attune::MpiRanks: rank %d of %d has waited %.0f s for %s\n", rank_, size_,
                     waited.count(), name.c_str());
        for (int rank = 0; rank < size_; ++rank) {
          if (rank != rank_) announce(rank, kWaits);
        }
        said = true;
      } else if (waited >= 1.25 * longest_wait_) {  // every waiting rank has announced it by now
        end_all(who_hangs());
      }
    }
  }
  // The ranks that do not wait.
  [[nodiscard]] std::string who_hangs() const {
    std::string hanging;
    for (int rank = 0; rank < size_; ++rank) {
      if (rank == rank_ || announced(rank, kWaits)) continue;
      hanging += (hanging.empty() ? "rank " : ", rank ") + std::to_string(rank);
    }
    return hanging.empty() ? "all ranks wait for each other; they make different calls"
                           : hanging + ", which does not wait, hangs";
  }
  void end_all(const std::string& why) const {
    std::fprintf(stderr, "attune::MpiRanks: rank %d of %d aborts all ranks: %s\n", rank_, size_, why.c_str());
    MPI_Abort(ring_, 1);
  }

  const std::chrono::duration<double> longest_wait_;
  MPI_Comm ring_ = MPI_COMM_NULL;
  int rank_ = 0;
  int size_ = 1;
  std::vector<MPI_Request> sent_, announced_;
  int exceptions_ = std::uncaught_exceptions();
};

}  // namespace ATTUNE_NAMESPACE::host
