#include "forge/synth_shape.h"

namespace troupe {
namespace {

using A = Architecture;

// A quarter of OLMoE-1B-7B: big enough that weights come from memory and not from a cache, small
// enough for every speed run. 976 MB in Q4_0, of which a token touches 142 MB.
ModelShape Small() {
  return {.name = "small",
          .architecture = A::kOlmoe,
          .layers = 16,
          .width = 1024,
          .heads = 16,
          .kv_heads = 16,
          .head_dim = 64,
          .vocabulary = 26112,
          .context = 4096,
          .experts = {{.count = 64, .top_k = 6, .ff = 512}}};
}

ModelShape GptOss(std::string name, std::uint32_t layers, std::uint32_t experts) {
  return {.name = std::move(name),
          .architecture = A::kGptOss,
          .layers = layers,
          .width = 2880,
          .heads = 64,
          .kv_heads = 8,
          .head_dim = 64,
          .vocabulary = 201088,
          .context = 131072,
          .rope_base = 150000,
          .qkv_bias = true,
          .window = 128,
          .yarn = {{.factor = 32, .original_context = 4096}},
          .experts = {{.count = experts, .top_k = 4, .ff = 2880, .normalise = true}}};
}

// The published ones repeat their config.json, field by field.
std::vector<ModelShape> Published() {
  return {
      {.name = "olmoe-1b-7b",
       .architecture = A::kOlmoe,
       .layers = 16,
       .width = 2048,
       .heads = 16,
       .kv_heads = 16,
       .head_dim = 128,
       .vocabulary = 50304,
       .context = 4096,
       .experts = {{.count = 64, .top_k = 8, .ff = 1024}}},
      {.name = "qwen1.5-moe-a2.7b",
       .architecture = A::kQwen2Moe,
       .layers = 24,
       .width = 2048,
       .heads = 16,
       .kv_heads = 16,
       .head_dim = 128,
       .dense_ff = 5632,
       .vocabulary = 151936,
       .context = 8192,
       .norm_epsilon = 1e-6,
       .rope_base = 1e6,
       .qkv_bias = true,
       .experts = {{.count = 60, .top_k = 4, .ff = 1408, .shared_ff = 5632}}},
      {.name = "qwen2-57b-a14b",
       .architecture = A::kQwen2Moe,
       .layers = 28,
       .width = 3584,
       .heads = 28,
       .kv_heads = 4,
       .head_dim = 128,
       .dense_ff = 18944,
       .vocabulary = 151936,
       .context = 131072,
       .norm_epsilon = 1e-6,
       .rope_base = 1e6,
       .qkv_bias = true,
       .experts = {{.count = 64, .top_k = 8, .ff = 2560, .shared_ff = 20480}}},
      {.name = "qwen3-30b-a3b",
       .architecture = A::kQwen3Moe,
       .layers = 48,
       .width = 2048,
       .heads = 32,
       .kv_heads = 4,
       .head_dim = 128,
       .dense_ff = 6144,
       .vocabulary = 151936,
       .context = 40960,
       .norm_epsilon = 1e-6,
       .rope_base = 1e6,
       .experts = {{.count = 128, .top_k = 8, .ff = 768, .normalise = true}}},
      {.name = "qwen3-next-80b-a3b",
       .architecture = A::kQwen3Next,
       .layers = 48,
       .width = 2048,
       .heads = 16,
       .kv_heads = 2,
       .head_dim = 256,
       .dense_ff = 5120,
       .vocabulary = 151936,
       .context = 262144,
       .norm_epsilon = 1e-6,
       .rope_base = 1e7,
       .delta = {{.key_heads = 16, .value_heads = 32, .head_dim = 128}},
       .rope_dim = 64,
       .experts = {{.count = 512, .top_k = 10, .ff = 512, .shared_ff = 512, .normalise = true}}},
      {.name = "qwen3.6-35b-a3b",
       .architecture = A::kQwen35Moe,
       .layers = 40,
       .width = 2048,
       .heads = 16,
       .kv_heads = 2,
       .head_dim = 256,
       .vocabulary = 248320,
       .context = 262144,
       .norm_epsilon = 1e-6,
       .rope_base = 1e7,
       .delta = {{.key_heads = 16, .value_heads = 32, .head_dim = 128}},
       .rope_dim = 64,
       .next_token_layers = 1,
       .experts = {{.count = 256, .top_k = 8, .ff = 512, .shared_ff = 512, .normalise = true}}},
      {.name = "mixtral-8x7b",
       .architecture = A::kLlama,
       .layers = 32,
       .width = 4096,
       .heads = 32,
       .kv_heads = 8,
       .head_dim = 128,
       .vocabulary = 32000,
       .context = 32768,
       .rope_base = 1e6,
       .experts = {{.count = 8, .top_k = 2, .ff = 14336, .normalise = true}}},
      {.name = "deepseek-moe-16b",
       .architecture = A::kDeepseek,
       .layers = 28,
       .width = 2048,
       .heads = 16,
       .kv_heads = 16,
       .head_dim = 128,
       .dense_ff = 10944,
       .vocabulary = 102400,
       .context = 4096,
       .norm_epsilon = 1e-6,
       .experts = {{.count = 64,
                    .top_k = 6,
                    .ff = 1408,
                    .shared_ff = 2 * 1408,
                    .shared_count = 2,
                    .leading_dense = 1}}},
      {.name = "deepseek-v2-lite",
       .architecture = A::kDeepseek2,
       .layers = 27,
       .width = 2048,
       .heads = 16,
       .kv_heads = 16,
       .head_dim = 192,
       .dense_ff = 10944,
       .vocabulary = 102400,
       .context = 163840,
       .norm_epsilon = 1e-6,
       .yarn = {{.factor = 40, .original_context = 4096, .multiplier = 0.707}},
       .mla = {{.kv_rank = 512, .nope_dim = 128, .rope_dim = 64, .value_dim = 128}},
       .experts = {{.count = 64,
                    .top_k = 6,
                    .ff = 1408,
                    .shared_ff = 2 * 1408,
                    .shared_count = 2,
                    .leading_dense = 1}}},
      {.name = "glm-4.7-flash",
       .architecture = A::kDeepseek2,
       .layers = 47,
       .width = 2048,
       .heads = 20,
       .kv_heads = 20,
       .head_dim = 256,
       .dense_ff = 10240,
       .vocabulary = 154880,
       .context = 202752,
       .rope_base = 1e6,
       .mla = {{.q_rank = 768, .kv_rank = 512, .nope_dim = 192, .rope_dim = 64, .value_dim = 256}},
       .experts = {{.count = 64,
                    .top_k = 4,
                    .ff = 1536,
                    .shared_ff = 1536,
                    .shared_count = 1,
                    .leading_dense = 1,
                    .sigmoid = true,
                    .selection_bias = true,
                    .normalise = true,
                    .scale = 1.8}}},
      GptOss("gpt-oss-20b", 24, 32),
      GptOss("gpt-oss-120b", 36, 128),
      {.name = "minimax-m2",
       .architecture = A::kMinimaxM2,
       .layers = 62,
       .width = 3072,
       .heads = 48,
       .kv_heads = 8,
       .head_dim = 128,
       .vocabulary = 200064,
       .context = 196608,
       .norm_epsilon = 1e-6,
       .rope_base = 5e6,
       .rope_dim = 64,
       .experts = {{.count = 256,
                    .top_k = 8,
                    .ff = 1536,
                    .sigmoid = true,
                    .selection_bias = true,
                    .normalise = true}}},
  };
}

// For tests: every part of a family in a few million weights. All rows are multiples of 256, so
// that each of the stored types is used as it is.
ModelShape Tiny(std::string name, A architecture) {
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
  ModelShape shape = Tiny("tiny-deepseek2", A::kDeepseek2);
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

ModelShape TinyDeltaNet(std::string name, A architecture) {
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
  ModelShape shape = Tiny("tiny-gpt-oss", A::kGptOss);
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
  ModelShape shape = Tiny("tiny-minimax-m2", A::kMinimaxM2);
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

std::vector<ModelShape> TinyShapes() {
  ModelShape llama = Tiny("tiny-llama", A::kLlama);
  llama.dense_ff = 512;

  ModelShape mixtral = Tiny("tiny-mixtral", A::kLlama);
  mixtral.experts = {{.count = 8, .top_k = 2, .ff = 256, .normalise = true}};

  ModelShape qwen2moe = Tiny("tiny-qwen2moe", A::kQwen2Moe);
  qwen2moe.dense_ff = 512;
  qwen2moe.qkv_bias = true;
  qwen2moe.experts = {{.count = 8, .top_k = 4, .ff = 256, .shared_ff = 512}};

  ModelShape qwen3moe = Tiny("tiny-qwen3moe", A::kQwen3Moe);
  qwen3moe.head_dim = 128;  // heads wider than the stream they come from, as in the real one
  qwen3moe.dense_ff = 512;
  qwen3moe.experts = {{.count = 8, .top_k = 3, .ff = 256, .normalise = true}};

  ModelShape olmoe = Tiny("tiny-olmoe", A::kOlmoe);
  olmoe.kv_heads = 4;
  olmoe.experts = {{.count = 8, .top_k = 3, .ff = 256}};

  ModelShape deepseek = Tiny("tiny-deepseek", A::kDeepseek);
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

  ModelShape qwen35moe = TinyDeltaNet("tiny-qwen35moe", A::kQwen35Moe);
  qwen35moe.next_token_layers = 1;

  return {llama,           mixtral,        qwen2moe,
          qwen3moe,        olmoe,          deepseek,
          TinyDeepseek2(), lite,           TinyDeltaNet("tiny-qwen3next", A::kQwen3Next),
          qwen35moe,       TinyGlmFlash(), TinyGptOss(),
          TinyMinimax()};
}

const std::vector<ModelShape>& Shapes() {
  static const std::vector<ModelShape> shapes = [] {
    std::vector<ModelShape> all = {Small()};
    for (ModelShape& shape : Published()) all.push_back(std::move(shape));
    for (ModelShape& shape : TinyShapes()) all.push_back(std::move(shape));
    return all;
  }();
  return shapes;
}

}  // namespace

const ModelShape* FindShape(std::string_view name) {
  for (const ModelShape& shape : Shapes()) {
    if (shape.name == name) return &shape;
  }
  return nullptr;
}

std::vector<std::string_view> ShapeNames() {
  std::vector<std::string_view> names;
  for (const ModelShape& shape : Shapes()) names.push_back(shape.name);
  return names;
}

}  // namespace troupe
