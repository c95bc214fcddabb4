// What is particular to families that came later; config_test.cc has what all have in common.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "model/config.h"
#include "model/config_keys_for_test.h"

namespace troupe {
namespace {

using testing::HasSubstr;

Metadata ShortConvKeys() {
  Metadata m = MoeKeys("lfm2moe");
  m.Set("lfm2moe.attention.head_count_kv", Array{std::vector<std::int32_t>{0, 0, 2, 0}});
  m.Set("lfm2moe.shortconv.l_cache", std::uint32_t{3});
  m.Set("lfm2moe.leading_dense_block_count", std::uint32_t{2});
  return m;
}

TEST(ConfigOfAFamily, LayersWithoutKeyHeadsOfLfm2AreConvolutions) {
  const ModelConfig c = ReadModelConfig(ShortConvKeys()).value();
  EXPECT_EQ(c.recurrent, (std::vector<bool>{true, true, false, true}));
  EXPECT_EQ(c.attention.kv_heads, 2u);
  EXPECT_EQ(c.short_conv_taps, 3u);
  EXPECT_EQ(c.moe.routing.score, GateScore::kSigmoid);
  EXPECT_TRUE(!c.IsMoeLayer(1) && c.IsMoeLayer(2) && c.moe.routing.normalise);
  EXPECT_THAT(Describe(c), testing::Contains(HasSubstr("in 3 layers, over 3 tokens")));
}

TEST(ConfigOfAFamily, KeyHeadsOfLayersThatDoNotFitTogetherAreRefused) {
  const struct {
    std::vector<std::int32_t> heads;
    const char* message;
  } cases[] = {{{0, 2, 4, 0}, "0, or the same number, in each layer"},
               {{0, 0, 0, 0}, "is 0, expected a divisor of the 8 heads"},
               {{0, 0, 2}, "one for each of 4 layers"}};
  for (const auto& c : cases) {
    Metadata m = ShortConvKeys();
    m.Set("lfm2moe.attention.head_count_kv", Array{c.heads});
    EXPECT_THAT(ErrorOf(m), HasSubstr(c.message));
    EXPECT_THAT(ErrorOf(m), HasSubstr("lfm2moe.attention.head_count_kv"));
  }
  Metadata m = MoeKeys("qwen3moe");
  m.Set("qwen3moe.attention.head_count_kv", Array{std::vector<std::int32_t>{2, 2, 2, 2}});
  EXPECT_EQ(ReadModelConfig(m)->attention.kv_heads, 2u);
  m.Set("qwen3moe.attention.head_count_kv", Array{std::vector<std::int32_t>{2, 4, 2, 2}});
  EXPECT_THAT(ErrorOf(m), HasSubstr("the same number for all layers"));
}

TEST(ConfigOfAFamily, Lfm2WithAttentionInAllLayersHasNoState) {
  Metadata m = ShortConvKeys();
  m.Set("lfm2moe.attention.head_count_kv", std::uint32_t{2});
  EXPECT_FALSE(ReadModelConfig(m)->HasState());
}

TEST(ConfigOfAFamily, ReadsWhatGlm4MoeSaysOfItsExperts) {
  Metadata m = MoeKeys("glm4moe");
  m.Set("glm4moe.nextn_predict_layers", std::uint32_t{1});
  m.Set("glm4moe.leading_dense_block_count", std::uint32_t{1});
  m.Set("glm4moe.expert_shared_count", std::uint32_t{2});
  m.Set("glm4moe.expert_weights_norm", true);
  m.Set("glm4moe.expert_weights_scale", 2.5f);
  const ModelConfig c = ReadModelConfig(m).value();
  EXPECT_EQ(c.layers, 3u);
  EXPECT_EQ(c.next_token_layers, 1u);
  EXPECT_EQ(c.moe.shared_ff, 2 * 128u);
  EXPECT_EQ(c.moe.routing.score, GateScore::kSigmoid);  // where the file does not say
  EXPECT_TRUE(c.moe.routing.normalise);
  EXPECT_FLOAT_EQ(c.moe.routing.scale, 2.5f);
  m.Set("glm4moe.rope.dimension_sections", Array{std::vector<std::int32_t>{8, 7, 0, 0}});
  EXPECT_THAT(ErrorOf(m), HasSubstr("three sections of 16 pairs in all"));
  m.Set("glm4moe.rope.dimension_sections", Array{std::vector<std::int32_t>{4, 6, 6, 0}});
  EXPECT_EQ(ErrorOf(m), "no error");
}

TEST(ConfigOfAFamily, ReadsTheScalesOfGranite) {
  Metadata m = MoeKeys("granitemoe");
  EXPECT_EQ(ReadModelConfig(m)->residual_scale, 1.0f);
  m.Set("granitemoe.embedding_scale", 12.0f);
  m.Set("granitemoe.residual_scale", 0.22f);
  m.Set("granitemoe.attention.scale", 0.015625f);
  m.Set("granitemoe.logit_scale", 8.0f);
  const ModelConfig c = ReadModelConfig(m).value();
  EXPECT_EQ(c.embedding_scale, 12.0f);
  EXPECT_EQ(c.residual_scale, 0.22f);
  EXPECT_EQ(c.attention.scale, 0.015625f);
  EXPECT_EQ(c.logit_scale, 0.125f);
  EXPECT_EQ(c.rope.dims, c.attention.key_dim);
  m.Set("granitemoe.rope.scaling.finetuned", false);
  EXPECT_EQ(ReadModelConfig(m)->rope.dims, 0u);
  EXPECT_THAT(Describe(*ReadModelConfig(m)), testing::Contains(HasSubstr("rotary        none")));
}

void SetSpaceKeys(const std::string& arch, Metadata& m) {
  m.Set(arch + ".ssm.conv_kernel", std::uint32_t{4});
  m.Set(arch + ".ssm.state_size", std::uint32_t{64});
  m.Set(arch + ".ssm.group_count", std::uint32_t{2});
  m.Set(arch + ".ssm.time_step_rank", std::uint32_t{6});
  m.Set(arch + ".ssm.inner_size", std::uint32_t{192});
}

Metadata StateSpaceKeys() {
  Metadata m = MoeKeys("granitehybrid");
  m.Set("granitehybrid.attention.head_count_kv", Array{std::vector<std::int32_t>{0, 0, 2, 0}});
  m.Set("granitehybrid.rope.scaling.finetuned", false);
  SetSpaceKeys("granitehybrid", m);
  return m;
}

TEST(ConfigOfAFamily, LayersWithoutKeyHeadsOfGraniteHybridAreMamba2) {
  const ModelConfig c = ReadModelConfig(StateSpaceKeys()).value();
  EXPECT_EQ(c.recurrent, (std::vector<bool>{true, true, false, true}));
  EXPECT_EQ(c.space->head_dim, 32u);
  EXPECT_EQ(c.space->Channels(), 192 + 2 * 2 * 64u);
  EXPECT_EQ(c.space->InRow(), 2 * 192 + 2 * 2 * 64 + 6u);
  EXPECT_EQ(c.rope.dims, 0u);
  EXPECT_THAT(Describe(c),
              testing::Contains(HasSubstr("in 3 layers: 6 heads of 32 on 2 key heads of 64")));
}

TEST(ConfigOfAFamily, GraniteHybridMayHaveNoExpertsOrAttentionInAllLayers) {
  Metadata m = CommonKeys("granitehybrid");
  EXPECT_FALSE(ReadModelConfig(m)->HasState());
  EXPECT_FALSE(ReadModelConfig(m)->IsMoeLayer(0));
  m.Set("granitehybrid.feed_forward_length", std::uint32_t{0});
  EXPECT_THAT(ErrorOf(m), HasSubstr("granitehybrid.feed_forward_length is missing"));
}

TEST(ConfigOfAFamily, SizesOfMamba2ThatDoNotFitTogetherAreRefused) {
  const struct {
    const char* key;
    std::uint32_t value;
    const char* message;
  } cases[] = {{"state_size", 60, "state_size is 60, expected a multiple of 8"},
               {"group_count", 4, "time_step_rank is 6, expected a multiple of the 4 groups"},
               {"inner_size", 190, "inner_size is 190, expected 6 heads of a multiple of 16"},
               {"inner_size", 144, "inner_size is 144, expected 6 heads of a multiple of 16"},
               {"conv_kernel", 1, "conv_kernel is 1, expected 2 to 16"}};
  for (const auto& c : cases) {
    Metadata m = StateSpaceKeys();
    m.Set(std::string("granitehybrid.ssm.") + c.key, c.value);
    EXPECT_THAT(ErrorOf(m), HasSubstr(c.message));
  }
}

// M Mamba-2, * attention, anything else a feed-forward.
Metadata BlockKeys(const std::string& arch, std::string_view blocks) {
  Metadata m = arch == "nemotron_h" ? CommonKeys(arch) : MoeKeys(arch);
  std::vector<std::int32_t> heads, feed_forward;
  for (const char block : blocks) {
    heads.push_back(block == '*' ? 2 : 0);
    feed_forward.push_back(block == '*' || block == 'M' ? 0 : 512);
  }
  m.Set(arch + ".block_count", static_cast<std::uint32_t>(blocks.size()));
  m.Set(arch + ".attention.head_count_kv", Array{heads});
  m.Set(arch + ".feed_forward_length", Array{feed_forward});
  SetSpaceKeys(arch, m);
  return m;
}

TEST(ConfigOfAFamily, BlocksOfNemotronHAreLayersEachWithItsExperts) {
  Metadata m = BlockKeys("nemotron_h_moe", "MEM*E*EME");
  m.Set("nemotron_h_moe.expert_weights_norm", true);
  m.Set("nemotron_h_moe.expert_weights_scale", 2.5f);
  m.Set("nemotron_h_moe.expert_shared_feed_forward_length", std::uint32_t{256});
  const ModelConfig c = ReadModelConfig(m).value();
  EXPECT_EQ(c.layers, 4u);
  EXPECT_EQ(c.FileBlocks(), 9u);
  EXPECT_EQ(c.recurrent, (std::vector<bool>{true, true, false, true}));
  EXPECT_TRUE(!c.HasAttention(0) && c.HasAttention(1) && c.HasAttention(2) && !c.HasAttention(3));
  EXPECT_EQ(c.AttentionLayers(), 2u);
  EXPECT_EQ(c.RecurrentLayers(), 3u);
  EXPECT_TRUE(c.IsMoeLayer(0) && c.IsMoeLayer(3) && c.moe.shared_ff == 256);
  EXPECT_EQ(c.blocks[1].recurrent, 2u);
  EXPECT_EQ(c.blocks[1].attention, 3u);
  EXPECT_EQ(c.blocks[1].feed_forward, 4u);
  const std::uint32_t layers[] = {0, 0, 1, 1, 1, 2, 2, 3, 3};
  for (std::uint32_t block = 0; block < 9; ++block) {
    EXPECT_EQ(c.LayerOfBlock(block), layers[block]) << block;
  }
  EXPECT_EQ(c.form, GateForm::kSquaredRelu);
  EXPECT_EQ(c.rope.dims, 0u);
  EXPECT_EQ(c.moe.routing.score, GateScore::kSigmoid);
  EXPECT_EQ(c.moe.selection_bias, Presence::kRequired);
  EXPECT_FLOAT_EQ(c.moe.routing.scale, 2.5f);
  const std::vector<std::string> lines = Describe(c);
  EXPECT_THAT(lines, testing::Contains(HasSubstr("4 of 9 blocks")));
  EXPECT_THAT(lines, testing::Contains(HasSubstr("in 3 layers: 6 heads of 32")));
  EXPECT_THAT(lines, testing::Contains(HasSubstr("by squared ReLU without a gate")));
}

TEST(ConfigOfAFamily, NemotronHWithoutExpertsMayHaveBlocksAlone) {
  const ModelConfig c = ReadModelConfig(BlockKeys("nemotron_h", "M-MM*--M")).value();
  EXPECT_EQ(c.layers, 5u);
  EXPECT_EQ(c.dense_ff, 512u);
  EXPECT_EQ(c.recurrent, (std::vector<bool>{true, true, true, false, true}));
  EXPECT_TRUE(c.HasFeedForward(0) && !c.HasFeedForward(1) && c.HasFeedForward(2));
  EXPECT_TRUE(c.HasFeedForward(3) && !c.HasAttention(3) && !c.HasFeedForward(4));
  EXPECT_THAT(Describe(c), testing::Contains(HasSubstr("dense layers  3 of width 512")));
  EXPECT_FALSE(ReadModelConfig(BlockKeys("nemotron_h", "*-*-"))->HasState());
}

TEST(ConfigOfAFamily, WhatNemotronHCannotBeIsRefused) {
  EXPECT_THAT(ErrorOf(BlockKeys("nemotron_h_moe", "MEMM*E")),
              HasSubstr("feed_forward_length: no experts behind block 2"));
  EXPECT_THAT(ErrorOf(BlockKeys("nemotron_h_moe", "MEM*")),
              HasSubstr("feed_forward_length: no experts behind block 3"));
  EXPECT_THAT(ErrorOf(BlockKeys("nemotron_h", "MMM*")),
              HasSubstr("nemotron_h.feed_forward_length is missing"));
  Metadata with_experts = BlockKeys("nemotron_h", "M-*-");
  with_experts.Set("nemotron_h.expert_count", std::uint32_t{8});
  EXPECT_THAT(ErrorOf(with_experts),
              HasSubstr("nemotron_h.expert_count is 8, expected 0: nemotron_h_moe has experts"));
  Metadata m = BlockKeys("nemotron_h", "M-*-");
  m.Set("nemotron_h.feed_forward_length", Array{std::vector<std::int32_t>{0, 512, 0, 256}});
  EXPECT_THAT(ErrorOf(m), HasSubstr("0, or the same number, in each layer"));
  for (const char* key : {"moe_latent_size", "nextn_predict_layers"}) {
    Metadata large = BlockKeys("nemotron_h_moe", "ME*E");
    large.Set(std::string("nemotron_h_moe.") + key, std::uint32_t{2});
    EXPECT_THAT(ErrorOf(large), HasSubstr(std::string(key) + " is 2, expected 0"));
  }
}

Metadata Gemma4Keys() {
  Metadata m = MoeKeys("gemma4");
  m.Set("gemma4.attention.head_count_kv", Array{std::vector<std::int32_t>{4, 4, 4, 2}});
  m.Set("gemma4.attention.sliding_window_pattern",
        Array{std::vector<bool>{true, true, true, false}});
  m.Set("gemma4.attention.sliding_window", std::uint32_t{512});
  for (const char* of : {"key", "value"}) {
    m.Set(fmt::format("gemma4.attention.{}_length", of), std::uint32_t{64});
    m.Set(fmt::format("gemma4.attention.{}_length_swa", of), std::uint32_t{32});
  }
  m.Set("gemma4.rope.freq_base", 1e6f);
  m.Set("gemma4.final_logit_softcapping", 30.0f);
  return m;
}

TEST(ConfigOfAFamily, Gemma4HasHeadsOfTwoKinds) {
  const ModelConfig c = ReadModelConfig(Gemma4Keys()).value();
  EXPECT_EQ(c.WindowOf(0), 512u);
  EXPECT_EQ(c.WindowOf(3), 0u);
  EXPECT_EQ(c.AttentionOf(0).KeyRow(), 4 * 32u);
  EXPECT_EQ(c.AttentionOf(3).KeyRow(), 2 * 64u);
  EXPECT_EQ(c.AttentionOf(0).scale, 1.0f);
  EXPECT_EQ(c.window->rope->freq_base, 1e4f);
  EXPECT_EQ(c.window->rope->dims, 32u);
  EXPECT_EQ(c.rope.dims, 64u);
  EXPECT_EQ(c.embedding_scale, 16.0f);  // the root of the width
  EXPECT_EQ(c.moe.shared_ff, 512u);
  EXPECT_EQ(c.form, GateForm::kGelu);
  const auto lines = Describe(c);
  EXPECT_THAT(lines, testing::Contains(HasSubstr("512 positions in 3 of 4 layers")));
  EXPECT_THAT(lines, testing::Contains(HasSubstr("beside a dense part")));
  EXPECT_THAT(lines, testing::Contains(HasSubstr("within 30")));
}

TEST(ConfigOfAFamily, WhatDoesNotFitInGemma4IsNamed) {
  const struct {
    const char* key;
    Value value;
    const char* message;
  } cases[] = {
      {"attention.head_count_kv", Array{std::vector<std::int32_t>{4, 2, 4, 2}},
       "the same divisor of 8"},
      {"attention.sliding_window_pattern", Array{std::vector<bool>{true}}, "an array of 4 flags"},
      {"attention.sliding_window_pattern", Array{std::vector<bool>(4, true)},
       "layers of both kinds"},
      {"attention.value_length_swa", std::uint32_t{16}, "is 16, expected 32, as of keys"},
      {"rope.dimension_count_swa", std::uint32_t{31}, "an even number"},
      {"attention.shared_kv_layers", std::uint32_t{2}, "is 2, expected 0"},
      {"embedding_length_per_layer_input", std::uint32_t{256}, "is 256, expected 0"},
      {"final_logit_softcapping", -1.0f, "0 or more"},
      {"feed_forward_length", std::uint32_t{0}, "is missing"}};
  for (const auto& c : cases) {
    Metadata m = Gemma4Keys();
    m.Set(std::string("gemma4.") + c.key, c.value);
    EXPECT_THAT(ErrorOf(m), HasSubstr(c.message)) << c.key;
    EXPECT_THAT(ErrorOf(m), HasSubstr(std::string("gemma4.") + c.key));
  }
}

TEST(ConfigOfAFamily, FamiliesWithASharedExpertSayHowWideItIs) {
  EXPECT_EQ(ReadModelConfig(MoeKeys("hunyuan-moe"))->moe.shared_ff, 512u);  // as the dense key says
  Metadata ernie = MoeKeys("ernie4_5-moe");
  ernie.Set("ernie4_5-moe.expert_shared_count", std::uint32_t{2});
  ernie.Set("ernie4_5-moe.expert_shared_feed_forward_length", std::uint32_t{256});
  EXPECT_EQ(ReadModelConfig(ernie)->moe.shared_ff, 256u);  // of both
  EXPECT_EQ(ReadModelConfig(ernie)->moe.routing.score, GateScore::kSoftmax);
  ernie.Set("ernie4_5-moe.interleave_moe_layer_step", std::uint32_t{2});
  EXPECT_THAT(ErrorOf(ernie), HasSubstr("interleave_moe_layer_step is 2"));
  Metadata bailing = MoeKeys("bailingmoe2");
  bailing.Set("bailingmoe2.expert_shared_count", std::uint32_t{2});
  EXPECT_EQ(ReadModelConfig(bailing)->moe.shared_ff, 2 * 128u);
  bailing.Set("bailingmoe2.expert_shared_feed_forward_length", std::uint32_t{64});
  EXPECT_EQ(ReadModelConfig(bailing)->moe.shared_ff, 2 * 64u);  // of each
  bailing.Set("bailingmoe2.nextn_predict_layers", std::uint32_t{1});
  EXPECT_EQ(ReadModelConfig(bailing)->layers, 3u);
  EXPECT_EQ(ReadModelConfig(MoeKeys("dots1"))->moe.shared_ff, 0u);
}

Metadata SwitchKeys() {
  Metadata m = MoeKeys("switch");
  m.Set("switch.attention.head_count_kv", std::uint32_t{8});
  m.Set("switch.expert_used_count", std::uint32_t{1});
  m.Set("switch.encoder_block_count", std::uint32_t{2});
  m.Set("switch.decoder_start_token_id", std::uint32_t{0});
  m.Set("switch.attention.relative_buckets_count", std::uint32_t{32});
  m.Set("switch.expert_capacity", std::uint32_t{64});
  m.Set("switch.expert_layers", Array{std::vector<bool>{false, true, false, true}});
  return m;
}

TEST(ConfigOfAFamily, ASwitchTransformersFirstLayersAreItsEncoders) {
  const ModelConfig c = ReadModelConfig(SwitchKeys()).value();
  ASSERT_TRUE(c.encoder.has_value());
  EXPECT_TRUE(c.IsEncoder(1) && !c.IsEncoder(2) && c.IsDecoder(2) && !c.IsDecoder(1));
  EXPECT_TRUE(!c.HasKeys(1) && c.HasKeys(2) && !c.KeysTellAll());
  EXPECT_EQ(c.encoder->max_distance, 128u);
  EXPECT_EQ(c.encoder->expert_capacity, 64u);
  EXPECT_TRUE(!c.IsMoeLayer(0) && c.IsMoeLayer(1) && !c.IsMoeLayer(2) && c.IsMoeLayer(3));
  EXPECT_EQ(c.moe.leading_dense, 1u);
  EXPECT_EQ(c.MoeLayersIn(0, 2), 1u);
  EXPECT_EQ(c.rope.dims, 0u);
  EXPECT_EQ(c.attention.scale, 1.0f);
  EXPECT_EQ(c.form, GateForm::kRelu);
  EXPECT_THAT(Describe(c), testing::Contains(HasSubstr("the first 2 layers")));
  EXPECT_THAT(Describe(c), testing::Contains(HasSubstr("2 of width 512")));
}

TEST(ConfigOfAFamily, WithoutFlagsAllLayersOfASwitchTransformerHaveExperts) {
  Metadata m = SwitchKeys();
  m.Erase("switch.expert_layers");
  EXPECT_EQ(ReadModelConfig(m)->MoeLayersIn(0, 4), 4u);
  m.Set("switch.expert_layers", Array{std::vector<bool>{false, false, true, true}});
  const ModelConfig c = ReadModelConfig(m).value();
  EXPECT_EQ(c.moe.leading_dense, 2u);
  EXPECT_TRUE(c.moe.dense_layers.empty());
}

TEST(ConfigOfAFamily, RefusesASwitchTransformerThatCannotBe) {
  const auto error = [](std::string_view key, Value value) {
    Metadata m = SwitchKeys();
    m.Set("switch." + std::string(key), std::move(value));
    return ErrorOf(m);
  };
  EXPECT_THAT(error("encoder_block_count", std::uint32_t{4}), HasSubstr("encoder_block_count"));
  EXPECT_THAT(error("decoder_start_token_id", std::uint32_t{512}), HasSubstr("start_token_id"));
  EXPECT_THAT(error("expert_used_count", std::uint32_t{2}),
              HasSubstr("switch.expert_used_count is 2, expected 1"));
  EXPECT_THAT(error("expert_layers", Array{std::vector<bool>{true}}), HasSubstr("4 flags"));
  EXPECT_THAT(error("expert_layers", Array{std::vector<bool>(4)}), HasSubstr("one of them true"));
  EXPECT_THAT(error("attention.relative_buckets_count", std::uint32_t{2}), HasSubstr("buckets"));
  EXPECT_THAT(error("attention.relative_max_distance", std::uint32_t{16}), HasSubstr("distance"));
}

// Of Qwen2-MoE it is an extension of this project.
TEST(ConfigOfAFamily, Qwen2MoeMayHaveALayerThatGuessesAFurtherToken) {
  Metadata m = MoeKeys("qwen2moe");
  EXPECT_FALSE(ReadModelConfig(m)->next_token_head);
  m.Set("qwen2moe.nextn_predict_layers", std::uint32_t{1});
  const ModelConfig c = ReadModelConfig(m).value();
  EXPECT_EQ(c.layers, 3u);
  EXPECT_EQ(c.next_token_layers, 1u);
  EXPECT_TRUE(c.next_token_head);
}

}  // namespace
}  // namespace troupe
