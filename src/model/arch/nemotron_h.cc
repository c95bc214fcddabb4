// Nemotron-H (Nemotron Nano 2) and Nemotron 3: blocks of the file are Mamba-2, attention without
// rotation or a feed-forward, each with its own norm; a feed-forward squares what a ReLU leaves of
// one product. With experts these are chosen by sigmoids plus a bias, beside a shared one. A layer
// here is what stands before a feed-forward, with it.
#include <algorithm>

#include "model/arch/keys.h"

namespace troupe {
namespace {

// As they follow each other in a layer.
enum class Part { kRecurrent, kAttention, kFeedForward };

// A block without a feed-forward has attention if it has key heads.
Part PartOf(std::uint32_t feed_forward, std::uint32_t key_heads) {
  if (feed_forward > 0) return Part::kFeedForward;
  return key_heads > 0 ? Part::kAttention : Part::kRecurrent;
}

std::optional<std::uint32_t>& PlaceOf(LayerBlocks& layer, Part part) {
  if (part == Part::kFeedForward) return layer.feed_forward;
  return part == Part::kAttention ? layer.attention : layer.recurrent;
}

bool HasNothingFrom(const LayerBlocks& layer, Part part) {
  if (layer.feed_forward) return false;
  if (part != Part::kFeedForward && layer.attention) return false;
  return part != Part::kRecurrent || !layer.recurrent;
}

Result<std::vector<std::uint32_t>> ReadSameOrNone(const ArchKeys& keys, std::string_view key,
                                                  std::uint32_t blocks, std::uint32_t number) {
  TROUPE_ASSIGN_OR_RETURN(const std::vector<std::uint32_t> each,
                          keys.PerLayerOr(key, number, blocks, 0, kMaxWidth));
  for (const std::uint32_t one : each) {
    if (one == 0 || one == number) continue;
    return keys.metadata().BadValue(keys.Full(key), "0, or the same number, in each layer");
  }
  return each;
}

// What config.layers says is blocks until then.
Status ReadLayers(const ArchKeys& keys, ModelConfig& config) {
  const std::uint32_t blocks = config.layers;
  TROUPE_ASSIGN_OR_RETURN(const std::vector<std::uint32_t> feed_forward,
                          ReadSameOrNone(keys, "feed_forward_length", blocks, config.dense_ff));
  TROUPE_ASSIGN_OR_RETURN(
      const std::vector<std::uint32_t> key_heads,
      ReadSameOrNone(keys, "attention.head_count_kv", blocks, config.attention.kv_heads));
  for (std::uint32_t block = 0; block < blocks; ++block) {
    const Part part = PartOf(feed_forward[block], key_heads[block]);
    if (config.blocks.empty() || !HasNothingFrom(config.blocks.back(), part)) {
      config.blocks.emplace_back();
    }
    PlaceOf(config.blocks.back(), part) = block;
  }
  config.layers = static_cast<std::uint32_t>(config.blocks.size());
  const auto has_state = [](const LayerBlocks& layer) { return layer.recurrent.has_value(); };
  if (std::ranges::any_of(config.blocks, has_state)) {
    for (const LayerBlocks& layer : config.blocks) config.recurrent.push_back(has_state(layer));
    TROUPE_ASSIGN_OR_RETURN(config.space, ReadStateSpace(keys));
  }
  return OkStatus();
}

// What larger models of the line have and this engine does not.
Status RefuseLargeModels(const ArchKeys& keys) {
  for (const char* key : {"moe_latent_size", "nextn_predict_layers"}) {
    TROUPE_ASSIGN_OR_RETURN(const std::uint32_t value, keys.CountOr(key, 0, 0, kMaxWidth));
    if (value == 0) continue;
    return Error(Code::kUnimplemented, "{} is {}, expected 0: models with it are not known",
                 keys.Full(key), value);
  }
  return OkStatus();
}

Result<ModelConfig> ReadBlocks(const ArchKeys& keys, Architecture architecture) {
  TROUPE_ASSIGN_OR_RETURN(
      ModelConfig config,
      ReadCommonConfig(keys, architecture, RopePairs::kHalves, KeyHeads::kOfEachLayer));
  if (config.dense_ff == 0) {
    return InvalidArgument("{} is missing", keys.Full("feed_forward_length"));
  }
  config.rope = {.pairs = config.rope.pairs, .dims = 0};
  config.form = GateForm::kSquaredRelu;
  config.ffn_norm = "attn_norm";  // what every block calls its own
  TROUPE_RETURN_IF_ERROR(ReadLayers(keys, config));
  return config;
}

}  // namespace

Result<ModelConfig> ReadNemotronHConfig(const Metadata& metadata) {
  const ArchKeys keys(metadata, "nemotron_h");
  TROUPE_ASSIGN_OR_RETURN(const std::uint32_t experts,
                          keys.CountOr("expert_count", 0, 0, kMaxWidth));
  if (experts > 0) {
    return InvalidArgument("{} is {}, expected 0: nemotron_h_moe has experts",
                           keys.Full("expert_count"), experts);
  }
  return ReadBlocks(keys, Architecture::kNemotronH);
}

Result<ModelConfig> ReadNemotronHMoeConfig(const Metadata& metadata) {
  const ArchKeys keys(metadata, "nemotron_h_moe");
  TROUPE_RETURN_IF_ERROR(RefuseLargeModels(keys));
  TROUPE_ASSIGN_OR_RETURN(ModelConfig config, ReadBlocks(keys, Architecture::kNemotronHMoe));
  for (const LayerBlocks& layer : config.blocks) {
    if (layer.feed_forward) continue;
    return Error(
        Code::kUnimplemented,
        "{}: no experts behind block {}, expected behind a block of Mamba-2, of attention, "
        "or of both",
        keys.Full("feed_forward_length"), *std::max(layer.recurrent, layer.attention));
  }
  MoeConfig& moe = config.moe;
  if (moe.routing.experts == 0) return InvalidArgument("{} is missing", keys.Full("expert_count"));
  TROUPE_RETURN_IF_ERROR(ReadExpertSizes(keys, 0, moe));
  TROUPE_ASSIGN_OR_RETURN(moe.shared_ff,
                          keys.CountOr("expert_shared_feed_forward_length", 0, 0, kMaxWidth));
  TROUPE_RETURN_IF_ERROR(ReadRouting(keys, GateScore::kSigmoid, moe));
  moe.selection_bias = Presence::kRequired;
  return config;
}

}  // namespace troupe
