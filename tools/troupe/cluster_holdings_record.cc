// Which experts each node of a cluster is to hold, and holds: as JSON, and for people.
#include <fmt/core.h>

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <limits>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/json_value.h"
#include "base/printable.h"
#include "troupe/cluster_record.h"

namespace troupe {
namespace {

constexpr std::uint64_t kAnyEpoch = std::numeric_limits<std::uint64_t>::max();
constexpr std::uint64_t kMostListed = 65536;  // experts of a layer, and layers

Json ListsOf(const ClusterHoldings::Experts& experts) {
  Json layers = Json::Array();
  for (const std::vector<std::uint32_t>& layer : experts) layers.push_back(Json(layer));
  return layers;
}

std::vector<std::uint32_t> ReadList(const JsonValue& json, std::uint64_t experts) {
  std::vector<std::uint32_t> list;
  for (std::size_t i = 0; i < json.size(); ++i) {
    list.push_back(static_cast<std::uint32_t>(json.At(i).Count(0, experts - 1)));
  }
  std::ranges::sort(list);
  return list;
}

std::vector<std::uint32_t> Others(const std::set<std::uint32_t>& some, std::uint64_t experts) {
  std::vector<std::uint32_t> others;
  for (std::uint32_t expert = 0; expert < experts; ++expert) {
    if (!some.contains(expert)) others.push_back(expert);
  }
  return others;
}

// "0-3, 7" of rising numbers.
std::string RangesOf(const std::vector<std::uint32_t>& numbers) {
  std::string text;
  for (std::size_t first = 0; first < numbers.size();) {
    std::size_t last = first;
    while (last + 1 < numbers.size() && numbers[last + 1] == numbers[last] + 1) ++last;
    text += fmt::format("{}{}", text.empty() ? "" : ", ", numbers[first]);
    if (last > first) text += fmt::format("{}{}", last == first + 1 ? ", " : "-", numbers[last]);
    first = last + 1;
  }
  return text.empty() ? "none" : text;
}

// What it is to hold, and where it is not there yet: what is still to come and to go.
std::string NodeInLayer(const JsonValue& node, std::uint64_t layer, std::uint64_t experts,
                        std::set<std::uint32_t>& somewhere) {
  const std::vector<std::uint32_t> planned = ReadList(node.At("planned").At(layer), experts);
  const std::vector<std::uint32_t> held = ReadList(node.At("held").At(layer), experts);
  somewhere.insert(held.begin(), held.end());
  std::string line =
      fmt::format("  {}: {}", Printable(node.At("name").String()), RangesOf(planned));
  std::vector<std::uint32_t> to_come, to_go;
  std::ranges::set_difference(planned, held, std::back_inserter(to_come));
  std::ranges::set_difference(held, planned, std::back_inserter(to_go));
  if (!node.At("here").Flag()) {
    line += "; it is away";
  } else {
    if (!to_come.empty()) line += fmt::format("; to come: {}", RangesOf(to_come));
    if (!to_go.empty()) line += fmt::format("; to go: {}", RangesOf(to_go));
  }
  return line + "\n";
}

}  // namespace

Json RecordOf(const ClusterHoldings& holdings) {
  Json nodes = Json::Array();
  for (const ClusterHoldings::Node& node : holdings.nodes) {
    Json one = {{"name", node.name}, {"here", Json(node.here)}};
    one["planned"] = ListsOf(node.planned);
    one["held"] = ListsOf(node.held);
    nodes.push_back(std::move(one));
  }
  Json record = {{"version", holdings.version},
                 {"epoch", holdings.epoch},
                 {"layers", holdings.grid.layers},
                 {"experts", holdings.grid.experts},
                 {"first_layer", holdings.first_layer}};
  record["nodes"] = std::move(nodes);
  return record;
}

Result<std::string> HoldingsTable(std::string_view name, std::string_view record) {
  return ReadJson<std::string>(std::string(name), record, [](const JsonValue& json) {
    const std::uint64_t epoch = json.At("epoch").Count(0, kAnyEpoch);
    const std::uint64_t layers = json.At("layers").Count(0, kMostListed);
    const std::uint64_t experts = json.At("experts").Count(0, kMostListed);
    std::string text = epoch == 0 ? std::string("no plan yet") : fmt::format("plan {}", epoch);
    text += fmt::format(": {} layers of {} experts\n", layers, experts);
    const JsonValue nodes = json.At("nodes");
    for (std::uint64_t layer = json.At("first_layer").Count(0, layers); layer < layers; ++layer) {
      text += fmt::format("\nlayer {}\n", layer);
      std::set<std::uint32_t> somewhere;
      for (std::size_t i = 0; i < nodes.size(); ++i) {
        text += NodeInLayer(nodes.At(i), layer, experts, somewhere);
      }
      if (somewhere.size() < experts) {
        text += fmt::format("  on disks alone: {}\n", RangesOf(Others(somewhere, experts)));
      }
    }
    return text;
  });
}

}  // namespace troupe
