// expect: attune::ClosedFormHead: the base has more classes than the head; give the head all of them
#include <attune/attune.hpp>

using Device = attune::ClosedFormHead<8, 3>;
using Base = attune::Linear<attune::LinearShape{.rows = 1, .d_in = 8, .d_out = 5}>;
attune::Status f(const Device& device, const Base::Parameters& base, Device::Head::Parameters& head,
                 Device::Scratch& scratch) {
  return device.solve(base, Device{}, head, scratch);
}
