#include "cluster/members/cluster_keys.h"

#include <algorithm>
#include <cmath>

#include "base/json_value.h"
#include "cluster/members/plan_epochs.h"

namespace troupe {
namespace {

constexpr std::size_t kLongestName = 63;
constexpr double kLongestTtl = 86400;

Json StampToJson(const PlanStamp& stamp) { return {{"epoch", stamp.epoch}, {"by", stamp.by}}; }

PlanStamp StampFrom(const JsonValue& json) {
  return {.epoch = json.At("epoch").Count(0, kMostEpoch), .by = json.At("by").String()};
}

}  // namespace

ClusterKeys::ClusterKeys(std::string_view cluster)
    : prefix_(std::string(kRoot) + std::string(cluster) + "/"),
      leader_(prefix_ + "leader"),
      plan_(prefix_ + "plan"),
      nodes_(prefix_ + "nodes/") {}

std::string_view ClusterKeys::ClusterOf(std::string_view key) {
  if (!key.starts_with(kRoot)) return {};
  key.remove_prefix(kRoot.size());
  const std::size_t end = key.find('/');
  return end == std::string_view::npos ? std::string_view() : key.substr(0, end);
}

std::string_view ClusterKeys::NodeOf(std::string_view key) const {
  return key.starts_with(nodes_) ? key.substr(nodes_.size()) : std::string_view();
}

Status CheckClusterName(std::string_view what, std::string_view name) {
  const auto allowed = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
           c == '_' || c == '-';
  };
  if (name.empty() || name.size() > kLongestName || !std::ranges::all_of(name, allowed)) {
    return InvalidArgument("{} '{}': 1 to {} letters, digits, '.', '_' and '-' are allowed", what,
                           name, kLongestName);
  }
  return OkStatus();
}

std::string ToValue(const NodeRecord& node) {
  return Json({{"address", node.address},
               {"model", node.model},
               {"start", node.start},
               {"ttl", static_cast<double>(node.ttl) * 1e-9},
               {"plan", StampToJson(node.plan)}})
      .Dump();
}

std::string ToValue(const LeaderRecord& leader) {
  return Json({{"node", leader.node}, {"start", leader.start}}).Dump();
}

std::string ToValue(const PlanRecord& plan) {
  return Json({{"epoch", plan.stamp.epoch}, {"by", plan.stamp.by}, {"plan", plan.plan}}).Dump();
}

Result<NodeRecord> ParseNode(std::string_view name, std::string_view value) {
  return ReadJson<NodeRecord>("node " + std::string(name), value, [&](const JsonValue& json) {
    return NodeRecord{
        .name = std::string(name),
        .address = json.At("address").String(),
        .model = json.At("model").String(),
        .start = json.At("start").String(),
        .ttl = static_cast<Nanos>(std::llround(json.At("ttl").Number(0, kLongestTtl) * 1e9)),
        .plan = StampFrom(json.At("plan"))};
  });
}

Result<LeaderRecord> ParseLeader(std::string_view value) {
  return ReadJson<LeaderRecord>("leader", value, [](const JsonValue& json) {
    return LeaderRecord{.node = json.At("node").String(), .start = json.At("start").String()};
  });
}

Result<PlanRecord> ParsePlan(std::string_view value) {
  return ReadJson<PlanRecord>("plan", value, [](const JsonValue& json) {
    return PlanRecord{.stamp = StampFrom(json), .plan = json.At("plan").raw()};
  });
}

}  // namespace troupe
