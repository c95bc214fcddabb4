#include "expert/gate/group_gate.h"

#include <algorithm>
#include <cmath>

namespace troupe {
namespace {

bool AllFinite(const std::vector<float>& values) {
  return std::ranges::all_of(values, [](float value) { return std::isfinite(value); });
}

Status ValidateLayer(const GroupGateLayer& layer, const GroupGate& gate) {
  if (layer.groups.size() != gate.groups) {
    return DataLoss("{} groups, {} expected", layer.groups.size(), gate.groups);
  }
  TROUPE_RETURN_IF_ERROR(CheckGroups(layer.groups, gate.experts));
  const std::size_t weights = std::size_t{gate.groups} * gate.width;
  if (layer.weights.size() != weights || layer.bias.size() != gate.groups) {
    return DataLoss("{} weights and {} biases, {} and {} expected", layer.weights.size(),
                    layer.bias.size(), weights, gate.groups);
  }
  if (!AllFinite(layer.weights) || !AllFinite(layer.bias)) {
    return DataLoss("weights that are not finite");
  }
  return OkStatus();
}

}  // namespace

std::uint32_t GroupGateLayer::SmallestGroup() const {
  std::size_t least = groups.front().size();
  for (const std::vector<std::uint32_t>& group : groups) least = std::min(least, group.size());
  return static_cast<std::uint32_t>(least);
}

std::uint32_t GroupGate::LeastLooked(std::uint32_t top_k) const {
  std::uint32_t looked = 1;
  for (const GroupGateLayer& layer : layers) {
    const std::uint32_t least = layer.SmallestGroup();
    looked = std::max(looked, (top_k + least - 1) / least);
  }
  return looked;
}

Status Validate(const GroupGate& gate) {
  if (gate.groups < 2 || gate.groups > gate.experts) {
    return DataLoss("{} groups of {} experts, 2 to {} expected", gate.groups, gate.experts,
                    gate.experts);
  }
  for (std::size_t i = 0; i < gate.layers.size(); ++i) {
    const GroupGateLayer& layer = gate.layers[i];
    if (i > 0 && layer.layer <= gate.layers[i - 1].layer) {
      return DataLoss("layer {} behind layer {}", layer.layer, gate.layers[i - 1].layer);
    }
    Status status = ValidateLayer(layer, gate);
    if (!status.ok()) return std::move(status).WithContext(fmt::format("layer {}", layer.layer));
  }
  return OkStatus();
}

std::string ToString(const GateChoice& choice) {
  if (choice.exact()) return "exact";
  std::string text = "groups";
  if (choice.looked > 0) text += fmt::format(":looked={}", choice.looked);
  if (choice.fusion == GroupFusion::kProduct) text += ":fusion=product";
  return text;
}

}  // namespace troupe
