#include "cluster/members/cluster_picture.h"

#include <algorithm>

#include "base/check.h"
#include "cluster/members/plan_epochs.h"

namespace troupe {
namespace {

// What one node says that it follows.
bool Counts(const PlanStamp& said) { return said.epoch <= kMostTellableEpoch; }

}  // namespace

ClusterPicture::Changed ClusterPicture::Look(const StoreView& view, KvLease lease, bool heard) {
  const std::vector<NodeRecord> nodes_before = nodes_;
  const std::optional<ClusterLeader> leader_before = leader_;
  const bool wanted_before = plan_wanted_;
  LookAtNodes(view);
  LookAtLeader(view, lease, heard);
  const bool accepted = LookAtPlan(view);
  plan_wanted_ = IsPlanWanted();
  return {.nodes = nodes_ != nodes_before,
          .leader = leader_ != leader_before,
          .plan = accepted,
          .plan_wanted = plan_wanted_ && !wanted_before};
}

void ClusterPicture::LookAtNodes(const StoreView& view) {
  std::map<std::string, ParsedNode, std::less<>> parsed;
  nodes_.clear();
  for (const auto& [key, entry] : view.entries()) {
    const std::string_view name = keys_.NodeOf(key);
    if (name.empty()) continue;
    ParsedNode& node = parsed[key];
    if (const auto known = parsed_.find(key);
        known != parsed_.end() && known->second.value == entry.value) {
      node = std::move(known->second);
    } else {
      node.value = entry.value;
      if (Result<NodeRecord> record = ParseNode(name, entry.value); record.ok()) {
        node.record = *std::move(record);
      }
    }
    if (node.record) nodes_.push_back(*node.record);
  }
  parsed_ = std::move(parsed);
}

void ClusterPicture::LookAtLeader(const StoreView& view, KvLease lease, bool heard) {
  leader_.reset();
  const KvEntry* entry = view.Find(keys_.leader());
  if (entry == nullptr || !heard) return;
  Result<LeaderRecord> record = ParseLeader(entry->value);
  if (!record.ok()) return;
  // A leader's key of an earlier lease of this start, which a restored backup brings back, ends
  // with that lease: nobody keeps it alive.
  const bool self = record->start == start_ && lease != 0 && entry->lease == lease;
  leader_ = {.node = std::move(record->node), .revision = entry->created, .self = self};
}

bool ClusterPicture::LookAtPlan(const StoreView& view) {
  const KvEntry* entry = view.Find(keys_.plan());
  if (entry == nullptr) {
    in_store_.reset();
    plan_value_.clear();
    return false;
  }
  if (in_store_ && entry->value == plan_value_) return false;
  plan_value_ = entry->value;
  in_store_.reset();
  Result<PlanRecord> record = ParsePlan(entry->value);
  if (!record.ok()) return false;
  in_store_ = record->stamp;
  if (record->stamp.epoch <= accepted().epoch) return false;
  plan_ = *std::move(record);
  return true;
}

bool ClusterPicture::IsPlanWanted() const {
  if (!leads()) return false;
  if (!in_store_) return true;
  const auto differs = [&](const PlanStamp& known) {
    return known.epoch >= in_store_->epoch && known != *in_store_;
  };
  return differs(accepted()) || std::ranges::any_of(nodes_, [&](const NodeRecord& node) {
           return Counts(node.plan) && differs(node.plan);
         });
}

std::uint64_t ClusterPicture::TakeEpoch() {
  TROUPE_CHECK(leads());
  std::uint64_t known = std::max(last_epoch_, accepted().epoch);
  if (in_store_) known = std::max(known, in_store_->epoch);
  for (const NodeRecord& node : nodes_) {
    if (Counts(node.plan)) known = std::max(known, node.plan.epoch);
  }
  last_epoch_ = std::max(static_cast<std::uint64_t>(leader_->revision), known + 1);
  return last_epoch_;
}

}  // namespace troupe
