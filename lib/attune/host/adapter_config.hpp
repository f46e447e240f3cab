// adapter_config.json of Hugging Face's PEFT (peft/tuners/lora/config.py), for the adapters of
// exchange/peft_names.hpp. Needs nlohmann-json and a heap; never included by attune.hpp.
//
//   const std::string wrong = attune::host::wrong_in_adapter_config<Names>(text);
//   // "r is 8, the model's is 4"
//   file << attune::host::adapter_config<Names>("bert-base-uncased");
//
// Names are the names of the module, or PeftNames of them. α must equal the model's. A file that holds only
// adapters does not contain α.
#pragma once

#include <algorithm>
#include <set>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

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

inline std::string path_of(const TensorPath& path) {
  return path.parent == nullptr ? path.name : path_of(*path.parent) + "." + path.name;
}

/// Values common to all adapters of a model.
struct Adapters {
  int count = 0;
  int rank = 0;
  double alpha = 0;
  bool alike = true;                 // in rank and α
  std::set<std::string> modules;     // last parts of their names
  std::vector<std::string> paths;    // their full names
  std::vector<std::string> trained;  // full names of modules that are trained as they are
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
    all.paths.push_back(path_of(*place.path.parent));
    all.modules.insert(all.paths.back().substr(all.paths.back().rfind('.') + 1));
  });
  ModuleOf<Names>::type::visit(
      [&all](const auto& place, auto&& leaf) {
        using Leaf = std::remove_cvref_t<decltype(leaf)>;
        if constexpr (attune::detail::IsTrained<Leaf> && !attune::detail::IsLowRank<Leaf>) {
          if (place.path.parent != nullptr) all.trained.push_back(path_of(*place.path.parent));
        }
      },
      nullptr,
      attune::detail::SetOf<typename Names::Model, attune::detail::Extents, attune::detail::Extents>{});
  return all;
}

using Json = nlohmann::json;

/// Whether a list of PEFT means this module: its name, or the end of its name from a dot on.
inline bool means(const std::string& entry, const std::string& path) {
  return path == entry || path.ends_with("." + entry);
}
inline bool any_means(const Json& entries, const std::string& path) {
  return std::any_of(entries.begin(), entries.end(), [&](const Json& entry) {
    return entry.is_string() && means(entry.get<std::string>(), path);
  });
}
inline bool any_means(const Json& entries, const std::vector<std::string>& paths) {
  return std::any_of(paths.begin(), paths.end(), [&](const auto& path) { return any_means(entries, path); });
}
/// The first entry of a list that means none of the modules, or nothing.
inline std::string entry_of_none(const Json& entries, const std::vector<std::string>& paths) {
  for (const Json& entry : entries) {
    const bool is_there = entry.is_string() && std::any_of(paths.begin(), paths.end(), [&](const auto& path) {
                            return means(entry.get<std::string>(), path);
                          });
    if (!is_there) return entry.dump();
  }
  return {};
}

/// The first error in the lists of modules, or nothing.
inline std::string wrong_in_modules(const Json& config, const Adapters& own) {
  const auto list = [&config](const char* key) {
    return config.contains(key) && config[key].is_array() ? config[key] : Json::array();
  };
  const Json targets = list("target_modules");
  if (const std::string entry = entry_of_none(targets, own.paths); !entry.empty())
    return "target_modules has " + entry + ", a module without adapters in the model";
  for (const std::string& path : own.paths) {
    if (!targets.empty() && !any_means(targets, path))
      return "target_modules lacks " + path + ", which has adapters in the model";
    if (any_means(list("exclude_modules"), path))
      return "exclude_modules has " + path + ", which has adapters in the model";
  }
  if (config.contains("exclude_modules") && config["exclude_modules"].is_string())
    return "exclude_modules is an expression, " + config["exclude_modules"].dump() + "; list names";
  Json saved = list("modules_to_save");
  // PEFT lists both names of a head for classes, whichever the model has.
  const bool has_head = any_means({"classifier", "score"}, own.trained);
  for (auto entry = saved.begin(); has_head && entry != saved.end();) {
    entry = *entry == "classifier" || *entry == "score" ? saved.erase(entry) : entry + 1;
  }
  if (const std::string entry = entry_of_none(saved, own.trained); !entry.empty())
    return "modules_to_save has " + entry + ", a module that the model does not train";
  return {};
}
/// The error of init_lora_weights, or nothing: some initializations change the weights of the base.
inline std::string wrong_in_start(const Json& start) {
  if (start.is_null() || start.is_boolean()) return {};
  const std::string name = start.is_string() ? start.get<std::string>() : start.dump();
  for (const char* unchanged : {"gaussian", "eva", "orthogonal", "mica"}) {
    if (name == unchanged) return {};
  }
  for (const char* changes : {"pissa", "olora", "corda", "loftq", "lora_ga"}) {
    if (name.starts_with(changes))
      return "init_lora_weights is " + start.dump() +
             ", which changes the weights of the base; save the adapter for the unchanged base "
             "(path_initial_model_for_weight_conversion)";
  }
  return "init_lora_weights is " + start.dump() + ", which is unknown and may change the base";
}
/// The first other field that is set and not known to leave base and product unchanged, or nothing.
inline std::string wrong_in_fields(const Json& config) {
  // Fields of peft 0.20 that do not change the base or the product, and those that are compared elsewhere.
  static const std::set<std::string> kFits = {"auto_mapping",
                                              "base_model_name_or_path",
                                              "eva_config",
                                              "exclude_modules",
                                              "fan_in_fan_out",
                                              "inference_mode",
                                              "init_lora_weights",
                                              "lora_alpha",
                                              "lora_dropout",
                                              "megatron_core",
                                              "modules_to_save",
                                              "peft_type",
                                              "peft_version",
                                              "qalora_group_size",
                                              "r",
                                              "revision",
                                              "runtime_config",
                                              "target_modules",
                                              "task_type"};
  static const std::set<std::string> kVariants = {"alora_invocation_tokens",
                                                  "alpha_pattern",
                                                  "arrow_config",
                                                  "bias",
                                                  "corda_config",
                                                  "ensure_weight_tying",
                                                  "kasa_config",
                                                  "layer_replication",
                                                  "layers_pattern",
                                                  "layers_to_transform",
                                                  "loftq_config",
                                                  "lora_bias",
                                                  "lora_ga_config",
                                                  "megatron_config",
                                                  "monteclora_config",
                                                  "rank_pattern",
                                                  "target_parameters",
                                                  "trainable_token_indices",
                                                  "use_bdlora",
                                                  "use_dora",
                                                  "use_qalora",
                                                  "use_rslora",
                                                  "velora_config"};
  for (const auto& [key, value] : config.items()) {
    const bool is_unset = value.is_null() || value == false || value == "" ||
                          (value.is_structured() && value.empty()) || (key == "bias" && value == "none");
    if (is_unset || kFits.contains(key)) continue;
    return key + " is " + value.dump() +
           (kVariants.contains(key) ? ", which the model's adapters do not support"
                                    : ", an unknown field that may change the product");
  }
  return {};
}

}  // namespace detail

/// Compares the text of an adapter_config.json with the model. Returns the first difference as a sentence, or
/// nothing if all fits: LoRA of this rank and α for these modules, beside an unchanged base. Refuses every
/// variant that changes the base or the product, and every field that is set and unknown. Expressions in
/// target_modules are not compared: read_safetensors() names a tensor that is missing.
template <attune::detail::CheckedNames Names>
[[nodiscard]] std::string wrong_in_adapter_config(std::string_view text) {
  using detail::Json;
  const Json config = Json::parse(text, nullptr, false);
  if (!config.is_object()) return "adapter_config.json is not a JSON object";
  const detail::Adapters own = detail::adapters<Names>();
  if (own.count == 0 || !own.alike)
    return "the model has no adapters, or adapters of several ranks or alphas";
  const auto value = [&config](const char* key) { return config.contains(key) ? config[key] : Json(); };
  const std::pair<const char*, Json> expected[] = {
      {"peft_type", "LORA"}, {"r", own.rank}, {"lora_alpha", own.alpha}};
  for (const auto& [key, of_model] : expected) {
    if (value(key) == of_model) continue;
    return std::string(key) + " is " + value(key).dump() + ", the model's is " + of_model.dump();
  }
  std::string wrong = detail::wrong_in_start(value("init_lora_weights"));
  if (wrong.empty()) wrong = detail::wrong_in_fields(config);
  return wrong.empty() ? detail::wrong_in_modules(config, own) : wrong;
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
