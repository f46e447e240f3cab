// Rotary positions by given angles, sequence by sequence, and head by head where they are not side by side.
#pragma once

#include "report.hpp"

namespace conformance {

template <class Scalar>
struct RotaryData {
  int batch;
  int heads;             // that come one after the other
  const Scalar* input;   // [batch, heads, seq_len, columns]
  const Scalar* cosine;  // [batch, seq_len, rotary_dim/2]
  const Scalar* sine;
};

template <attune::RotaryShape shape, class Scalar>
void rotary_case(const RotaryData<Scalar>& data) {
  using Layer = attune::RotaryPositions<shape, Scalar>;
  static typename Layer::Table table;
  static typename Layer::Output y;
  constexpr int kAngles = decltype(table.cosine)::size;
  for (int i = 0; i < data.batch * data.heads; ++i) {
    for (int k = 0; k < kAngles; ++k) {
      table.cosine.values[k] = data.cosine[i / data.heads * kAngles + k];
      table.sine.values[k] = data.sine[i / data.heads * kAngles + k];
    }
    Layer::forward(attune::ConstView<typename Layer::Input>(data.input + i * Layer::Input::size), y, table);
    report(y, "out");
  }
}

}  // namespace conformance
