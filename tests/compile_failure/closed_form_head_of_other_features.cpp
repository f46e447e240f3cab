// expect: attune::ClosedFormHead: the base's weight must be [num_features, classes]
#include <attune/attune.hpp>

using Device = attune::ClosedFormHead<8, 3>;
using Base = attune::Linear<attune::LinearShape{.rows = 1, .d_in = 4, .d_out = 3}>;
attune::Status f(const Device& device, const Base::Parameters& base, Device::Head::Parameters& head,
                 Device::Scratch& scratch) {
  return device.solve(base, Device{}, head, scratch);
}
