#include "forge/hf_config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "forge/synth_layout.h"
#include "testing/temp_folder.h"

namespace troupe {
namespace {

using ::testing::HasSubstr;

// The fields that matter of the published files, with some that do not.
constexpr std::string_view kOlmoe = R"({"model_type": "olmoe", "hidden_act": "silu",
  "clip_qkv": null, "attention_bias": false, "hidden_size": 2048, "intermediate_size": 1024,
  "max_position_embeddings": 4096, "norm_topk_prob": false, "num_attention_heads": 16,
  "num_experts": 64, "num_experts_per_tok": 8, "num_hidden_layers": 16, "num_key_value_heads": 16,
  "rms_norm_eps": 1e-05, "rope_scaling": null, "rope_theta": 10000.0, "torch_dtype": "float32",
  "tie_word_embeddings": false, "vocab_size": 50304})";
constexpr std::string_view kQwen2Moe = R"({"model_type": "qwen2_moe", "hidden_act": "silu",
  "hidden_size": 2048, "intermediate_size": 5632, "max_position_embeddings": 8192,
  "num_attention_heads": 16, "num_hidden_layers": 24, "num_key_value_heads": 16,
  "rms_norm_eps": 1e-06, "rope_theta": 1000000.0, "vocab_size": 151936, "decoder_sparse_step": 1,
  "moe_intermediate_size": 1408, "shared_expert_intermediate_size": 5632, "num_experts_per_tok": 4,
  "num_experts": 60, "norm_topk_prob": false, "use_sliding_window": false})";
constexpr std::string_view kQwen3Moe = R"({"model_type": "qwen3_moe", "attention_bias": false,
  "head_dim": 128, "hidden_size": 2048, "intermediate_size": 6144, "decoder_sparse_step": 1,
  "max_position_embeddings": 40960, "mlp_only_layers": [], "moe_intermediate_size": 768,
  "norm_topk_prob": true, "num_attention_heads": 32, "num_experts": 128, "num_experts_per_tok": 8,
  "num_hidden_layers": 48, "num_key_value_heads": 4, "rms_norm_eps": 1e-06, "rope_scaling": null,
  "rope_theta": 1000000.0, "tie_word_embeddings": false, "vocab_size": 151936})";
constexpr std::string_view kMixtral = R"({"model_type": "mixtral", "hidden_act": "silu",
  "hidden_size": 4096, "intermediate_size": 14336, "max_position_embeddings": 32768,
  "num_attention_heads": 32, "num_experts_per_tok": 2, "num_hidden_layers": 32,
  "num_key_value_heads": 8, "num_local_experts": 8, "rms_norm_eps": 1e-05,
  "rope_theta": 1000000.0, "sliding_window": null, "vocab_size": 32000})";
constexpr std::string_view kDeepseek = R"({"model_type": "deepseek", "attention_bias": false,
  "first_k_dense_replace": 1, "hidden_size": 2048, "intermediate_size": 10944,
  "max_position_embeddings": 4096, "moe_intermediate_size": 1408, "moe_layer_freq": 1,
  "n_routed_experts": 64, "n_shared_experts": 2, "norm_topk_prob": false,
  "num_attention_heads": 16, "num_experts_per_tok": 6, "num_hidden_layers": 28,
  "num_key_value_heads": 16, "rms_norm_eps": 1e-06, "rope_scaling": null, "rope_theta": 10000,
  "scoring_func": "softmax", "vocab_size": 102400})";
constexpr std::string_view kDeepseek2 = R"({"model_type": "deepseek_v2", "attention_bias": false,
  "first_k_dense_replace": 1, "hidden_size": 2048, "intermediate_size": 10944,
  "kv_lora_rank": 512, "max_position_embeddings": 163840, "moe_intermediate_size": 1408,
  "moe_layer_freq": 1, "n_group": 1, "n_routed_experts": 64, "n_shared_experts": 2,
  "norm_topk_prob": false, "num_attention_heads": 16, "num_experts_per_tok": 6,
  "num_hidden_layers": 27, "num_key_value_heads": 16, "q_lora_rank": null,
  "qk_nope_head_dim": 128, "qk_rope_head_dim": 64, "rms_norm_eps": 1e-06,
  "rope_scaling": {"beta_fast": 32, "beta_slow": 1, "factor": 40, "mscale": 0.707,
    "mscale_all_dim": 0.707, "original_max_position_embeddings": 4096, "type": "yarn"},
  "rope_theta": 10000, "routed_scaling_factor": 1.0, "scoring_func": "softmax", "topk_group": 1,
  "topk_method": "greedy", "v_head_dim": 128, "vocab_size": 102400})";

struct Case {
  std::string_view json;
  const char* shape;
};

// As openai/gpt-oss-20b has it, without what the reader does not ask for.
constexpr const char* kGptOss = R"({
  "attention_bias": true, "head_dim": 64, "hidden_act": "silu", "hidden_size": 2880,
  "intermediate_size": 2880, "max_position_embeddings": 131072, "model_type": "gpt_oss",
  "num_attention_heads": 64, "num_experts_per_tok": 4, "num_hidden_layers": 24,
  "num_key_value_heads": 8, "num_local_experts": 32, "rms_norm_eps": 1e-05,
  "rope_scaling": {"beta_fast": 32.0, "beta_slow": 1.0, "factor": 32.0,
                   "original_max_position_embeddings": 4096, "rope_type": "yarn",
                   "truncate": false},
  "rope_theta": 150000, "sliding_window": 128, "swiglu_limit": 7.0, "tie_word_embeddings": false,
  "vocab_size": 201088})";

class PublishedConfigs : public ::testing::TestWithParam<Case> {};

TEST_P(PublishedConfigs, GiveTheShapeOfTheSameName) {
  Result<ModelShape> read = ParseHfConfig(GetParam().json, GetParam().shape);
  ASSERT_TRUE(read.ok()) << read.status().ToString();
  const ModelShape* known = FindShape(GetParam().shape);
  ASSERT_NE(known, nullptr);
  read->name = known->name;
  for (const bool combined : {false, true}) {
    const SynthLayout layout{.combined_kv = combined};
    EXPECT_EQ(MetadataOf(*read, layout), MetadataOf(*known, layout));
    const std::vector<SynthTensor> a = TensorsOf(*read, layout), b = TensorsOf(*known, layout);
    ASSERT_EQ(a.size(), b.size());
    for (std::size_t i = 0; i < a.size(); ++i) EXPECT_EQ(a[i].spec, b[i].spec);
  }
}

INSTANTIATE_TEST_SUITE_P(
    All, PublishedConfigs,
    ::testing::Values(Case{kOlmoe, "olmoe-1b-7b"}, Case{kQwen2Moe, "qwen1.5-moe-a2.7b"},
                      Case{kQwen3Moe, "qwen3-30b-a3b"}, Case{kMixtral, "mixtral-8x7b"},
                      Case{kDeepseek, "deepseek-moe-16b"}, Case{kDeepseek2, "deepseek-v2-lite"},
                      Case{kGptOss, "gpt-oss-20b"}));

std::string Replaced(std::string_view json, std::string_view from, std::string_view to) {
  std::string text(json);
  const std::size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

// The message of the error that the text must give.
std::string ErrorOf(std::string_view json) {
  const Result<ModelShape> shape = ParseHfConfig(json, "a/config.json");
  EXPECT_FALSE(shape.ok());
  return shape.ok() ? "" : shape.status().message();
}

TEST(HfConfig, ReadsRoutingAsDeepseekV3HasIt) {
  std::string json = Replaced(kDeepseek2, "\"deepseek_v2\"", "\"deepseek_v3\"");
  json = Replaced(json, "\"n_group\": 1", "\"n_group\": 8");
  json = Replaced(json, "\"topk_group\": 1", "\"topk_group\": 4");
  json = Replaced(json, "\"softmax\"", "\"sigmoid\"");
  json = Replaced(json, "\"greedy\"", "\"noaux_tc\"");
  json = Replaced(json, "\"q_lora_rank\": null", "\"q_lora_rank\": 1536");
  const Result<ModelShape> shape = ParseHfConfig(json, "v3.json");
  ASSERT_TRUE(shape.ok()) << shape.status().ToString();
  EXPECT_EQ(shape->experts->groups, 8u);
  EXPECT_EQ(shape->experts->groups_used, 4u);
  EXPECT_TRUE(shape->experts->sigmoid);
  EXPECT_TRUE(shape->experts->selection_bias);
  EXPECT_EQ(shape->mla->q_rank, 1536u);
}

TEST(HfConfig, CallsAShapeAfterItsFileOrItsFolder) {
  EXPECT_EQ(ParseHfConfig(kOlmoe, "configs/olmoe.json")->name, "olmoe");
  EXPECT_EQ(ParseHfConfig(kOlmoe, "OLMoE-1B-7B/config.json")->name, "OLMoE-1B-7B");
}

TEST(HfConfig, NamesWhatItFoundAndWhatItExpected) {
  EXPECT_EQ(ErrorOf(Replaced(kOlmoe, "\"num_hidden_layers\": 16", "\"num_hidden_layers\": -3")),
            "a/config.json: 'num_hidden_layers' is -3, expected a whole number up to 1073741824");
  EXPECT_THAT(ErrorOf(Replaced(kOlmoe, "\"vocab_size\"", "\"vocab\"")),
              HasSubstr("'vocab_size' is missing"));
  EXPECT_THAT(ErrorOf(Replaced(kOlmoe, "\"num_experts\": 64", "\"num_experts\": 64.5")),
              HasSubstr("'num_experts' is 64.5"));
}

TEST(HfConfig, RefusesWhatTheEngineCannotRun) {
  EXPECT_THAT(ErrorOf(R"({"model_type": "jamba"})"),
              AllOf(HasSubstr("'model_type' is 'jamba'"), HasSubstr("olmoe")));
  EXPECT_THAT(ErrorOf("{}"), HasSubstr("'model_type' is missing"));
  EXPECT_THAT(ErrorOf(Replaced(kOlmoe, "\"silu\"", "\"gelu\"")), HasSubstr("'hidden_act'"));
  EXPECT_THAT(ErrorOf(Replaced(kOlmoe, "\"clip_qkv\": null", "\"clip_qkv\": 8.0")),
              HasSubstr("'clip_qkv' is 8.0"));
  EXPECT_THAT(ErrorOf(Replaced(kOlmoe, "\"norm_topk_prob\": false", "\"norm_topk_prob\": true")),
              HasSubstr("'norm_topk_prob' is true, expected false"));
  EXPECT_THAT(ErrorOf(Replaced(kQwen3Moe, "[]", "[0, 1]")), HasSubstr("'mlp_only_layers'"));
  EXPECT_THAT(ErrorOf(Replaced(kDeepseek2, "\"yarn\"", "\"llama3\"")), HasSubstr("\"llama3\""));
}

TEST(HfConfig, SaysAtWhichByteItIsNoJson) {
  EXPECT_EQ(ErrorOf("{\"model_type\": olmoe}"),
            "a/config.json: not JSON: line 1, column 16: found 'o', expected a value");
  EXPECT_THAT(ErrorOf(""), HasSubstr("not JSON"));
  EXPECT_THAT(ErrorOf("[1, 2]"), HasSubstr("expected a JSON object"));
}

TEST(HfConfig, ReadsAFile) {
  const TempFolder folder;
  EXPECT_TRUE(ReadHfConfig(folder.Write("olmoe.json", kOlmoe)).ok());
  EXPECT_EQ(ReadHfConfig(folder.PathOf("none.json")).status().code(), Code::kNotFound);
}

}  // namespace
}  // namespace troupe
