// Gemma 4 (26B-A4B, and the dense models of the line): most layers see a window, with heads and
// rotary positions of their own; values are normed, and those of the other layers are what their
// keys are made of; answers of blocks are normed before they are added; experts beside a dense
// feed-forward; GELU; logits that are bent.
#include <algorithm>
#include <cmath>
#include <variant>

#include "model/arch/keys.h"

namespace troupe {
namespace {

Result<std::vector<bool>> ReadWindowLayers(const ArchKeys& keys, std::uint32_t layers) {
  const std::string name = keys.Full("attention.sliding_window_pattern");
  const Value* const value = keys.metadata().Find(name);
  if (value == nullptr) return InvalidArgument("{} is missing", name);
  const auto* const array = std::get_if<Array>(value);
  const auto* const flags = array ? std::get_if<std::vector<bool>>(&array->elements) : nullptr;
  if (flags == nullptr || flags->size() < layers) {
    return keys.metadata().BadValue(name, fmt::format("an array of {} flags", layers));
  }
  return std::vector<bool>(flags->begin(), flags->begin() + layers);
}

// The key heads of the layers with a window, and of those without one, which all are alike.
Status ReadKeyHeads(const ArchKeys& keys, std::uint32_t layers, WindowConfig& window,
                    AttentionConfig& attention) {
  const auto windows = std::ranges::count(window.layers, true);
  if (windows == 0 || windows == layers) {
    return keys.metadata().BadValue(keys.Full("attention.sliding_window_pattern"),
                                    "layers of both kinds");
  }
  const std::string_view key = "attention.head_count_kv";
  TROUPE_ASSIGN_OR_RETURN(const std::vector<std::uint32_t> each,
                          keys.PerLayerOr(key, attention.heads, layers, 1, attention.heads));
  std::uint32_t heads[2] = {0, 0};
  for (std::uint32_t layer = 0; layer < layers; ++layer) {
    std::uint32_t& of_kind = heads[window.layers[layer] ? 1 : 0];
    if (of_kind == 0) of_kind = each[layer];
    if (of_kind != each[layer] || attention.heads % each[layer] != 0) {
      return keys.metadata().BadValue(
          keys.Full(key),
          fmt::format("the same divisor of {} in layers of a kind", attention.heads));
    }
  }
  attention.kv_heads = heads[0];
  window.attention->kv_heads = heads[1];
  return OkStatus();
}

Status ReadWindow(const ArchKeys& keys, ModelConfig& config) {
  WindowConfig window;
  TROUPE_ASSIGN_OR_RETURN(window.layers, ReadWindowLayers(keys, config.layers));
  TROUPE_ASSIGN_OR_RETURN(window.positions, keys.Count("attention.sliding_window", 1, kMaxContext));
  AttentionConfig narrow = config.attention;
  TROUPE_ASSIGN_OR_RETURN(narrow.key_dim, keys.Count("attention.key_length_swa", 1, kMaxHeadDim));
  TROUPE_ASSIGN_OR_RETURN(narrow.value_dim,
                          keys.Count("attention.value_length_swa", 1, kMaxHeadDim));
  if (narrow.key_dim != narrow.value_dim ||
      config.attention.key_dim != config.attention.value_dim) {
    return InvalidArgument("{} is {}, expected {}, as of keys",
                           keys.Full("attention.value_length_swa"), narrow.value_dim,
                           narrow.key_dim);
  }
  window.attention = narrow;
  RopeParams rope = config.rope;
  TROUPE_ASSIGN_OR_RETURN(rope.freq_base, keys.PositiveNumberOr("rope.freq_base_swa", 10000.0f));
  TROUPE_ASSIGN_OR_RETURN(
      rope.dims, keys.CountOr("rope.dimension_count_swa", narrow.key_dim, 2, narrow.key_dim));
  if (rope.dims % 2 != 0) {
    return InvalidArgument("{} is {}, expected an even number",
                           keys.Full("rope.dimension_count_swa"), rope.dims);
  }
  window.rope = std::move(rope);
  TROUPE_RETURN_IF_ERROR(ReadKeyHeads(keys, config.layers, window, config.attention));
  config.window = std::move(window);
  return OkStatus();
}

// What the smaller models of the line have and this engine does not.
Status RefuseSmallModels(const ArchKeys& keys) {
  for (const char* key : {"attention.shared_kv_layers", "embedding_length_per_layer_input"}) {
    TROUPE_ASSIGN_OR_RETURN(const std::uint32_t value, keys.CountOr(key, 0, 0, kMaxWidth));
    if (value == 0) continue;
    return Error(Code::kUnimplemented, "{} is {}, expected 0: models with it are not known",
                 keys.Full(key), value);
  }
  return OkStatus();
}

}  // namespace

Result<ModelConfig> ReadGemma4Config(const Metadata& metadata) {
  const ArchKeys keys(metadata, "gemma4");
  TROUPE_RETURN_IF_ERROR(RefuseSmallModels(keys));
  TROUPE_ASSIGN_OR_RETURN(
      ModelConfig config,
      ReadCommonConfig(keys, Architecture::kGemma4, RopePairs::kHalves, KeyHeads::kOfEachLayer));
  AttentionConfig& attention = config.attention;
  attention.scale = 1.0f;  // the norms of queries and keys have it
  attention.qk_norm = QkNorm::kPerHead;
  attention.values_normed = true;
  TROUPE_RETURN_IF_ERROR(ReadWindow(keys, config));
  config.embedding_scale = std::sqrt(static_cast<float>(config.width));
  TROUPE_ASSIGN_OR_RETURN(config.logit_cap, keys.NumberOr("final_logit_softcapping", 0.0f));
  if (config.logit_cap < 0) {
    return InvalidArgument("{} is {}, expected 0 or more", keys.Full("final_logit_softcapping"),
                           config.logit_cap);
  }
  config.form = GateForm::kGelu;
  config.answers_normed = true;
  if (config.dense_ff == 0) {
    return InvalidArgument("{} is missing", keys.Full("feed_forward_length"));
  }
  MoeConfig& moe = config.moe;
  if (moe.routing.experts == 0) return config;
  TROUPE_RETURN_IF_ERROR(ReadExpertSizes(keys, 0, moe));
  moe.routing.normalise = true;
  moe.beside_dense = true;
  moe.shared_ff = config.dense_ff;
  return config;
}

}  // namespace troupe
