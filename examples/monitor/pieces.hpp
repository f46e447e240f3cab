// Training in pieces, all of it in the first one.
#pragma once

#include <attune/attune.hpp>

namespace attune::inline ATTUNE_ARITHMETIC {

template <class Work>
class InOnePiece {
 public:
  explicit InOnePiece(const Work& work) : work_(work) {}
  bool advance() {
    if (done_) return false;
    result_ = work_();
    return done_ = true;
  }
  [[nodiscard]] auto result() const { return result_; }

 private:
  Work work_;
  std::invoke_result_t<Work> result_{};
  bool done_ = false;
};

template <class Model>
auto infer_in_pieces(const typename Model::Parameters& parameters, const typename Model::Input& x,
                     typename Model::Output& y, typename Model::InferenceScratch& scratch) {
  return InOnePiece([&parameters, &x, &y, &scratch] {
    Model::forward(parameters, x, y, scratch);
    return true;
  });
}

template <class Base>
class TrainerInOnePiece : public Base {
 public:
  auto accumulate_in_pieces(typename Base::InputView x, typename Base::TargetView target) {
    return InOnePiece([this, x, target] { return this->accumulate(x, target); });
  }
  auto update_in_pieces(const typename Base::Options& options) {
    return InOnePiece([this, options] { return this->update(options); });
  }
};

}  // namespace attune::inline ATTUNE_ARITHMETIC
