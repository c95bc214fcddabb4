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

std::vector<ExpertId> ReadOrder(const JsonValue& json, ExpertGrid grid) {
  std::vector<ExpertId> order;
  for (std::size_t i = 0; i < json.size(); ++i) {
    const JsonValue one = json.At(i);
    if (one.size() != 2) one.Fail("a layer and an expert");
    order.push_back(
        {static_cast<std::uint32_t>(one.At(std::size_t{0}).Count(0, grid.layers - 1)),
         static_cast<std::uint32_t>(one.At(std::size_t{1}).Count(0, grid.experts - 1))});
  }
  return order;
}

Json OrderToJson(const std::vector<ExpertId>& order) {
  Json json = Json::Array();
  for (const ExpertId id : order) {
    json.push_back(Json(std::vector<std::uint32_t>{id.layer, id.expert}));
  }
  return json;
}

ClusterPlan::Node ReadNode(const JsonValue& json, ExpertGrid grid) {
  json.AllowOnly({"name", "held", "come", "go"});
  ClusterPlan::Node node{.name = json.At("name").String(), .held = {}};
  if (json.Has("come")) node.come = ReadOrder(json.At("come"), grid);
  if (json.Has("go")) node.go = ReadOrder(json.At("go"), grid);
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

bool ClusterPlan::SaysTheSameAs(const ClusterPlan& other) const {
  return model == other.model &&
         std::ranges::equal(nodes, other.nodes, [](const Node& one, const Node& two) {
           return one.name == two.name && one.held == two.held;
         });
}

std::string ToJson(const ClusterPlan& plan) {
  Json nodes = Json::Array();
  for (const ClusterPlan::Node& node : plan.nodes) {
    Json held = Json::Array();
    for (const std::vector<std::uint32_t>& layer : node.held) held.push_back(Json(layer));
    Json one = {{"name", node.name}};
    one["held"] = std::move(held);
    if (!node.come.empty()) one["come"] = OrderToJson(node.come);
    if (!node.go.empty()) one["go"] = OrderToJson(node.go);
    nodes.push_back(std::move(one));
  }
  Json json = {{"model", plan.model}};
  json["nodes"] = std::move(nodes);
  return json.Dump();
}

Result<ClusterPlan> ParseClusterPlan(std::string_view text, std::string_view model, ExpertGrid grid,
                                     std::uint64_t epoch) {
  return ReadJson<ClusterPlan>("plan", text, [&](const JsonValue& json) {
    json.AllowOnly({"model", "nodes"});
    ClusterPlan plan{.epoch = epoch, .model = json.At("model").String(), .nodes = {}};
    if (plan.model != model) json.At("model").Fail(fmt::format("this node's model, {}", model));
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
