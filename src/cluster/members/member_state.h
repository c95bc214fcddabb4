// What a node is told to be in its cluster, and what there is to know of it, as values.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/status.h"
#include "cluster/members/cluster_keys.h"
#include "cluster/members/kv_store.h"

namespace troupe {

struct MembershipOptions {
  std::string cluster;
  std::string node;
  std::string address;         // "10.0.0.3:7400": where peers reach this node
  std::string model;           // the fingerprint of what it serves
  std::string start;           // another at each start of the process, on all machines
  bool new_cluster = false;    // it may begin beside others that the store has
  Nanos ttl = 10'000'000'000;  // a node that is not heard of for this long is out
  Nanos retry = 500'000'000;   // until what failed is asked again
};
Status Validate(const MembershipOptions& options);

enum class MemberState {
  kJoining,       // not listed, or not any more
  kMember,        // listed
  kNameTaken,     // another start holds the name for longer than a dead one's lease would
  kOtherModel,    // the cluster serves another model for longer than a dead node's lease would
  kUnknown,       // the store has keys of other clusters and none of this one
  kDistrusted,    // the store has another authority: nothing was ever heard of it, for a ttl
  kWithoutStore,  // nothing was heard for a ttl: nodes and plan are the last known, nobody leads
  kLeft,
};
std::string_view ToString(MemberState state);

struct ClusterLeader {
  std::string node;
  KvRevision revision = 0;  // at which it became the leader
  bool self = false;

  bool operator==(const ClusterLeader&) const = default;
};

// What has changed since it was last asked for.
struct MemberNews {
  bool state = false;
  bool kept_waiting = false;  // it has become so (Membership::kept_waiting)
  bool begins = false;        // the cluster does: the store had none of its keys
  bool nodes = false;
  bool leader = false;
  bool plan = false;         // a newer one is accepted
  bool plan_wanted = false;  // it has become so
  // What became of WritePlan. kFailedPrecondition: it was not written, since this node leads no
  // more or somebody else wrote. kUnavailable: nobody knows; if it was, it arrives like any other.
  std::optional<Result<PlanStamp>> written;
};

}  // namespace troupe
