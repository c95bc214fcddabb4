#include "cluster/plan/cluster_plan.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <set>
#include <span>

#include "base/base64.h"
#include "base/json.h"
#include "base/json_value.h"

namespace troupe {
namespace {

// Of the text. The one before it had lists of numbers.
constexpr std::uint64_t kPlanForm = 2;
constexpr std::size_t kIndexBytes = 3;  // of an expert in an order: its place in the grid
constexpr std::size_t kCharsOfAnIndex = 4;

std::vector<std::byte> ReadBase64(const JsonValue& json) {
  std::optional<std::vector<std::byte>> bytes = BytesOfBase64(json.String());
  if (!bytes) json.Fail("base64");
  return *std::move(bytes);
}

ExpertId ExpertAt(std::size_t index, ExpertGrid grid) {
  return {static_cast<std::uint32_t>(index / grid.experts),
          static_cast<std::uint32_t>(index % grid.experts)};
}

// A bit for each expert of the grid, the lowest one of a byte first.
std::string HeldToText(const std::vector<std::vector<std::uint32_t>>& held, ExpertGrid grid) {
  std::vector<std::byte> bits((grid.Count() + 7) / 8);
  for (std::uint32_t layer = 0; layer < held.size(); ++layer) {
    for (const std::uint32_t expert : held[layer]) {
      const std::size_t index = grid.Index({layer, expert});
      bits[index / 8] |= std::byte{1} << (index % 8);
    }
  }
  return Base64(bits);
}

std::vector<std::vector<std::uint32_t>> ReadHeld(const JsonValue& json, ExpertGrid grid) {
  const std::vector<std::byte> bits = ReadBase64(json);
  if (bits.size() != (grid.Count() + 7) / 8) {
    json.Fail(fmt::format("a bit for each expert of {} layers of {}", grid.layers, grid.experts));
  }
  std::vector<std::vector<std::uint32_t>> held(grid.layers);
  for (std::size_t index = 0; index < bits.size() * 8; ++index) {
    if ((bits[index / 8] >> (index % 8) & std::byte{1}) == std::byte{0}) continue;
    if (index >= grid.Count()) json.Fail("no bits behind the last expert's");
    const ExpertId id = ExpertAt(index, grid);
    held[id.layer].push_back(id.expert);
  }
  return held;
}

std::string OrderToText(std::span<const ExpertId> order, ExpertGrid grid) {
  std::vector<std::byte> bytes;
  bytes.reserve(order.size() * kIndexBytes);
  for (const ExpertId id : order) {
    const std::size_t index = grid.Index(id);
    for (const int shift : {16, 8, 0}) bytes.push_back(static_cast<std::byte>(index >> shift));
  }
  return Base64(bytes);
}

std::vector<ExpertId> ReadOrder(const JsonValue& json, ExpertGrid grid) {
  const std::vector<std::byte> bytes = ReadBase64(json);
  if (bytes.size() % kIndexBytes != 0) json.Fail("three bytes for each expert");
  std::vector<ExpertId> order;
  for (std::size_t i = 0; i < bytes.size(); i += kIndexBytes) {
    std::size_t index = 0;
    for (std::size_t b = 0; b < kIndexBytes; ++b) {
      index = index << 8 | std::to_integer<std::size_t>(bytes[i + b]);
    }
    if (index >= grid.Count()) json.Fail(fmt::format("experts below {}", grid.Count()));
    order.push_back(ExpertAt(index, grid));
  }
  return order;
}

// How many experts of each list are named where all lists together may name so many: the short ones
// whole, and the same of all that are longer.
std::size_t MostOfEach(std::vector<std::size_t> sizes, std::size_t all) {
  std::ranges::sort(sizes);
  std::size_t lists = sizes.size();
  for (const std::size_t size : sizes) {
    if (size > all / lists) return all / lists;
    all -= size;
    --lists;
  }
  return std::numeric_limits<std::size_t>::max();
}

ClusterPlan::Node ReadNode(const JsonValue& json, ExpertGrid grid) {
  json.AllowOnly({"name", "held", "come", "go"});
  ClusterPlan::Node node{.name = json.At("name").String(), .held = ReadHeld(json.At("held"), grid)};
  if (json.Has("come")) node.come = ReadOrder(json.At("come"), grid);
  if (json.Has("go")) node.go = ReadOrder(json.At("go"), grid);
  return node;
}

}  // namespace

bool ClusterPlan::Node::Wants(ExpertId id) const {
  return id.layer < held.size() && std::ranges::binary_search(held[id.layer], id.expert);
}

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

std::string ToJson(const ClusterPlan& plan, ExpertGrid grid) {
  std::vector<Json> nodes;
  std::vector<std::size_t> sizes;
  std::size_t chars = 0;
  for (const ClusterPlan::Node& node : plan.nodes) {
    Json one = {{"name", node.name}, {"held", HeldToText(node.held, grid)}};
    chars += one.Dump().size();
    nodes.push_back(std::move(one));
    sizes.insert(sizes.end(), {node.come.size(), node.go.size()});
  }
  const std::size_t left = kMostPlanBytes - std::min(chars, kMostPlanBytes);
  const std::size_t most = MostOfEach(std::move(sizes), left / kCharsOfAnIndex);
  Json all = Json::Array();
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    const auto add = [&](const char* key, std::span<const ExpertId> order) {
      order = order.first(std::min(order.size(), most));
      if (!order.empty()) nodes[i][key] = OrderToText(order, grid);
    };
    add("come", plan.nodes[i].come);
    add("go", plan.nodes[i].go);
    all.push_back(std::move(nodes[i]));
  }
  Json json = {{"form", kPlanForm}, {"model", plan.model}};
  json["nodes"] = std::move(all);
  return json.Dump();
}

std::string ModelOfPlan(std::string_view text) {
  Result<std::string> model = ReadJson<std::string>(
      "plan", text, [](const JsonValue& json) { return std::string(json.At("model").String()); });
  return model.ok() ? *std::move(model) : std::string();
}

Result<ClusterPlan> ParseClusterPlan(std::string_view text, std::string_view model, ExpertGrid grid,
                                     std::uint64_t epoch) {
  return ReadJson<ClusterPlan>("plan", text, [&](const JsonValue& json) {
    if (!json.Has("form") || !json.At("form").raw().IsNumber() ||
        json.At("form").Number() != static_cast<double>(kPlanForm)) {
      json.Fail(fmt::format("a plan of form {}", kPlanForm));
    }
    json.AllowOnly({"form", "model", "nodes"});
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
