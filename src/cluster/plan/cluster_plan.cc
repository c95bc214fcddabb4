#include "cluster/plan/cluster_plan.h"

#include <algorithm>
#include <set>

#include "base/json.h"
#include "base/json_value.h"

namespace troupe {
namespace {

std::vector<std::uint32_t> ReadLayer(const JsonValue& json, std::uint32_t experts) {
  std::vector<std::uint32_t> held;
  for (std::size_t i = 0; i < json.size(); ++i) {
    const JsonValue value = json.At(i);
    const auto expert = static_cast<std::uint32_t>(value.Count(0, experts - 1));
    if (!held.empty() && expert <= held.back()) value.Fail("a number above the one before it");
    held.push_back(expert);
  }
  return held;
}

ClusterPlan::Node ReadNode(const JsonValue& json, ExpertGrid grid) {
  json.AllowOnly({"name", "held"});
  ClusterPlan::Node node{.name = json.At("name").String(), .held = {}};
  const JsonValue held = json.At("held");
  if (held.size() != grid.layers)
    held.Fail(fmt::format("a list for each of {} layers", grid.layers));
  for (std::size_t layer = 0; layer < held.size(); ++layer) {
    node.held.push_back(ReadLayer(held.At(layer), grid.experts));
  }
  return node;
}

}  // namespace

std::size_t ClusterPlan::Node::count() const {
  std::size_t all = 0;
  for (const std::vector<std::uint32_t>& layer : held) all += layer.size();
  return all;
}

const ClusterPlan::Node* ClusterPlan::Find(std::string_view name) const {
  const auto found = std::ranges::find(nodes, name, &Node::name);
  return found == nodes.end() ? nullptr : &*found;
}

std::string ToJson(const ClusterPlan& plan) {
  Json nodes = Json::Array();
  for (const ClusterPlan::Node& node : plan.nodes) {
    Json held = Json::Array();
    for (const std::vector<std::uint32_t>& layer : node.held) held.push_back(Json(layer));
    Json one = {{"name", node.name}};
    one["held"] = std::move(held);
    nodes.push_back(std::move(one));
  }
  Json json = Json::Object();
  json["nodes"] = std::move(nodes);
  return json.Dump();
}

Result<ClusterPlan> ParseClusterPlan(std::string_view text, ExpertGrid grid, std::uint64_t epoch) {
  return ReadJson<ClusterPlan>("plan", text, [&](const JsonValue& json) {
    json.AllowOnly({"nodes"});
    ClusterPlan plan{.epoch = epoch, .nodes = {}};
    std::set<std::string> names;
    const JsonValue nodes = json.At("nodes");
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      plan.nodes.push_back(ReadNode(nodes.At(i), grid));
      if (!names.insert(plan.nodes.back().name).second) {
        nodes.At(i).At("name").Fail("a name that no other node has");
      }
    }
    return plan;
  });
}

}  // namespace troupe
