#if __has_include(<nlohmann/json.hpp>)
#include <attune/host/adapter_config.hpp>

#include <string>
#include <string_view>
#include <utility>

#include <attune/exchange/hugging_face_names.hpp>
#include <attune/models/sequential.hpp>

#include "check.hpp"

namespace {

using namespace attune;

constexpr EncoderLayerShape kBlock{
    .attention = {.seq_len = 2, .d_model = 2, .num_heads = 1}, .d_ff = 3, .epsilon = 1e-12};
using Encoder = Repeat<2, EncoderLayer<kBlock>>;
constexpr Encoder::Parameters kEncoder{};
using Model = Adapted<Encoder, kEncoder, LowRank{.rank = 4, .alpha = 16}>;
using Names = PeftNames<PyTorchPart<HuggingFaceModule<kBertLayer, Model>, "encoder.layer">>;

// As PEFT writes it, but for entries that say nothing.
constexpr std::string_view kConfig = R"({
  "alpha_pattern": {}, "auto_mapping": null, "base_model_name_or_path": "bert-base-uncased", "bias": "none",
  "fan_in_fan_out": false, "inference_mode": true, "init_lora_weights": true, "lora_alpha": 16, "lora_dropout": 0.1,
  "modules_to_save": null, "peft_type": "LORA", "r": 4, "rank_pattern": {}, "target_modules": ["query", "value"],
  "task_type": null, "use_dora": false, "use_rslora": false})";

std::string with(std::string_view from, std::string_view to) {
  std::string text(kConfig);
  return text.replace(text.find(from), from.size(), to);
}

}  // namespace

TEST(AdapterConfig, a_matching_file_has_no_problem) {
  EXPECT_EQ(host::wrong_in_adapter_config<Names>(kConfig), "");
  EXPECT_EQ(host::wrong_in_adapter_config<Names>(host::adapter_config<Names>("base")), "");
}

TEST(AdapterConfig, of_another_rank_alpha_or_kind_is_named) {
  const auto wrong = [](std::string_view from, std::string_view to) {
    return host::wrong_in_adapter_config<Names>(with(from, to));
  };
  EXPECT_EQ(wrong("\"r\": 4", "\"r\": 8"), "r is 8, the model's is 4");
  EXPECT_EQ(wrong("\"lora_alpha\": 16, ", ""), "lora_alpha is null, the model's is 16.0");
  EXPECT_EQ(wrong("\"lora_alpha\": 16", "\"lora_alpha\": 32"), "lora_alpha is 32, the model's is 16.0");
  EXPECT_EQ(wrong("LORA", "IA3"), "peft_type is \"IA3\", the model's is \"LORA\"");
  EXPECT_EQ(wrong("\"use_rslora\": false", "\"use_rslora\": true"),
            "use_rslora is true, which the model's adapters do not support");
  EXPECT_EQ(wrong("\"rank_pattern\": {}", "\"rank_pattern\": {\"q\": 2}"),
            "rank_pattern is {\"q\":2}, which the model's adapters do not support");
  EXPECT_EQ(host::wrong_in_adapter_config<Names>("{"), "adapter_config.json is not a JSON object");
}

namespace {

std::string wrong_with(std::string_view field) {
  return host::wrong_in_adapter_config<Names>(with("\"r\": 4", "\"r\": 4, " + std::string(field)));
}
std::string wrong_start(std::string_view start) {
  return host::wrong_in_adapter_config<Names>(
      with("\"init_lora_weights\": true", "\"init_lora_weights\": " + std::string(start)));
}

}  // namespace

// peft/tuners/lora/config.py and layer.py, version 0.20.
TEST(AdapterConfig, starts_that_change_the_base_are_refused) {
  for (const char* start : {"false", "null", "\"gaussian\"", "\"eva\"", "\"orthogonal\"", "\"mica\""}) {
    EXPECT_EQ(wrong_start(start), "") << start;
  }
  for (const char* start :
       {"\"pissa\"", "\"pissa_niter_16\"", "\"olora\"", "\"corda\"", "\"loftq\"", "\"lora_ga\""}) {
    EXPECT_EQ(wrong_start(start),
              "init_lora_weights is " + std::string(start) +
                  ", which changes the weights of the base; save the adapter for the unchanged base "
                  "(path_initial_model_for_weight_conversion)");
  }
  EXPECT_EQ(wrong_start("\"of_tomorrow\""),
            "init_lora_weights is \"of_tomorrow\", which is unknown and may change the base");
}

TEST(AdapterConfig, fields_that_change_the_product_are_named) {
  for (const auto& [field, value] : {std::pair<std::string, std::string>{"alora_invocation_tokens", "[1,2]"},
                                     {"arrow_config", "{\"top_k\":3}"},
                                     {"corda_config", "{\"corda_method\":\"ipm\"}"},
                                     {"ensure_weight_tying", "true"},
                                     {"kasa_config", "{\"beta\":0.1}"},
                                     {"layer_replication", "[[0,4],[2,5]]"},
                                     {"layers_pattern", "\"layers\""},
                                     {"layers_to_transform", "[0,1]"},
                                     {"layers_to_transform", "0"},
                                     {"loftq_config", "{\"loftq_bits\":4}"},
                                     {"lora_bias", "true"},
                                     {"lora_ga_config", "{\"direction\":\"ArB2r\"}"},
                                     {"megatron_config", "{\"a\":1}"},
                                     {"monteclora_config", "{\"a\":1}"},
                                     {"target_parameters", "[\"experts.gate\"]"},
                                     {"trainable_token_indices", "[7]"},
                                     {"use_bdlora", "{\"nblocks\":2}"},
                                     {"use_qalora", "true"},
                                     {"velora_config", "{\"num_groups\":64}"}}) {
    EXPECT_EQ(wrong_with("\"" + field + "\": " + value),
              field + " is " + value + ", which the model's adapters do not support");
    for (const char* unset : {"null", "false", "[]", "{}"}) {
      EXPECT_EQ(wrong_with("\"" + field + "\": " + unset), "") << field;
    }
  }
  EXPECT_EQ(host::wrong_in_adapter_config<Names>(with("\"bias\": \"none\"", "\"bias\": \"lora_only\"")),
            "bias is \"lora_only\", which the model's adapters do not support");
  EXPECT_EQ(
      host::wrong_in_adapter_config<Names>(with("\"alpha_pattern\": {}", "\"alpha_pattern\": {\"q\": 8}")),
      "alpha_pattern is {\"q\":8}, which the model's adapters do not support");
  EXPECT_EQ(host::wrong_in_adapter_config<Names>(with("\"use_dora\": false", "\"use_dora\": true")),
            "use_dora is true, which the model's adapters do not support");
}

TEST(AdapterConfig, an_unknown_field_that_is_set_is_named) {
  EXPECT_EQ(wrong_with("\"use_tomorrow\": true"),
            "use_tomorrow is true, an unknown field that may change the product");
  EXPECT_EQ(wrong_with("\"use_tomorrow\": 0.5"),
            "use_tomorrow is 0.5, an unknown field that may change the product");
  EXPECT_EQ(wrong_with("\"use_tomorrow\": false"), "");
  EXPECT_EQ(
      wrong_with(
          "\"peft_version\": \"0.20.0\", \"megatron_core\": \"megatron.core\", \"qalora_group_size\": 16"),
      "");
}

TEST(AdapterConfig, lists_of_modules_come_from_the_model) {
  const auto targets = [](std::string_view list) {
    return host::wrong_in_adapter_config<Names>(with("[\"query\", \"value\"]", list));
  };
  EXPECT_EQ(targets("[\"attention.self.query\", \"value\"]"), "");
  EXPECT_EQ(targets("\".*(query|value)\""), "");
  EXPECT_EQ(targets("[\"query\", \"key\", \"value\"]"),
            "target_modules has \"key\", a module without adapters in the model");
  EXPECT_EQ(targets("[\"query\"]"),
            "target_modules lacks encoder.layer.0.attention.self.value, which has adapters in the model");
  EXPECT_EQ(wrong_with("\"exclude_modules\": [\"key\"]"), "");
  EXPECT_EQ(wrong_with("\"exclude_modules\": [\"0.attention.self.query\"]"),
            "exclude_modules has encoder.layer.0.attention.self.query, which has adapters in the model");
  EXPECT_EQ(wrong_with("\"exclude_modules\": \".*key\""),
            "exclude_modules is an expression, \".*key\"; list names");
  EXPECT_EQ(host::wrong_in_adapter_config<Names>(
                with("\"modules_to_save\": null", "\"modules_to_save\": [\"classifier\"]")),
            "modules_to_save has \"classifier\", a module that the model does not train");
}

TEST(AdapterConfig, modules_to_save_are_the_trained_ones) {
  using Headed = Sequential<Model, Linear<LinearShape{2, 2, 3}>>;
  using HeadedNames = PeftNames<HuggingFaceModule<kBertLayer, Headed, "encoder.layer", "classifier">>;
  const std::string own = host::adapter_config<HeadedNames>();
  const auto saving = [&own](std::string_view list) {
    return host::wrong_in_adapter_config<HeadedNames>("{\"modules_to_save\": " + std::string(list) + "," +
                                                      own.substr(1));
  };
  EXPECT_EQ(saving("[\"classifier\"]"), "");
  EXPECT_EQ(saving("[\"classifier\", \"score\"]"), "");  // as PEFT writes it of a model for classes
  EXPECT_EQ(saving("[\"classifier\", \"lm_head\"]"),
            "modules_to_save has \"lm_head\", a module that the model does not train");
}

TEST(AdapterConfig, is_written_with_the_modules_that_have_factors) {
  const std::string text = host::adapter_config<Names>("bert-base-uncased");
  EXPECT_NE(text.find("\"target_modules\": [\n    \"query\",\n    \"value\"\n  ]"), std::string::npos);
  EXPECT_NE(text.find("\"base_model_name_or_path\": \"bert-base-uncased\""), std::string::npos);
}
#endif
