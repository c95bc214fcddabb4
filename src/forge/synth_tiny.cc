// The models for tests of synth_shape.h.
#include "forge/synth_shapes.h"

namespace troupe {
namespace {

// For tests: every part of a family in a few million weights. All rows are multiples of 256, so
// that each of the stored types is used as it is.
ModelShape Tiny(std::string name, Architecture architecture) {
  return {.name = std::move(name),
          .architecture = architecture,
          .layers = 2,
          .width = 256,
          .heads = 4,
          .kv_heads = 2,
          .head_dim = 64,
          .vocabulary = 512,
          .context = 1024};
}

ModelShape TinyDeepseek2() {
  ModelShape shape = Tiny("tiny-deepseek2", Architecture::kDeepseek2);
  shape.layers = 3;
  shape.kv_heads = 4;
  shape.head_dim = 320;
  shape.dense_ff = 512;
  shape.yarn = {{.factor = 4, .original_context = 256, .multiplier = 0.707}};
  shape.mla = {{.q_rank = 256, .kv_rank = 256, .nope_dim = 256, .rope_dim = 64, .value_dim = 64}};
  shape.experts = {{.count = 16,
                    .top_k = 4,
                    .ff = 256,
                    .shared_ff = 256,
                    .shared_count = 1,
                    .leading_dense = 1,
                    .groups = 4,
                    .groups_used = 2,
                    .sigmoid = true,
                    .selection_bias = true,
                    .normalise = true,
                    .scale = 2.5}};
  return shape;
}

// No YaRN, no groups, values longer than the plain part of keys.
ModelShape TinyGlmFlash() {
  ModelShape shape = TinyDeepseek2();
  shape.name = "tiny-glm-flash";
  shape.yarn = std::nullopt;
  shape.rope_base = 1e6;
  shape.mla = {{.q_rank = 256, .kv_rank = 512, .nope_dim = 256, .rope_dim = 64, .value_dim = 320}};
  shape.experts->groups = shape.experts->groups_used = 1;
  shape.experts->scale = 1.8;
  return shape;
}

ModelShape TinyDeltaNet(std::string name, Architecture architecture) {
  ModelShape shape = Tiny(std::move(name), architecture);
  shape.layers = 4;  // of which the last has attention
  shape.norm_epsilon = 1e-6;
  shape.rope_dim = 32;
  shape.delta = {{.key_heads = 2, .value_heads = 4, .head_dim = 64}};
  shape.experts = {{.count = 8, .top_k = 3, .ff = 256, .shared_ff = 256, .normalise = true}};
  return shape;
}

// Two layers with a window that is shorter than the tests' texts, two without.
ModelShape TinyGptOss() {
  ModelShape shape = Tiny("tiny-gpt-oss", Architecture::kGptOss);
  shape.layers = 4;
  shape.heads = 8;
  shape.rope_base = 150000;
  shape.qkv_bias = true;
  shape.window = 24;
  shape.yarn = {{.factor = 4, .original_context = 256}};
  shape.experts = {{.count = 8, .top_k = 3, .ff = 256, .normalise = true}};
  return shape;
}

ModelShape TinyMinimax() {
  ModelShape shape = Tiny("tiny-minimax-m2", Architecture::kMinimaxM2);
  shape.head_dim = 128;
  shape.rope_dim = 64;
  shape.rope_base = 5e6;
  shape.experts = {{.count = 8,
                    .top_k = 3,
                    .ff = 256,
                    .sigmoid = true,
                    .selection_bias = true,
                    .normalise = true}};
  return shape;
}

// A convolution over a dense layer and over experts, and attention over experts.
ModelShape TinyLfm2Moe() {
  ModelShape shape = Tiny("tiny-lfm2moe", Architecture::kLfm2Moe);
  shape.layers = 4;
  shape.dense_ff = 512;
  shape.rope_base = 1e6;
  shape.short_conv = {{.attention_layers = {2}}};
  shape.experts = {{.count = 8,
                    .top_k = 3,
                    .ff = 256,
                    .leading_dense = 1,
                    .sigmoid = true,
                    .selection_bias = true,
                    .normalise = true}};
  return shape;
}

ModelShape TinyGlm4Moe(std::string name, bool head_norms) {
  ModelShape shape = Tiny(std::move(name), Architecture::kGlm4Moe);
  shape.layers = 3;
  shape.dense_ff = 512;
  shape.rope_dim = 32;
  shape.rope_base = 1e6;
  shape.qkv_bias = true;
  shape.head_norms = head_norms;
  shape.next_token_layers = 1;
  shape.experts = {{.count = 8,
                    .top_k = 3,
                    .ff = 256,
                    .shared_ff = 256,
                    .shared_count = 1,
                    .leading_dense = 1,
                    .sigmoid = true,
                    .selection_bias = true,
                    .normalise = true,
                    .scale = 1.5}};
  return shape;
}

ModelShape TinyGraniteMoe(std::string name, std::uint32_t shared_ff) {
  ModelShape shape = Tiny(std::move(name), Architecture::kGraniteMoe);
  shape.scales = {{.embedding = 12, .attention = 0.2, .residual = 0.4, .logits = 6}};
  shape.experts = {{.count = 8, .top_k = 3, .ff = 256, .shared_ff = shared_ff, .normalise = true}};
  return shape;
}

// Mamba-2 before and behind attention; two groups, though published models have one. The dense one
// is as the small models are.
ModelShape TinyGraniteHybrid(std::string name, bool dense) {
  ModelShape shape = Tiny(std::move(name), Architecture::kGraniteHybrid);
  shape.layers = 4;
  shape.scales = {{.embedding = 12, .attention = 0.2, .residual = 0.4, .logits = 6}};
  shape.space = {
      {.heads = 16, .head_dim = 32, .groups = 2, .key_dim = 64, .attention_layers = {2}}};
  if (dense) {
    shape.dense_ff = 512;
  } else {
    shape.experts = {{.count = 8, .top_k = 3, .ff = 256, .shared_ff = 256, .normalise = true}};
  }
  return shape;
}

// Experts behind Mamba-2, behind attention and behind both; two groups of heads. The dense one has
// blocks that stand alone, too.
ModelShape TinyNemotronH(std::string name, bool dense) {
  ModelShape shape =
      Tiny(std::move(name), dense ? Architecture::kNemotronH : Architecture::kNemotronHMoe);
  shape.blocks = dense ? "M-MM*--M" : "MEM*E*EME";
  shape.layers = static_cast<std::uint32_t>(shape.blocks.size());
  shape.space = {{.heads = 16, .head_dim = 32, .groups = 2, .key_dim = 64}};
  if (dense) {
    shape.dense_ff = 512;
  } else {
    shape.experts = {{.count = 8,
                      .top_k = 3,
                      .ff = 256,
                      .shared_ff = 512,
                      .shared_count = 1,
                      .sigmoid = true,
                      .selection_bias = true,
                      .normalise = true,
                      .scale = 1.5}};
  }
  return shape;
}

// Every other layer has a window that is shorter than the tests' texts.
ModelShape TinyGemma4() {
  ModelShape shape = Tiny("tiny-gemma4", Architecture::kGemma4);
  shape.layers = 4;
  shape.kv_heads = 1;
  shape.head_dim = 128;
  shape.dense_ff = 256;
  shape.norm_epsilon = 1e-6;
  shape.rope_base = 1e6;
  shape.window = 24;
  shape.window_heads = {{.kv_heads = 2, .head_dim = 64, .full_every = 2}};
  shape.logit_cap = 30;
  shape.experts = {{.count = 8, .top_k = 3, .ff = 256, .normalise = true}};
  return shape;
}

// DeepSeek's experts behind plain attention, in groups or not.
ModelShape TinyWithShared(std::string name, Architecture architecture, std::uint32_t groups) {
  ModelShape shape = Tiny(std::move(name), architecture);
  shape.layers = 3;
  if (architecture == Architecture::kDots1) shape.kv_heads = shape.heads;  // as its files are
  shape.dense_ff = 512;
  shape.experts = {{.count = 16,
                    .top_k = 4,
                    .ff = 256,
                    .shared_ff = 256,
                    .shared_count = 1,
                    .leading_dense = 1,
                    .groups = groups,
                    .groups_used = (groups + 1) / 2,
                    .sigmoid = true,
                    .selection_bias = true,
                    .normalise = true,
                    .scale = 2.5}};
  return shape;
}

ModelShape TinyErnie() {
  ModelShape shape = TinyWithShared("tiny-ernie4_5-moe", Architecture::kErnie45Moe, 1);
  shape.experts->sigmoid = false;
  shape.experts->scale = 1;
  return shape;
}

ModelShape TinyBailing() {
  ModelShape shape = TinyWithShared("tiny-bailingmoe2", Architecture::kBailingMoe2, 4);
  shape.rope_dim = 32;
  shape.next_token_layers = 1;
  return shape;
}

ModelShape TinyHunyuan() {
  ModelShape shape = Tiny("tiny-hunyuan-moe", Architecture::kHunyuanMoe);
  shape.experts = {{.count = 8, .top_k = 3, .ff = 256, .shared_ff = 256, .normalise = true}};
  return shape;
}

ModelShape TinyQwen3Vl() {
  ModelShape shape = Tiny("tiny-qwen3vlmoe", Architecture::kQwen3VlMoe);
  shape.head_dim = 128;
  shape.dense_ff = 512;
  shape.experts = {{.count = 8, .top_k = 3, .ff = 256, .normalise = true}};
  return shape;
}

}  // namespace

std::vector<ModelShape> TinyShapes() {
  ModelShape llama = Tiny("tiny-llama", Architecture::kLlama);
  llama.dense_ff = 512;

  ModelShape mixtral = Tiny("tiny-mixtral", Architecture::kLlama);
  mixtral.experts = {{.count = 8, .top_k = 2, .ff = 256, .normalise = true}};

  ModelShape qwen2moe = Tiny("tiny-qwen2moe", Architecture::kQwen2Moe);
  qwen2moe.dense_ff = 512;
  qwen2moe.qkv_bias = true;
  qwen2moe.experts = {{.count = 8, .top_k = 4, .ff = 256, .shared_ff = 512}};

  // A head with experts whose output is of some tokens, and a dense one with the model's output.
  ModelShape qwen2moe_some = qwen2moe, qwen2moe_head = qwen2moe;
  qwen2moe_some.name = "tiny-qwen2moe-some";
  qwen2moe_head.name = "tiny-qwen2moe-head";
  qwen2moe_some.next_token_layers = qwen2moe_head.next_token_layers = 1;
  qwen2moe_some.small_head.tokens = 200;
  qwen2moe_head.small_head.dense_ff = 256;

  ModelShape qwen3moe = Tiny("tiny-qwen3moe", Architecture::kQwen3Moe);
  qwen3moe.head_dim = 128;  // heads wider than the stream they come from, as in the real one
  qwen3moe.dense_ff = 512;
  qwen3moe.experts = {{.count = 8, .top_k = 3, .ff = 256, .normalise = true}};

  ModelShape factors = qwen3moe;
  factors.name = "tiny-qwen3moe-factors";
  factors.matrix_factors = true;

  ModelShape olmoe = Tiny("tiny-olmoe", Architecture::kOlmoe);
  olmoe.kv_heads = 4;
  olmoe.experts = {{.count = 8, .top_k = 3, .ff = 256}};

  ModelShape deepseek = Tiny("tiny-deepseek", Architecture::kDeepseek);
  deepseek.kv_heads = 4;
  deepseek.dense_ff = 512;
  deepseek.experts = {
      {.count = 8, .top_k = 3, .ff = 256, .shared_ff = 512, .shared_count = 2, .leading_dense = 1}};

  // llama.cpp takes a model of this family for one with compressed queries unless it has as many
  // layers as V2-Lite.
  ModelShape lite = TinyDeepseek2();
  lite.name = "tiny-deepseek2-lite";
  lite.layers = 27;
  lite.mla->q_rank = 0;
  lite.experts = {
      {.count = 4, .top_k = 2, .ff = 256, .shared_ff = 256, .shared_count = 1, .leading_dense = 1}};

  ModelShape qwen35moe = TinyDeltaNet("tiny-qwen35moe", Architecture::kQwen35Moe);
  qwen35moe.next_token_layers = 1;

  return {llama,
          mixtral,
          qwen2moe,
          qwen2moe_some,
          qwen2moe_head,
          qwen3moe,
          factors,
          olmoe,
          deepseek,
          TinyDeepseek2(),
          lite,
          TinyDeltaNet("tiny-qwen3next", Architecture::kQwen3Next),
          qwen35moe,
          TinyGlmFlash(),
          TinyGptOss(),
          TinyMinimax(),
          TinyLfm2Moe(),
          TinyGlm4Moe("tiny-glm4moe", false),
          TinyGlm4Moe("tiny-glm4moe-norms", true),
          TinyGraniteMoe("tiny-granitemoe", 0),
          TinyGraniteMoe("tiny-granitemoe-shared", 256),
          TinyGraniteHybrid("tiny-granitehybrid", false),
          TinyGraniteHybrid("tiny-granitehybrid-dense", true),
          TinyNemotronH("tiny-nemotron_h_moe", false),
          TinyNemotronH("tiny-nemotron_h", true),
          TinyGemma4(),
          TinyQwen3Vl(),
          TinyWithShared("tiny-dots1", Architecture::kDots1, 1),
          TinyErnie(),
          TinyHunyuan(),
          TinyBailing()};
}

}  // namespace troupe
