// Inference of a single sequence on several threads of a PC.
//
//   attune::host::ParallelInference<Model> inference(4);
//   inference.forward(parameters, x, y);
//
// The bits equal Model::forward's for any number of threads (shared_slices.hpp explains why). For many
// sequences at once, one sequence per thread is faster, because threads then do not wait for each other.
// ThreadPool::for_each does that, with a scratch for each thread.
#pragma once

#include <cstddef>
#include <memory>

#include <attune/execution/layer.hpp>
#include <attune/execution/layer_calls.hpp>
#include <attune/host/shared_slices.hpp>
#include <attune/host/thread_pool.hpp>
#include <attune/training/shared_buffers.hpp>

namespace ATTUNE_NAMESPACE::host {

/// Threads, and the inference scratch of each, on the heap. Call its functions from one thread at a time.
template <attune::detail::CheckedLayer Model>
class ParallelInference {
 public:
  using Input = typename Model::Input;
  using Output = typename Model::Output;
  using ForwardResult = attune::detail::ForwardResult<Model>;  // void, or a Status if ids can be refused

  /// Starts the threads; the caller is one of them. 0 or less: as many as the process may run at once.
  explicit ParallelInference(int threads = 0)
      : pool_(threads),
        scratch_(
            std::make_unique<typename Model::InferenceScratch[]>(static_cast<std::size_t>(pool_.threads()))) {
  }

  /// y[rows, cols] from x[rows, cols], on all threads. `y` may not overlap `x`.
  template <class Set = typename Model::Parameters, class Mask = NoMask>
  ForwardResult forward(const Set& parameters, ConstView<Input> x, View<Output> y, const Mask& mask = {}) {
    const auto run = [&](const auto& slices) {
      return attune::detail::forward_pass<Model>(context_for<Model>(mask, slices), parameters, x, y,
                                                 scratch_[0]);
    };
    if (pool_.threads() == 1) return ForwardResult(run(RunToCompletion{}));
    return ForwardResult(pass_.run(scratch_.get(), [&](const SharedSlices& slices) { (void)run(slices); }));
  }
  [[nodiscard]] int threads() const { return pool_.threads(); }

 private:
  ThreadPool pool_;
  SharedPass pass_{pool_};
  std::unique_ptr<typename Model::InferenceScratch[]> scratch_;
};

}  // namespace ATTUNE_NAMESPACE::host
