#include "model/config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "model/config_keys_for_test.h"

namespace troupe {
namespace {

using testing::HasSubstr;

Metadata Deepseek2Keys() {
  Metadata m = MoeKeys("deepseek2");
  m.Set("deepseek2.attention.head_count_kv", std::uint32_t{1});
  m.Set("deepseek2.attention.q_lora_rank", std::uint32_t{96});
  m.Set("deepseek2.attention.kv_lora_rank", std::uint32_t{64});
  m.Set("deepseek2.attention.key_length", std::uint32_t{80});
  m.Set("deepseek2.attention.value_length", std::uint32_t{64});
  m.Set("deepseek2.attention.key_length_mla", std::uint32_t{48});
  m.Set("deepseek2.attention.value_length_mla", std::uint32_t{32});
  m.Set("deepseek2.rope.dimension_count", std::uint32_t{16});
  m.Set("deepseek2.leading_dense_block_count", std::uint32_t{1});
  m.Set("deepseek2.expert_shared_count", std::uint32_t{2});
  return m;
}

TEST(ModelConfig, ReadsADenseLlama) {
  const ModelConfig c = ReadModelConfig(CommonKeys("llama")).value();
  EXPECT_EQ(c.architecture, Architecture::kLlama);
  EXPECT_EQ(c.layers, 4u);
  EXPECT_EQ(c.width, 256u);
  EXPECT_EQ(c.dense_ff, 512u);
  EXPECT_EQ(c.vocabulary, 512u);
  EXPECT_EQ(c.attention.key_dim, 32u);
  EXPECT_EQ(c.attention.kv_heads, 2u);
  EXPECT_FLOAT_EQ(c.attention.scale, 1 / std::sqrt(32.0f));
  EXPECT_EQ(c.rope.pairs, RopePairs::kAdjacent);
  EXPECT_EQ(c.rope.dims, 32u);
  EXPECT_FALSE(c.IsMoeLayer(0));
}

TEST(ModelConfig, FamiliesDifferInWhatTheyDoWithTheChosenWeights) {
  EXPECT_TRUE(ReadModelConfig(MoeKeys("llama"))->moe.routing.normalise);
  EXPECT_TRUE(ReadModelConfig(MoeKeys("qwen3moe"))->moe.routing.normalise);
  EXPECT_FALSE(ReadModelConfig(MoeKeys("qwen2moe"))->moe.routing.normalise);
  EXPECT_FALSE(ReadModelConfig(MoeKeys("olmoe"))->moe.routing.normalise);
  EXPECT_FALSE(ReadModelConfig(MoeKeys("deepseek"))->moe.routing.normalise);
}

TEST(ModelConfig, FamiliesDifferInNormsAndSharedExperts) {
  EXPECT_EQ(ReadModelConfig(MoeKeys("qwen3moe"))->attention.qk_norm, QkNorm::kPerHead);
  EXPECT_EQ(ReadModelConfig(MoeKeys("olmoe"))->attention.qk_norm, QkNorm::kWhole);
  const ModelConfig qwen2 = ReadModelConfig(MoeKeys("qwen2moe")).value();
  EXPECT_EQ(qwen2.moe.shared_ff, 512u);  // no key of its own: the dense width
  EXPECT_TRUE(qwen2.moe.shared_gate);
}

TEST(ModelConfig, DeepseekCountsItsSharedExpertsAsOneWideOne) {
  Metadata m = MoeKeys("deepseek");
  m.Set("deepseek.expert_shared_count", std::uint32_t{2});
  m.Set("deepseek.leading_dense_block_count", std::uint32_t{1});
  const ModelConfig c = ReadModelConfig(m).value();
  EXPECT_EQ(c.moe.shared_ff, 256u);
  EXPECT_FALSE(c.IsMoeLayer(0));
  EXPECT_TRUE(c.IsMoeLayer(1));
}

TEST(ModelConfig, LatentAttentionHasOneKeyHeadWhoseRowHoldsTheValues) {
  const ModelConfig c = ReadModelConfig(Deepseek2Keys()).value();
  ASSERT_TRUE(c.attention.mla.has_value());
  EXPECT_EQ(c.attention.kv_heads, 1u);
  EXPECT_EQ(c.attention.key_dim, 80u);
  EXPECT_EQ(c.attention.value_dim, 64u);
  EXPECT_EQ(c.attention.mla->nope_dim, 32u);
  EXPECT_EQ(c.attention.mla->value_dim, 32u);
  EXPECT_EQ(c.attention.KeyRow(), 80u);
  EXPECT_EQ(c.attention.ValueRow(), 0u);
  // The scale is that of the decompressed head.
  EXPECT_FLOAT_EQ(c.attention.scale, 1 / std::sqrt(48.0f));
}

TEST(ModelConfig, YarnOfDeepseekMovesItsMagnitudeIntoTheAttentionScale) {
  Metadata m = Deepseek2Keys();
  m.Set("deepseek2.rope.scaling.type", "yarn");
  m.Set("deepseek2.rope.scaling.factor", 40.0f);
  m.Set("deepseek2.rope.scaling.original_context_length", std::uint32_t{64});
  m.Set("deepseek2.rope.scaling.yarn_log_multiplier", 0.0707f);
  const ModelConfig c = ReadModelConfig(m).value();
  // DeepSeek-V2-Lite's own figures: mscale = 0.1 * 0.707 * ln 40 + 1, squared over sqrt(key dims).
  const double mscale = 0.0707 * std::log(40.0) + 1;
  EXPECT_NEAR(c.attention.scale, mscale * mscale / std::sqrt(48.0), 1e-6);
  // What the rotation multiplies by (attn_factor times YaRN's own factor) is then one.
  EXPECT_NEAR(c.rope.attn_factor * (1 + 0.1 * std::log(40.0)), 1.0, 1e-6);
  EXPECT_EQ(c.rope.ext_factor, 1.0f);
}

TEST(ModelConfig, GroupsAreRankedAsTheGatingSays) {
  Metadata m = Deepseek2Keys();
  m.Set("deepseek2.expert_group_count", std::uint32_t{4});
  m.Set("deepseek2.expert_group_used_count", std::uint32_t{2});
  EXPECT_EQ(ReadModelConfig(m)->moe.routing.group_rank, GroupRank::kMax);
  m.Set("deepseek2.expert_gating_func", std::uint32_t{2});
  const ModelConfig v3 = ReadModelConfig(m).value();
  EXPECT_EQ(v3.moe.routing.group_rank, GroupRank::kTopTwo);
  EXPECT_EQ(v3.moe.routing.score, GateScore::kSigmoid);
  m.Set("deepseek2.expert_group_used_count", std::uint32_t{1});
  m.Set("deepseek2.expert_used_count", std::uint32_t{6});
  EXPECT_THAT(ErrorOf(m), HasSubstr("4 experts remain to choose 6 from"));
}

TEST(ModelConfig, GlmFlashScoresBySigmoidsEvenWhereItsFileDoesNotSaySo) {
  Metadata m = Deepseek2Keys();
  m.Set("deepseek2.expert_weights_norm", true);
  m.Set("deepseek2.expert_weights_scale", 1.8f);
  m.Set("deepseek2.vocab_size", std::uint32_t{154880});
  EXPECT_EQ(ReadModelConfig(m)->moe.routing.score, GateScore::kSoftmax);  // of V2's layers
  m.Set("deepseek2.block_count", std::uint32_t{47});
  const ModelConfig c = ReadModelConfig(m).value();
  EXPECT_EQ(c.moe.routing.score, GateScore::kSigmoid);
  EXPECT_TRUE(c.moe.routing.normalise);
  EXPECT_FLOAT_EQ(c.moe.routing.scale, 1.8f);
  EXPECT_EQ(c.moe.routing.groups, 1u);
  m.Set("deepseek2.expert_gating_func", std::uint32_t{1});
  EXPECT_EQ(ReadModelConfig(m)->moe.routing.score, GateScore::kSoftmax);
}

Metadata GptOssKeys() {
  Metadata m = MoeKeys("gpt-oss");
  m.Set("gpt-oss.attention.sliding_window", std::uint32_t{128});
  return m;
}

TEST(ModelConfig, GptOssHasAWindowInEveryOtherLayerFromTheFirstOn) {
  const ModelConfig c = ReadModelConfig(GptOssKeys()).value();
  EXPECT_EQ(c.WindowOf(0), 128u);
  EXPECT_EQ(c.WindowOf(1), 0u);
  EXPECT_EQ(c.WindowOf(2), 128u);
  EXPECT_TRUE(c.attention.sinks);
  EXPECT_TRUE(c.attention.biases);
  EXPECT_TRUE(c.moe.biases);
  EXPECT_EQ(c.form, GateForm::kClamped);
  EXPECT_TRUE(c.moe.routing.normalise);
  EXPECT_EQ(ReadModelConfig(MoeKeys("qwen3moe"))->WindowOf(0), 0u);
  Metadata m = GptOssKeys();
  ASSERT_TRUE(m.Erase("gpt-oss.attention.sliding_window"));
  EXPECT_THAT(ErrorOf(m), HasSubstr("gpt-oss.attention.sliding_window"));
  const std::string facts = testing::PrintToString(Describe(c));
  EXPECT_THAT(facts, HasSubstr("128 positions in 2 of 4 layers"));
  EXPECT_THAT(facts, HasSubstr("with biases, clamped"));
}

TEST(ModelConfig, MinimaxNormalisesWholeRowsAndChoosesBySigmoidsPlusABias) {
  Metadata m = MoeKeys("minimax-m2");
  m.Set("minimax-m2.rope.dimension_count", std::uint32_t{16});
  const ModelConfig c = ReadModelConfig(m).value();
  EXPECT_EQ(c.attention.qk_norm, QkNorm::kWhole);
  EXPECT_EQ(c.rope.dims, 16u);  // of 32
  EXPECT_EQ(c.moe.routing.score, GateScore::kSigmoid);
  EXPECT_EQ(c.moe.selection_bias, Presence::kRequired);
  EXPECT_TRUE(c.moe.routing.normalise);
}

TEST(ModelConfig, LinearScalingShrinksPositions) {
  Metadata m = CommonKeys("llama");
  m.Set("llama.rope.scaling.type", "linear");
  m.Set("llama.rope.scaling.factor", 4.0f);
  EXPECT_FLOAT_EQ(ReadModelConfig(m)->rope.freq_scale, 0.25f);
  m.Set("llama.rope.scaling.type", "none");
  EXPECT_FLOAT_EQ(ReadModelConfig(m)->rope.freq_scale, 1.0f);
  m.Set("llama.rope.scaling.type", "longrope");
  EXPECT_THAT(ErrorOf(m), HasSubstr("'longrope', expected none, linear or yarn"));
}

TEST(ModelConfig, AnUnknownArchitectureIsNamedWithTheKnownOnes) {
  EXPECT_EQ(ErrorOf(CommonKeys("mamba")),
            "m.gguf: general.architecture is 'mamba', expected one of llama, qwen2moe, qwen3moe, "
            "olmoe, deepseek, deepseek2, qwen3next, qwen35moe, gpt-oss, minimax-m2, "
            "lfm2moe, glm4moe, granitemoe, granitehybrid, gemma4, qwen3vlmoe, dots1, ernie4_5-moe, "
            "hunyuan-moe, bailingmoe2, nemotron_h, nemotron_h_moe, switch");
}

TEST(ModelConfig, OfOllamasOwnFormOfGptOssItIsSaidWhichFileRuns) {
  EXPECT_THAT(ErrorOf(MoeKeys("gptoss")), HasSubstr("hf.co/ggml-org/gpt-oss-20b-GGUF"));
}

TEST(ModelConfig, EveryNumberOutOfRangeIsNamedWithItsLimits) {
  const struct {
    const char* key;
    std::uint32_t value;
    const char* message;
  } cases[] = {
      {"llama.block_count", 0, "llama.block_count is 0, expected 1 to"},
      {"llama.embedding_length", 1u << 30, "llama.embedding_length is 1073741824, expected 1 to"},
      {"llama.attention.head_count_kv", 3, "expected a divisor of the 8 heads"},
      {"llama.attention.head_count_kv", 9, "is 9, expected 1 to 8"},
      {"llama.rope.dimension_count", 31, "is 31, expected an even number"},
      {"llama.rope.dimension_count", 64, "is 64, expected at most the 32 of a head"},
      {"llama.expert_used_count", 17, "is 17, expected 1 to 16"},
      {"llama.attention.head_count", 0, "is 0, expected 1 to"},
  };
  for (const auto& c : cases) {
    Metadata m = MoeKeys("llama");
    m.Set(c.key, c.value);
    EXPECT_THAT(ErrorOf(m), HasSubstr(c.message)) << c.key;
    EXPECT_THAT(ErrorOf(m), HasSubstr("m.gguf")) << c.key;
  }
}

TEST(ModelConfig, AMissingKeyIsNamed) {
  for (const char* key : {"qwen2moe.block_count", "qwen2moe.expert_count", "qwen2moe.vocab_size",
                          "qwen2moe.attention.head_count"}) {
    Metadata m = MoeKeys("qwen2moe");
    ASSERT_TRUE(m.Erase(key));
    EXPECT_THAT(ErrorOf(m), HasSubstr(key));
  }
}

TEST(ModelConfig, AFileWithoutATokenizerIsSaidToHaveNone) {
  Metadata m = MoeKeys("qwen2moe");
  ASSERT_TRUE(m.Erase("qwen2moe.vocab_size"));
  EXPECT_THAT(ErrorOf(m), HasSubstr("m.gguf: no tokenizer in the file"));
}

TEST(ModelConfig, TheVocabularyIsAsLongAsItsTokens) {
  Metadata m = CommonKeys("llama");
  m.Set("tokenizer.ggml.tokens", Array{StringArray{"a", "b", "c"}});
  EXPECT_EQ(ReadModelConfig(m)->vocabulary, 3u);
}

TEST(ModelConfig, DescriptionNamesWhatMatters) {
  const auto lines = Describe(ReadModelConfig(Deepseek2Keys()).value());
  const std::string all = testing::PrintToString(lines);
  for (const char* fact : {"deepseek2", "16 of width 128, top 4 by softmax", "width 256",
                           "1 of width 512", "latent rows of 64 + 16 rotary"}) {
    EXPECT_THAT(all, HasSubstr(fact));
  }
}

Metadata DeltaNetKeys(const std::string& arch) {
  Metadata m = MoeKeys(arch);
  m.Set(arch + ".attention.key_length", std::uint32_t{64});
  m.Set(arch + ".attention.value_length", std::uint32_t{64});
  m.Set(arch + ".rope.dimension_count", std::uint32_t{16});
  m.Set(arch + ".expert_shared_feed_forward_length", std::uint32_t{96});
  m.Set(arch + ".ssm.conv_kernel", std::uint32_t{4});
  m.Set(arch + ".ssm.state_size", std::uint32_t{32});
  m.Set(arch + ".ssm.group_count", std::uint32_t{2});
  m.Set(arch + ".ssm.time_step_rank", std::uint32_t{6});
  m.Set(arch + ".ssm.inner_size", std::uint32_t{192});
  return m;
}

TEST(ModelConfig, ReadsDeltaNetsInThreeOfFourLayers) {
  for (const char* arch : {"qwen3next", "qwen35moe"}) {
    const ModelConfig c = ReadModelConfig(DeltaNetKeys(arch)).value();
    EXPECT_TRUE(c.IsRecurrent(0) && c.IsRecurrent(2) && !c.IsRecurrent(3)) << arch;
    EXPECT_EQ(c.AttentionLayers(), 1u);
    EXPECT_TRUE(c.attention.gated);
    EXPECT_EQ(c.rope.dims, 16u);
    EXPECT_EQ(c.delta->Channels(), 2 * 64 + 192u);
    EXPECT_EQ(c.delta->tiled, arch == std::string("qwen35moe"));
    EXPECT_EQ(c.moe.shared_ff, 96u);
    EXPECT_TRUE(c.moe.shared_gate && c.moe.routing.normalise);
  }
}

TEST(ModelConfig, TheLayersWithADeltaNetAreCountedOrListed) {
  Metadata m = DeltaNetKeys("qwen35moe");
  m.Set("qwen35moe.full_attention_interval", std::uint32_t{2});
  EXPECT_EQ(ReadModelConfig(m)->recurrent, (std::vector<bool>{true, false, true, false}));
  m.Set("qwen35moe.attention.recurrent_layers", Array{std::vector<bool>{false, true, true, false}});
  EXPECT_EQ(ReadModelConfig(m)->recurrent, (std::vector<bool>{false, true, true, false}));
  m.Set("qwen35moe.attention.recurrent_layers", Array{std::vector<bool>{true}});
  EXPECT_THAT(ErrorOf(m), HasSubstr("an array of 4 flags"));
}

TEST(ModelConfig, LayersThatGuessFurtherTokensAreKnownAndNotCounted) {
  Metadata m = DeltaNetKeys("qwen35moe");
  m.Set("qwen35moe.nextn_predict_layers", std::uint32_t{1});
  const ModelConfig c = ReadModelConfig(m).value();
  EXPECT_EQ(c.layers, 3u);
  EXPECT_EQ(c.next_token_layers, 1u);
  EXPECT_THAT(Describe(c), testing::Contains(HasSubstr("left out      1 layer")));
  m.Set("qwen35moe.nextn_predict_layers", std::uint32_t{4});
  EXPECT_THAT(ErrorOf(m), HasSubstr("nextn_predict_layers is 4, expected 0 to 3"));
}

TEST(ModelConfig, RefusesDeltaNetsThatCannotBe) {
  const auto with = [](const std::string& key, std::uint32_t value) {
    Metadata m = DeltaNetKeys("qwen3next");
    m.Set("qwen3next." + key, value);
    return ErrorOf(m);
  };
  EXPECT_THAT(with("ssm.state_size", 40), HasSubstr("expected a multiple of 16"));
  EXPECT_THAT(with("ssm.time_step_rank", 5), HasSubstr("expected a multiple of the 2 key heads"));
  EXPECT_THAT(with("ssm.inner_size", 128), HasSubstr("expected 6 heads of 32"));
  EXPECT_THAT(with("ssm.conv_kernel", 1), HasSubstr("expected 2 to 16"));
  Metadata without = DeltaNetKeys("qwen3next");
  without.Erase("qwen3next.ssm.state_size");
  EXPECT_THAT(ErrorOf(without), HasSubstr("qwen3next.ssm.state_size"));
  Metadata sections = DeltaNetKeys("qwen35moe");
  sections.Set("qwen35moe.rope.dimension_sections", Array{std::vector<std::int32_t>{3, 3, 2, 0}});
  EXPECT_EQ(ErrorOf(sections), "no error");
  sections.Set("qwen35moe.rope.dimension_sections", Array{std::vector<std::int32_t>{4, 4, 0, 0}});
  EXPECT_THAT(ErrorOf(sections), HasSubstr("share the 8 pairs in turns"));
}

}  // namespace
}  // namespace troupe
