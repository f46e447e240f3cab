#include <attune/kernels/ops/update.hpp>

#include "check.hpp"

namespace {

namespace kernels = attune::kernels;
using attune::Tensor;

constexpr int kMax = 71;

template <class Scalar>
struct State {
  Tensor<Scalar, 1, kMax> parameter, gradient, first, second;
  explicit State(std::uint64_t seed) {
    attune::Rng rng(seed);
    check::fill(parameter, rng);
    check::fill(gradient, rng);
    check::fill(first, rng);
    check::fill(second, rng, 0, 1);
  }
};

template <class Scalar>
constexpr kernels::AdamCoefficients<Scalar> kAdam{.beta1 = Scalar(0.9),
                                                  .one_minus_beta1 = Scalar(0.1),
                                                  .beta2 = Scalar(0.999),
                                                  .one_minus_beta2 = Scalar(0.001),
                                                  .step_size = Scalar(0.01),
                                                  .second_scale = Scalar(1.7),
                                                  .epsilon = Scalar(1e-8),
                                                  .decay = Scalar(0.9999),
                                                  .l2 = Scalar(0.02),
                                                  .gradient_scale = Scalar(0.7)};
template <class Scalar>
constexpr kernels::SgdCoefficients<Scalar> kSgd{.learning_rate = Scalar(0.01),
                                                .momentum = Scalar(0.9),
                                                .intake = Scalar(0.8),
                                                .l2 = Scalar(0.02),
                                                .gradient_scale = Scalar(0.7)};

// A call of size 1 has no room for a packet: element by element it is the scalar code.
template <bool kEpsilonInside, bool kCoupled, class Scalar>
void check_adam(int size) {
  State<Scalar> packets(71), scalars(71);
  kernels::adam_update<kEpsilonInside, kCoupled>(size, packets.parameter.data(), packets.gradient.data(),
                                                 packets.first.data(), packets.second.data(), kAdam<Scalar>);
  for (int i = 0; i < size; ++i) {
    kernels::adam_update<kEpsilonInside, kCoupled>(1, scalars.parameter.data() + i,
                                                   scalars.gradient.data() + i, scalars.first.data() + i,
                                                   scalars.second.data() + i, kAdam<Scalar>);
  }
  EXPECT_TRUE(check::same_bits(packets, scalars)) << size;
}
template <bool kMomentum, bool kNesterov, class Scalar>
void check_sgd(int size) {
  State<Scalar> packets(73), scalars(73);
  kernels::sgd_update<kMomentum, kNesterov>(size, packets.parameter.data(), packets.gradient.data(),
                                            packets.first.data(), kSgd<Scalar>);
  for (int i = 0; i < size; ++i) {
    kernels::sgd_update<kMomentum, kNesterov>(1, scalars.parameter.data() + i, scalars.gradient.data() + i,
                                              scalars.first.data() + i, kSgd<Scalar>);
  }
  EXPECT_TRUE(check::same_bits(packets, scalars)) << size;
}

constexpr int kSizes[] = {1, 2, 3, 5, 7, 8, 9, 15, 16, 17, 31, 33, 63, 71};

template <class Scalar>
void check_every_adam(int size) {
  check_adam<false, false, Scalar>(size);
  check_adam<true, false, Scalar>(size);
  check_adam<false, true, Scalar>(size);
  check_adam<true, true, Scalar>(size);
}

}  // namespace

TEST(Update, adam_clears_gradients_and_has_the_bits_of_the_update_alone) {
  for (const int size : {1, 2, 3, 16, 33, kMax}) {
    State<float> updated(79), cleared(79);
    kernels::adam_update<false, false>(size, updated.parameter.data(), updated.gradient.data(),
                                       updated.first.data(), updated.second.data(), kAdam<float>);
    for (int i = 0; i < size; ++i) updated.gradient.values[i] = 0;
    kernels::adam_update_and_clear<false, false>(size, cleared.parameter.data(), cleared.gradient.data(),
                                                 cleared.first.data(), cleared.second.data(), kAdam<float>);
    EXPECT_TRUE(check::same_bits(updated, cleared)) << size;
  }
}

TEST(Update, adam_of_packets_has_the_bits_of_scalars) {
  for (const int size : kSizes) {
    check_every_adam<float>(size);
    check_every_adam<double>(size);
  }
}

TEST(Update, sgd_of_packets_has_the_bits_of_scalars) {
  for (const int size : kSizes) {
    check_sgd<false, false, float>(size);
    check_sgd<true, false, float>(size);
    check_sgd<true, true, float>(size);
    check_sgd<true, true, double>(size);
  }
}
