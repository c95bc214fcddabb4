// A tiny encoder-decoder with random weights, in F32: two encoder layers and three decoder layers,
// of which each second one has experts, and a vocabulary of single letters.
#pragma once

#include <cmath>
#include <initializer_list>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/rng.h"
#include "gguf/metadata.h"
#include "gguf/writer.h"
#include "model/layer_range.h"

namespace troupe {

class TinySwitch {
 public:
  static constexpr std::int32_t kStart = 0;
  static constexpr std::uint32_t kEncoder = 2, kLayers = 5, kExperts = 4;

  // capacity: tokens of a prompt that an expert of the encoder answers; 0: any number. Layers
  // outside of `sparse` have no experts.
  static void Write(const std::string& path, std::uint32_t capacity = 0,
                    LayerRange sparse = {0, kLayers}) {
    TinySwitch made(sparse);
    made.Build();
    GgufWriter writer = GgufWriter::Create(path, made.KeysWith(capacity), made.specs_).value();
    Rng rng(5);
    for (const TensorSpec& spec : made.specs_) {
      std::vector<float> values(spec.ElementCount());
      const bool is_norm = spec.name.find("norm") != std::string::npos;
      const double deviation =
          is_norm ? 0.1 : 1.0 / std::sqrt(static_cast<double>(spec.rank > 1 ? spec.dims[0] : 1));
      for (float& value : values) {
        value = static_cast<float>(rng.Normal() * deviation + (is_norm ? 1.0 : 0.0));
      }
      TROUPE_CHECK(writer.Append(spec.name, std::as_bytes(std::span(values))).ok());
    }
    TROUPE_CHECK(writer.Finish().ok());
  }

  // A prompt: some tokens, and the one that the decoder begins with.
  static std::vector<std::int32_t> Prompt(std::size_t tokens, Rng& rng) {
    std::vector<std::int32_t> prompt(tokens + 1, kStart);
    for (std::size_t i = 0; i < tokens; ++i) {
      prompt[i] = static_cast<std::int32_t>(1 + rng.Below(kVocabulary - 1));
    }
    return prompt;
  }

 private:
  static constexpr std::uint32_t kWidth = 64, kFf = 96, kHeads = 2, kHeadDim = 32, kBuckets = 8;
  static constexpr std::uint32_t kVocabulary = 50;

  explicit TinySwitch(LayerRange sparse) : sparse_(sparse) {}

  Metadata KeysWith(std::uint32_t capacity) const {
    Metadata keys("tiny-switch");
    keys.Set("general.architecture", "switch");
    const std::pair<const char*, std::uint32_t> counts[] = {
        {"block_count", kLayers},
        {"encoder_block_count", kEncoder},
        {"context_length", 512},
        {"embedding_length", kWidth},
        {"feed_forward_length", kFf},
        {"attention.head_count", kHeads},
        {"attention.key_length", kHeadDim},
        {"attention.value_length", kHeadDim},
        {"attention.relative_buckets_count", kBuckets},
        {"attention.relative_max_distance", 20},
        {"expert_count", kExperts},
        {"expert_used_count", 1},
        {"expert_feed_forward_length", kFf},
        {"expert_capacity", capacity},
        {"decoder_start_token_id", kStart},
        {"vocab_size", kVocabulary}};
    for (const auto& [key, count] : counts) keys.Set(std::string("switch.") + key, count);
    keys.Set("switch.attention.layer_norm_rms_epsilon", 1e-6f);
    keys.Set("switch.logit_scale", 0.125f);
    std::vector<bool> flags;
    for (std::uint32_t layer = 0; layer < kLayers; ++layer) flags.push_back(HasExperts(layer));
    keys.Set("switch.expert_layers", Array{flags});
    SetVocabulary(keys);
    return keys;
  }

  static void SetVocabulary(Metadata& keys) {
    StringArray tokens{"<pad>", "</s>", "<unk>"};
    std::vector<std::int32_t> types = {3, 3, 2};
    while (tokens.size() < kVocabulary) {
      tokens.Append(std::string(1, static_cast<char>('A' + tokens.size() - 3)));
      types.push_back(1);
    }
    keys.Set("tokenizer.ggml.model", "t5");
    keys.Set("tokenizer.ggml.tokens", Array{std::move(tokens)});
    keys.Set("tokenizer.ggml.scores", Array{std::vector<float>(kVocabulary, -1.0f)});
    keys.Set("tokenizer.ggml.token_type", Array{std::move(types)});
    keys.Set("tokenizer.ggml.unknown_token_id", std::uint32_t{2});
    keys.Set("tokenizer.ggml.eos_token_id", std::uint32_t{1});
    keys.Set("tokenizer.ggml.add_eos_token", true);
  }

  bool HasExperts(std::uint32_t layer) const { return layer % 2 == 1 && sparse_.Contains(layer); }

  void Add(std::string name, std::uint64_t cols, std::uint64_t rows = 1,
           std::uint64_t matrices = 1) {
    if (matrices > 1) {
      specs_.emplace_back(std::move(name), TensorType::kF32,
                          std::initializer_list<std::uint64_t>{cols, rows, matrices});
    } else if (rows > 1) {
      specs_.emplace_back(std::move(name), TensorType::kF32,
                          std::initializer_list<std::uint64_t>{cols, rows});
    } else {
      specs_.emplace_back(std::move(name), TensorType::kF32,
                          std::initializer_list<std::uint64_t>{cols});
    }
  }

  void AddAttention(const std::string& prefix) {
    Add(prefix + "_norm.weight", kWidth);
    for (const char* part : {"_q", "_k", "_v", "_output"}) {
      Add(prefix + part + ".weight", kWidth, kHeads * kHeadDim);
    }
  }

  void Build() {
    static_assert(kWidth == kHeads * kHeadDim);
    Add("token_embd.weight", kWidth, kVocabulary);
    Add("enc.output_norm.weight", kWidth);
    Add("output_norm.weight", kWidth);
    for (std::uint32_t layer = 0; layer < kLayers; ++layer) {
      const std::string prefix = "blk." + std::to_string(layer) + ".";
      AddAttention(prefix + "attn");
      if (layer >= kEncoder) AddAttention(prefix + "cross_attn");
      if (layer == 0 || layer == kEncoder) Add(prefix + "attn_rel_b.weight", kHeads, kBuckets);
      Add(prefix + "ffn_norm.weight", kWidth);
      if (HasExperts(layer)) {
        Add(prefix + "ffn_gate_inp.weight", kWidth, kExperts);
        Add(prefix + "ffn_up_exps.weight", kWidth, kFf, kExperts);
        Add(prefix + "ffn_down_exps.weight", kFf, kWidth, kExperts);
      } else {
        Add(prefix + "ffn_up.weight", kWidth, kFf);
        Add(prefix + "ffn_down.weight", kFf, kWidth);
      }
    }
  }

  LayerRange sparse_;
  std::vector<TensorSpec> specs_;
};

}  // namespace troupe
