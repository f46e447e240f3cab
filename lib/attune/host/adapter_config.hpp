// adapter_config.json of Hugging Face's PEFT (peft/tuners/lora/config.py), for the adapters of
// exchange/peft_names.hpp. Needs nlohmann-json and a heap; never included by attune.hpp.
//
//   const std::string wrong = attune::host::wrong_in_adapter_config<Names>(text);
//   // "r is 8, that of the model is 4"
//   file << attune::host::adapter_config<Names>("bert-base-uncased");
//
// Names are the names of the module, or PeftNames of them. α must equal the model's. A file that holds only
// adapters does not contain α.
#pragma once

#include <set>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include <nlohmann/json.hpp>

#include <attune/exchange/peft_names.hpp>

namespace ATTUNE_NAMESPACE::host {

namespace detail {

template <class Names>
struct ModuleOf {
  using type = Names;
};
template <class Module>
struct ModuleOf<PeftNames<Module>> {
  using type = Module;
};

/// Values common to all adapters of a model.
struct Adapters {
  int count = 0;
  int rank = 0;
  double alpha = 0;
  bool alike = true;              // in rank and α
  std::set<std::string> modules;  // last parts of their names
};
template <class Names>
Adapters adapters() {
  Adapters all;
  attune::detail::for_each_adapter<typename ModuleOf<Names>::type>([&all](const auto& place,
                                                                          const auto& factors) {
    constexpr LowRank kOwn = std::remove_cvref_t<decltype(factors)>::kLowRank;
    if (all.count++ == 0) {
      all.rank = kOwn.rank;
      all.alpha = kOwn.alpha;
    }
    all.alike = all.alike && all.rank == kOwn.rank && !(all.alpha < kOwn.alpha) && !(kOwn.alpha < all.alpha);
    if (place.path.parent == nullptr) return;
    const std::string name = place.path.parent->name;
    all.modules.insert(name.substr(name.rfind('.') + 1));
  });
  return all;
}

}  // namespace detail

/// Compares the text of an adapter_config.json with the model. Returns the first difference as a sentence, or
/// nothing if all fits: LoRA of this rank and α, without variants that change the product (rank patterns,
/// rsLoRA, DoRA).
template <attune::detail::CheckedNames Names>
[[nodiscard]] std::string wrong_in_adapter_config(std::string_view text) {
  using Json = nlohmann::json;
  const Json config = Json::parse(text, nullptr, false);
  if (!config.is_object()) return "adapter_config.json is no JSON object";
  const detail::Adapters own = detail::adapters<Names>();
  if (own.count == 0 || !own.alike)
    return "the model has no adapters, or adapters of several ranks or alphas";
  const auto value = [&config](const char* key) { return config.contains(key) ? config[key] : Json(); };
  const std::pair<const char*, Json> expected[] = {
      {"peft_type", "LORA"}, {"r", own.rank}, {"lora_alpha", own.alpha}};
  for (const auto& [key, of_model] : expected) {
    if (value(key) == of_model) continue;
    return std::string(key) + " is " + value(key).dump() + ", that of the model is " + of_model.dump();
  }
  for (const char* key : {"use_rslora", "use_dora", "rank_pattern", "alpha_pattern"}) {
    const Json found = value(key);
    if (!found.is_null() && !found.empty() && found != false) {
      return std::string(key) + " is " + found.dump() + ", which the model's adapters have not";
    }
  }
  return {};
}

/// The text of an adapter_config.json for a model's adapters. Empty if they differ in rank or α. `base_model`
/// is its base_model_name_or_path.
template <attune::detail::CheckedNames Names>
[[nodiscard]] std::string adapter_config(std::string_view base_model = {}) {
  const detail::Adapters own = detail::adapters<Names>();
  if (own.count == 0 || !own.alike) return {};
  nlohmann::ordered_json config = {{"base_model_name_or_path", nullptr},
                                   {"bias", "none"},
                                   {"inference_mode", true},
                                   {"lora_alpha", own.alpha},
                                   {"lora_dropout", 0.0},
                                   {"peft_type", "LORA"},
                                   {"r", own.rank},
                                   {"target_modules", own.modules}};
  if (!base_model.empty()) config["base_model_name_or_path"] = base_model;
  return config.dump(2) + "\n";
}

}  // namespace ATTUNE_NAMESPACE::host
