#include "model/inspect.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <string_view>

#include "model/kv_pool.h"
#include "model/sequence_state.h"

namespace troupe {
namespace {

struct LayerTensor {
  std::uint32_t block = 0;
  std::string_view name;  // without "blk.N."
};

std::optional<LayerTensor> ParseLayerTensor(std::string_view name) {
  constexpr std::string_view kPrefix = "blk.";
  if (!name.starts_with(kPrefix)) return std::nullopt;
  name.remove_prefix(kPrefix.size());
  LayerTensor tensor;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), tensor.block);
  name.remove_prefix(static_cast<std::size_t>(end - name.data()));
  if (error != std::errc() || !name.starts_with('.')) return std::nullopt;
  tensor.name = name.substr(1);
  return tensor;
}

// Where the bytes of a layer's tensor count, by its name.
Bytes& RoleOf(LayerBytes& layer, std::string_view name) {
  if (name.find("_norm") != std::string_view::npos) return layer.norms;
  const bool attends = name.starts_with("attn_") || name.starts_with("cross_attn_");
  const bool recurs = name.starts_with("ssm_") || name.starts_with("shortconv.");
  if (attends || recurs) return layer.attention;
  if (name.ends_with("_exps.weight")) return layer.experts;  // their biases stay in memory
  if (name.starts_with("ffn_gate_inp") || name.starts_with("exp_probs_b")) return layer.router;
  return layer.dense;
}

void CountType(std::vector<TypeShare>& types, const TensorInfo& tensor) {
  auto at = std::find_if(types.begin(), types.end(),
                         [&](const TypeShare& share) { return share.type == tensor.type; });
  if (at == types.end()) at = types.insert(at, TypeShare{.type = tensor.type});
  ++at->tensors;
  at->bytes += tensor.bytes;
}

}  // namespace

Result<ModelFacts> InspectModel(const GgufModel& model) {
  ModelFacts facts;
  TROUPE_ASSIGN_OR_RETURN(facts.config, ReadModelConfig(model.metadata()));
  facts.file = model.file_bytes();
  facts.layers.resize(facts.config.layers);
  const std::uint32_t blocks = facts.config.FileBlocks();
  facts.tied_output = model.Find("output.weight") == nullptr;
  for (const TensorInfo& tensor : model.tensors()) {
    facts.weights += tensor.ElementCount();
    CountType(facts.types, tensor);
    const std::optional<LayerTensor> place = ParseLayerTensor(tensor.name);
    if (!place) {
      (tensor.name == "token_embd.weight" ? facts.embedding : facts.output) += tensor.bytes;
    } else if (place->block < blocks) {
      RoleOf(facts.layers[facts.config.LayerOfBlock(place->block)], place->name) += tensor.bytes;
    } else if (place->block < blocks + facts.config.next_token_layers) {
      facts.left_out += tensor.bytes;
    } else {
      return DataLoss("{}: tensor '{}' is of layer {}, but block_count says {} layers",
                      model.files()[tensor.file].path(), tensor.name, place->block, blocks);
    }
  }
  std::stable_sort(facts.types.begin(), facts.types.end(),
                   [](const TypeShare& a, const TypeShare& b) { return a.bytes > b.bytes; });
  return facts;
}

Bytes ModelFacts::Experts() const {
  Bytes sum;
  for (const LayerBytes& layer : layers) sum += layer.experts;
  return sum;
}

Bytes ModelFacts::Dense() const {
  Bytes sum = embedding + output;
  for (const LayerBytes& layer : layers) sum += layer.Total() - layer.experts;
  return sum;
}

Bytes ModelFacts::LargestExpert() const {
  Bytes largest;
  for (const LayerBytes& layer : layers) largest = std::max(largest, layer.experts);
  return Bytes(largest.count() / std::max(1u, config.moe.routing.experts));
}

Bytes ModelFacts::TouchedPerToken() const {
  const TopExpertsParams& routing = config.moe.routing;
  const Bytes table_row(embedding.count() / std::max(1u, config.vocabulary));
  Bytes sum = output + (tied_output ? embedding : table_row);
  for (std::uint32_t i = 0; i < layers.size(); ++i) {
    if (config.IsEncoder(i)) continue;
    const LayerBytes& layer = layers[i];
    sum += layer.Total() - layer.experts;
    if (routing.experts > 0) sum += Bytes(layer.experts.count() / routing.experts * routing.top_k);
  }
  return sum;
}

Bytes ModelFacts::StatePerSequence() const {
  return StatePool::BytesFor(config, {0, config.layers}, {.sequences = 1});
}

Bytes ModelFacts::KvPerToken(KvType type) const {
  const std::vector<KvLayout> tiles =
      KvPool::LayoutsFor(config, {0, config.layers}, type, KvLayout::kTile);
  Bytes sum;
  for (std::uint32_t layer = 0; layer < config.layers; ++layer) {
    if (config.HasKeys(layer)) sum += tiles[layer].TotalBytes();
  }
  return Bytes(sum.count() / KvLayout::kTile);
}

}  // namespace troupe
