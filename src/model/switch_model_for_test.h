// A tiny encoder-decoder with random weights, in F32: two encoder layers and three decoder layers,
// of which each second one has experts.
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

namespace troupe {

class TinySwitch {
 public:
  static constexpr std::int32_t kStart = 0;

  // capacity: tokens of a prompt that an expert of the encoder answers; 0: any number.
  static void Write(const std::string& path, std::uint32_t capacity = 0) {
    TinySwitch made;
    made.Build();
    GgufWriter writer = GgufWriter::Create(path, KeysWith(capacity), made.specs_).value();
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
  static constexpr std::uint32_t kEncoder = 2, kLayers = 5, kWidth = 64, kFf = 96, kHeads = 2;
  static constexpr std::uint32_t kHeadDim = 32, kExperts = 4, kBuckets = 8, kVocabulary = 50;

  static Metadata KeysWith(std::uint32_t capacity) {
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
    return keys;
  }

  static bool HasExperts(std::uint32_t layer) { return layer % 2 == 1; }

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

  std::vector<TensorSpec> specs_;
};

}  // namespace troupe
