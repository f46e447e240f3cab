// What a model of models.hpp is, as JSON, for programs in Python.
#pragma once

#include <string>

#include "models.hpp"

namespace bench {

inline std::string text_of(const attune::TensorPath* path) {
  if (!path) return "";
  const std::string parent = text_of(path->parent);
  return (parent.empty() ? parent : parent + '.') + path->name;
}

/// Its shape, its multiply-accumulates and, in the order of memory, its tensors: [name, rows, cols].
template <ModelShape s>
std::string description(const typename Model<s>::Parameters& parameters) {
  std::string json = "{";
  const auto add = [&json](const char* key, long value) {
    json += '"' + std::string(key) + "\": " + std::to_string(value) + ", ";
  };
  add("kind", static_cast<long>(s.kind));
  add("seq_len", s.seq_len);
  add("d_in", s.d_in);
  add("d_model", s.d_model);
  add("num_layers", s.num_layers);
  add("num_heads", s.num_heads);
  add("num_kv_heads", s.num_kv_heads);
  add("d_head", s.d_head);
  add("d_ff", s.d_ff);
  add("d_out", s.d_out);
  add("norm_before", s.norm == attune::NormPlacement::kBefore);
  add("outputs", Model<s>::Output::rows);
  add("forward_macs", forward_macs(s));
  add("step_macs", step_macs(s));
  json += "\"tensors\": [";
  attune::for_each_tensor(
      [&](const attune::TensorPath& path, const auto& tensor) {
        json += "[\"" + text_of(&path) + "\", " + std::to_string(tensor.rows) + ", " +
                std::to_string(tensor.cols) + "], ";
      },
      parameters);
  json.resize(json.size() - 2);
  return json + "]}";
}

}  // namespace bench
