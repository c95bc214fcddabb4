// What a node makes of its cluster's keys: who is listed, who leads, and which plan counts. Pure;
// Membership changes the keys.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "cluster/members/cluster_keys.h"
#include "cluster/members/member_state.h"
#include "cluster/members/store_view.h"

namespace troupe {

class ClusterPicture {
 public:
  struct Changed {
    bool nodes = false;
    bool leader = false;
    bool plan = false;         // a newer one is accepted
    bool plan_wanted = false;  // it has become so
  };

  ClusterPicture(ClusterKeys keys, std::string start)
      : keys_(std::move(keys)), start_(std::move(start)) {}

  // `lease`: this node's, 0 if it has none. `heard`: the store has answered within a ttl; if not,
  // the leader may be another one by now.
  Changed Look(const StoreView& view, KvLease lease, bool heard);

  // In the order of their names. Values that cannot be read are left out.
  const std::vector<NodeRecord>& nodes() const { return nodes_; }
  const std::optional<ClusterLeader>& leader() const { return leader_; }
  bool leads() const { return leader_ && leader_->self; }
  // The newest plan that was accepted. One of the same or an older epoch does not replace it.
  const std::optional<PlanRecord>& plan() const { return plan_; }
  PlanStamp accepted() const { return plan_ ? plan_->stamp : PlanStamp(); }
  // This node leads, and there is no plan in the store, or some node knows one that is not older
  // than the store's and is another.
  bool plan_wanted() const { return plan_wanted_; }

  // For a plan of this node as the leader: greater than any that is known, and never given twice.
  std::uint64_t TakeEpoch();

 private:
  void LookAtNodes(const StoreView& view);
  void LookAtLeader(const StoreView& view, KvLease lease, bool heard);
  bool LookAtPlan(const StoreView& view);  // whether it is accepted
  bool IsPlanWanted() const;

  const ClusterKeys keys_;
  const std::string start_;
  std::vector<NodeRecord> nodes_;
  std::optional<ClusterLeader> leader_;
  std::optional<PlanRecord> plan_;
  bool plan_wanted_ = false;

  // Values are parsed when they change.
  struct ParsedNode {
    std::string value;
    std::optional<NodeRecord> record;
  };
  std::map<std::string, ParsedNode, std::less<>> parsed_;
  std::string plan_value_;
  std::optional<PlanStamp> in_store_;
  std::uint64_t last_epoch_ = 0;  // that TakeEpoch gave
};

}  // namespace troupe
