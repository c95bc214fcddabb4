// The keys of a cluster in the store, and what their values say. docs/formats/cluster-keys.md.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/json.h"
#include "base/status.h"

namespace troupe {

// Names a plan: the epoch says which of two is newer. Two leaders can have used the same epoch if
// the store was restored from a backup in between; a leader never uses one twice.
struct PlanStamp {
  std::uint64_t epoch = 0;  // 0: no plan
  std::string by;           // the start id of the leader that wrote it

  bool operator==(const PlanStamp&) const = default;
};

struct NodeRecord {
  std::string name;     // in the key
  std::string address;  // where peers reach it
  std::string model;    // the fingerprint of what it serves
  std::string start;    // differs between two starts of a node
  Nanos ttl = 0;        // of its lease
  PlanStamp plan;       // the newest plan that it has accepted

  bool operator==(const NodeRecord&) const = default;
};

struct LeaderRecord {
  std::string node;
  std::string start;

  bool operator==(const LeaderRecord&) const = default;
};

struct PlanRecord {
  PlanStamp stamp;
  Json plan;  // for who makes plans
};

// The keys of one cluster, "/troupe/NAME/...".
class ClusterKeys {
 public:
  // Of all clusters' keys.
  static constexpr std::string_view kRoot = "/troupe/";
  // Whose key it is; nothing: no cluster's.
  static std::string_view ClusterOf(std::string_view key);

  explicit ClusterKeys(std::string_view cluster);

  const std::string& prefix() const { return prefix_; }
  const std::string& leader() const { return leader_; }
  const std::string& plan() const { return plan_; }
  std::string node(std::string_view name) const { return nodes_ + std::string(name); }
  // Nothing for a key that is no node's.
  std::string_view NodeOf(std::string_view key) const;

 private:
  std::string prefix_, leader_, plan_, nodes_;
};

// A name of a cluster or a node stands in keys and messages: letters, digits, '.', '_' and '-'.
Status CheckClusterName(std::string_view what, std::string_view name);

std::string ToValue(const NodeRecord& node);
std::string ToValue(const LeaderRecord& leader);
std::string ToValue(const PlanRecord& plan);

// Keys that they do not know are allowed: a newer version may write them.
Result<NodeRecord> ParseNode(std::string_view name, std::string_view value);
Result<LeaderRecord> ParseLeader(std::string_view value);
Result<PlanRecord> ParsePlan(std::string_view value);

}  // namespace troupe
