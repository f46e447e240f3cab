#if __has_include(<nlohmann/json.hpp>)
#include <attune/host/adapter_config.hpp>

#include <attune/exchange/hugging_face_names.hpp>

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

TEST(AdapterConfig, that_fits_has_nothing_wrong) {
  EXPECT_EQ(host::wrong_in_adapter_config<Names>(kConfig), "");
  EXPECT_EQ(host::wrong_in_adapter_config<Names>(host::adapter_config<Names>("base")), "");
}

TEST(AdapterConfig, of_another_rank_alpha_or_kind_is_named) {
  const auto wrong = [](std::string_view from, std::string_view to) {
    return host::wrong_in_adapter_config<Names>(with(from, to));
  };
  EXPECT_EQ(wrong("\"r\": 4", "\"r\": 8"), "r is 8, that of the model is 4");
  EXPECT_EQ(wrong("\"lora_alpha\": 16, ", ""), "lora_alpha is null, that of the model is 16.0");
  EXPECT_EQ(wrong("\"lora_alpha\": 16", "\"lora_alpha\": 32"), "lora_alpha is 32, that of the model is 16.0");
  EXPECT_EQ(wrong("LORA", "IA3"), "peft_type is \"IA3\", that of the model is \"LORA\"");
  EXPECT_EQ(wrong("\"use_rslora\": false", "\"use_rslora\": true"),
            "use_rslora is true, which the model's adapters have not");
  EXPECT_EQ(wrong("\"rank_pattern\": {}", "\"rank_pattern\": {\"q\": 2}"),
            "rank_pattern is {\"q\":2}, which the model's adapters have not");
  EXPECT_EQ(host::wrong_in_adapter_config<Names>("{"), "adapter_config.json is no JSON object");
}

TEST(AdapterConfig, is_written_with_the_modules_that_have_factors) {
  const std::string text = host::adapter_config<Names>("bert-base-uncased");
  EXPECT_NE(text.find("\"target_modules\": [\n    \"query\",\n    \"value\"\n  ]"), std::string::npos);
  EXPECT_NE(text.find("\"base_model_name_or_path\": \"bert-base-uncased\""), std::string::npos);
}
#endif
