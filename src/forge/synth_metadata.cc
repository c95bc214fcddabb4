// The keys half of synth_layout.h.
#include <algorithm>
#include <initializer_list>
#include <string>
#include <vector>

#include "forge/synth_layout.h"

namespace troupe {
namespace {

class KeyWriter {
 public:
  KeyWriter(Metadata& metadata, std::string_view prefix) : metadata_(metadata), prefix_(prefix) {}

  void Count(std::string_view key, std::uint32_t value) { Set(key, value); }
  void Number(std::string_view key, double value) { Set(key, static_cast<float>(value)); }
  void Flag(std::string_view key, bool value) { Set(key, value); }
  void Numbers(std::string_view key, std::vector<std::int32_t> values) {
    Set(key, Array{std::move(values)});
  }
  void Flags(std::string_view key, std::vector<bool> values) { Set(key, Array{std::move(values)}); }
  void Text(std::string_view key, std::string value) { Set(key, std::move(value)); }

 private:
  void Set(std::string_view key, Value value) {
    metadata_.Set(fmt::format("{}.{}", prefix_, key), std::move(value));
  }

  Metadata& metadata_;
  std::string_view prefix_;
};

void WriteWindowHeads(const ModelShape& shape, KeyWriter& keys) {
  const WindowHeadsShape& window = *shape.window_heads;
  std::vector<std::int32_t> key_heads;
  std::vector<bool> has_window;
  for (std::uint32_t layer = 0; layer < shape.layers; ++layer) {
    const bool full = window.IsFull(layer);
    key_heads.push_back(static_cast<std::int32_t>(full ? shape.kv_heads : window.kv_heads));
    has_window.push_back(!full);
  }
  keys.Numbers("attention.head_count_kv", std::move(key_heads));
  keys.Flags("attention.sliding_window_pattern", std::move(has_window));
  for (const std::string_view of : {"key", "value"}) {
    keys.Count(fmt::format("attention.{}_length", of), shape.head_dim);
    keys.Count(fmt::format("attention.{}_length_swa", of), window.head_dim);
  }
  keys.Count("rope.dimension_count", shape.head_dim);
  keys.Count("rope.dimension_count_swa", window.head_dim);
  keys.Number("rope.freq_base_swa", window.rope_base);
  keys.Number("final_logit_softcapping", shape.logit_cap);
  keys.Count("attention.shared_kv_layers", 0);
  keys.Count("embedding_length_per_layer_input", 0);
}

// None in layers without attention.
void WriteKeyHeads(const ModelShape& shape, const std::vector<std::uint32_t>& attention_layers,
                   KeyWriter& keys) {
  std::vector<std::int32_t> of_layers(shape.layers, 0);
  for (const std::uint32_t layer : attention_layers) {
    if (layer < shape.layers) of_layers[layer] = static_cast<std::int32_t>(shape.kv_heads);
  }
  keys.Numbers("attention.head_count_kv", std::move(of_layers));
}

void WriteBlocks(const ModelShape& shape, KeyWriter& keys) {
  std::vector<std::int32_t> key_heads, feed_forward;
  for (std::uint32_t layer = 0; layer < shape.layers; ++layer) {
    const char part = shape.blocks[layer];
    const std::uint32_t ff = part == 'E' ? shape.experts->ff : part == '-' ? shape.dense_ff : 0;
    key_heads.push_back(part == '*' ? static_cast<std::int32_t>(shape.kv_heads) : 0);
    feed_forward.push_back(static_cast<std::int32_t>(ff));
  }
  keys.Numbers("attention.head_count_kv", std::move(key_heads));
  keys.Numbers("feed_forward_length", std::move(feed_forward));
  keys.Number("attention.layer_norm_epsilon", shape.norm_epsilon);
}

void WriteAttention(const ModelShape& shape, bool combined_kv, KeyWriter& keys) {
  keys.Count("attention.head_count", shape.heads);
  keys.Number("attention.layer_norm_rms_epsilon", shape.norm_epsilon);
  keys.Number("rope.freq_base", shape.rope_base);
  if (shape.window > 0) keys.Count("attention.sliding_window", shape.window);
  if (shape.window_heads) {
    WriteWindowHeads(shape, keys);
    return;
  }
  if (shape.scales) keys.Number("attention.scale", shape.scales->attention);
  if (!shape.mla) {
    if (shape.short_conv) {
      WriteKeyHeads(shape, shape.short_conv->attention_layers, keys);
    } else if (!shape.blocks.empty()) {
      WriteBlocks(shape, keys);
    } else if (shape.space) {
      WriteKeyHeads(shape, shape.space->attention_layers, keys);
    } else {
      keys.Count("attention.head_count_kv", shape.kv_heads);
    }
    keys.Count("rope.dimension_count", shape.rope_dim > 0 ? shape.rope_dim : shape.head_dim);
    if (shape.head_dim * shape.heads != shape.width) {
      keys.Count("attention.key_length", shape.head_dim);
      keys.Count("attention.value_length", shape.head_dim);
    }
    return;
  }
  const MlaConfig& mla = *shape.mla;
  const std::uint32_t key_dim = mla.nope_dim + mla.rope_dim;
  if (mla.q_rank > 0) keys.Count("attention.q_lora_rank", mla.q_rank);
  keys.Count("attention.kv_lora_rank", mla.kv_rank);
  keys.Count("rope.dimension_count", mla.rope_dim);
  if (combined_kv) {
    keys.Count("attention.head_count_kv", shape.heads);
    keys.Count("attention.key_length", key_dim);
    keys.Count("attention.value_length", mla.value_dim);
  } else {  // one key head: the latent row, which every query head reads
    keys.Count("attention.head_count_kv", 1);
    keys.Count("attention.key_length", mla.kv_rank + mla.rope_dim);
    keys.Count("attention.value_length", mla.kv_rank);
    keys.Count("attention.key_length_mla", key_dim);
    keys.Count("attention.value_length_mla", mla.value_dim);
  }
}

void WriteDeltaNet(const ModelShape& shape, KeyWriter& keys) {
  const DeltaNetShape& delta = *shape.delta;
  keys.Count("ssm.conv_kernel", delta.taps);
  keys.Count("ssm.state_size", delta.head_dim);
  keys.Count("ssm.group_count", delta.key_heads);
  keys.Count("ssm.time_step_rank", delta.value_heads);
  keys.Count("ssm.inner_size", delta.value_heads * delta.head_dim);
  keys.Count("full_attention_interval", delta.attention_every);
}

void WriteStateSpace(const StateSpaceShape& space, KeyWriter& keys) {
  keys.Count("ssm.conv_kernel", space.taps);
  keys.Count("ssm.state_size", space.key_dim);
  keys.Count("ssm.group_count", space.groups);
  keys.Count("ssm.time_step_rank", space.heads);
  keys.Count("ssm.inner_size", space.heads * space.head_dim);
  keys.Flag("rope.scaling.finetuned", false);
}

// Three positions take turns; in a text they are the same.
void WriteSections(const ModelShape& shape, KeyWriter& keys) {
  const std::uint32_t dims = shape.rope_dim > 0 ? shape.rope_dim : shape.head_dim;
  const auto pairs = static_cast<std::int32_t>(dims / 2);
  keys.Numbers("rope.dimension_sections", {(pairs + 2) / 3, (pairs + 1) / 3, pairs / 3, 0});
}

// From all over the vocabulary, the first and the last among them.
void WriteHeadTokens(const ModelShape& shape, KeyWriter& keys) {
  const std::uint32_t count = shape.small_head.tokens;
  std::vector<std::int32_t> tokens;
  for (std::uint64_t i = 0; i < count; ++i) {
    const std::uint64_t at = i * (shape.vocabulary - 1) / std::max(1u, count - 1);
    tokens.push_back(static_cast<std::int32_t>(at));
  }
  keys.Numbers("nextn_tokens", std::move(tokens));
}

void WriteYarn(const YarnShape& yarn, KeyWriter& keys) {
  keys.Text("rope.scaling.type", "yarn");
  keys.Number("rope.scaling.factor", yarn.factor);
  keys.Count("rope.scaling.original_context_length", yarn.original_context);
  if (yarn.multiplier != 0) {
    keys.Number("rope.scaling.yarn_log_multiplier", 0.1 * yarn.multiplier);
  }
}

void WriteExperts(const ModelShape& shape, KeyWriter& keys) {
  const ExpertsShape& experts = *shape.experts;
  keys.Count("expert_count", experts.count);
  keys.Count("expert_used_count", experts.top_k);
  const auto is = [&](std::initializer_list<Architecture> families) {
    return std::ranges::find(families, shape.architecture) != families.end();
  };
  if (shape.dense_ff > 0 || shape.delta ||
      is({Architecture::kGptOss, Architecture::kMinimaxM2, Architecture::kHunyuanMoe,
          Architecture::kNemotronHMoe})) {
    keys.Count("expert_feed_forward_length", experts.ff);
  }
  if (experts.leading_dense > 0) {
    keys.Count("leading_dense_block_count", experts.leading_dense);
  }
  if (is({Architecture::kDeepseek, Architecture::kDeepseek2, Architecture::kGlm4Moe,
          Architecture::kDots1, Architecture::kBailingMoe2})) {
    keys.Count("expert_shared_count", experts.shared_count);
    keys.Number("expert_weights_scale", experts.scale);
  } else if (experts.shared_ff > 0) {
    keys.Count("expert_shared_feed_forward_length", experts.shared_ff);
  }
  if (is({Architecture::kNemotronHMoe})) {
    keys.Count("expert_shared_count", experts.shared_count);
    keys.Number("expert_weights_scale", experts.scale);
  }
  if (is({Architecture::kDeepseek2, Architecture::kGlm4Moe, Architecture::kDots1,
          Architecture::kBailingMoe2, Architecture::kNemotronHMoe})) {
    keys.Flag("expert_weights_norm", experts.normalise);
  }
  if (is({Architecture::kMinimaxM2, Architecture::kLfm2Moe, Architecture::kDeepseek2,
          Architecture::kGlm4Moe, Architecture::kDots1, Architecture::kBailingMoe2})) {
    keys.Count("expert_gating_func", experts.sigmoid ? 2 : 1);
  }
  if (is({Architecture::kErnie45Moe})) keys.Count("interleave_moe_layer_step", 1);
  if (is({Architecture::kDeepseek2, Architecture::kBailingMoe2, Architecture::kNemotronHMoe})) {
    keys.Count("expert_group_count", experts.groups);
    keys.Count("expert_group_used_count", experts.groups_used);
  }
}

}  // namespace

Metadata MetadataOf(const ModelShape& shape, const SynthLayout& layout) {
  Metadata metadata(shape.name);
  const std::string_view prefix = Name(shape.architecture);
  metadata.Set("general.architecture", std::string(prefix));
  metadata.Set("general.name", fmt::format("{} with random weights", shape.name));
  metadata.Set("general.file_type",
               layout.upload ? FileTypeNumber(*layout.upload) : FileTypeNumber(layout.mix.type));
  metadata.Set("general.quantization_version", std::uint32_t{2});

  KeyWriter keys(metadata, prefix);
  keys.Count("block_count", shape.layers + shape.next_token_layers);
  keys.Count("context_length", shape.context);
  keys.Count("embedding_length", shape.width);
  // Families in which all layers have experts give the experts' width here.
  if (shape.blocks.empty()) {
    keys.Count("feed_forward_length", shape.dense_ff > 0 ? shape.dense_ff : shape.experts->ff);
  }
  keys.Count("vocab_size", shape.vocabulary);
  WriteAttention(shape, layout.combined_kv, keys);
  if (shape.delta) WriteDeltaNet(shape, keys);
  if (shape.space) WriteStateSpace(*shape.space, keys);
  if (shape.next_token_layers > 0) keys.Count("nextn_predict_layers", shape.next_token_layers);
  if (shape.small_head.tokens > 0) WriteHeadTokens(shape, keys);
  if (shape.architecture == Architecture::kQwen35Moe ||
      shape.architecture == Architecture::kQwen3VlMoe) {
    WriteSections(shape, keys);
  }
  if (shape.short_conv) keys.Count("shortconv.l_cache", shape.short_conv->taps);
  if (shape.scales) {
    keys.Number("embedding_scale", shape.scales->embedding);
    keys.Number("residual_scale", shape.scales->residual);
    keys.Number("logit_scale", shape.scales->logits);
  }
  if (shape.yarn) WriteYarn(*shape.yarn, keys);
  if (shape.experts) WriteExperts(shape, keys);
  return metadata;
}

}  // namespace troupe
