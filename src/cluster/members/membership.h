// A node's place in its cluster: that it is listed, who else is, who leads, and the newest plan.
// A state machine without sockets, threads or a clock: it asks a KvStore, and is told what that
// answers and what time it is. One thread at a time. docs/formats/cluster-keys.md has the keys, and
// what happens when the store is away, forgets, or is restored from a backup.
//
// Each step compares what was read last with what should be there and asks for the difference, so
// that an answer which is lost, late or doubtful needs no rule of its own.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cluster/members/cluster_keys.h"
#include "cluster/members/cluster_picture.h"
#include "cluster/members/kv_store.h"
#include "cluster/members/member_state.h"
#include "cluster/members/store_view.h"

namespace troupe {

class Membership {
 public:
  // The options are valid. `store` outlives this and serves nobody else.
  Membership(MembershipOptions options, KvStore& store, Nanos now);

  // To be called once at the start, and when next_tick() has come.
  void Tick(Nanos now);
  Nanos next_tick() const;
  void Told(const KvEvent& event, Nanos now);

  // Fails unless this node leads and no other plan is being written. TakeNews tells the outcome.
  Status WritePlan(Json plan, Nanos now);
  // Gives lease, name and leadership back. The state is kLeft once that is done or a ttl has
  // passed.
  void Leave(Nanos now);

  MemberNews TakeNews() { return std::exchange(news_, {}); }
  MemberState state() const { return state_; }
  // Why the state is not kMember: what the store complained about last, or who is in the way.
  const std::string& problem() const { return problem_; }
  // It is heard of and has not listed this node for a ttl, for that reason: its disk is full, say.
  bool kept_waiting() const { return kept_waiting_; }
  // Those that the store had beside this one when it began.
  const std::vector<std::string>& other_clusters() const { return other_clusters_; }
  // This node among them, once it is listed. A node that is not may still serve: it, or the store,
  // may have been away.
  const std::vector<NodeRecord>& nodes() const { return picture_.nodes(); }
  const std::optional<ClusterLeader>& leader() const { return picture_.leader(); }
  bool leads() const { return picture_.leads(); }
  const std::optional<PlanRecord>& plan() const { return picture_.plan(); }
  bool plan_wanted() const { return picture_.plan_wanted(); }

 private:
  // Something that is asked at most once at a time, and again a while after it failed.
  struct Errand {
    KvAsk ask = 0;  // 0: not under way
    Nanos not_before = 0;

    bool Idle(Nanos now) const { return ask == 0 && now >= not_before; }
  };
  // What keeps this node out: another start has its name, or a node that was here before it serves
  // another model.
  struct Obstacle {
    MemberState state = MemberState::kNameTaken;
    std::string node, start;
    std::string address;
    Nanos since = 0;      // when it was first seen
    Nanos allowed = 0;    // how long that may last if it is dead
    bool is_own = false;  // an earlier life of this node: nobody else can listen at its address
  };

  // What the picture was made of, and the own value.
  struct Seen {
    std::uint64_t changes = 0;
    KvLease lease = 0;
    bool may_lead = false;
    Nanos period = 0;

    bool operator==(const Seen&) const = default;
  };

  // membership.cc: what the store has answered.
  void TakeGrant(const KvEvent& event, Nanos now);
  void TakeKeep(const KvEvent& event, Nanos now);
  void TakeRead(const KvEvent& event, Nanos now);
  void TakeLook(const KvEvent& event, Nanos now);
  void TakeWatch(const KvEvent& event, Nanos now);
  void TakeWrite(const KvEvent& event, Nanos now);
  void TakeRevoke(const KvEvent& event, Nanos now);
  void Fail(Errand& errand, const KvFailure& failure, Nanos now);
  void EndTheWatch();
  void LoseLease();
  void EndPlan(Result<PlanStamp> outcome);
  void LookAgain(Nanos now);
  void Conclude(Nanos now);
  void LookForObstacle(bool heard, Nanos now);
  void LookHowLongItJoins(bool heard, Nanos now);
  MemberState StateNow(bool heard, Nanos now) const;
  std::string ProblemNow() const;

  // membership_steps.cc: what to ask next.
  void Step(Nanos now);
  void StepOut(Nanos now);
  void Begin(Errand& errand, KvRequest request);
  std::optional<KvTransaction> NextWrite();
  KvTransaction RegisterOver(const KvEntry* own) const;
  KvTransaction Campaign(const KvEntry& own) const;
  KvTransaction PutPlan();
  const KvEntry* Own() const { return view_.Find(own_key_); }
  bool IsListed() const;     // by this start, with its lease
  bool IsNameTaken() const;  // by another start, dead or alive
  // Of another model, and here before this start; null: there is none.
  const NodeRecord* OfOtherModel() const;
  bool MustLook() const { return shown_ && standing_ == Standing::kNotKnown; }
  std::string OwnValue() const;

  const MembershipOptions options_;
  const ClusterKeys keys_;
  const std::string own_key_;
  KvStore& store_;

  KvAsk last_ask_ = 0;
  Errand grant_, keep_, read_, look_, watch_, write_, revoke_;
  KvLease lease_ = 0;
  Nanos keep_at_ = 0, read_at_ = 0;
  Nanos period_;  // the lease's ttl, as granted

  StoreView view_;
  KvRevision read_known_ = 0;  // view_.revision() when the read under way was asked
  bool read_early_ = false;    // the read under way was asked before the last write ended
  bool shown_ = false;         // the view shows what the last write did
  bool watchable_ = false;     // the view is from after the end of the last watch
  // Before this start is listed: whether the store knows the cluster, or it may begin.
  enum class Standing { kNotKnown, kMayJoin, kUnknownCluster };
  Standing standing_ = Standing::kNotKnown;
  std::vector<std::string> other_clusters_;
  ClusterPicture picture_;
  Seen seen_;
  std::string own_value_;

  std::optional<Json> plan_to_write_;
  std::optional<PlanStamp> plan_under_way_;

  Nanos now_;
  Nanos heard_at_;
  bool was_heard_ = false;  // ever
  bool distrusts_ = false;  // by its last complaint
  std::string complaint_;   // the store's last one
  std::optional<Obstacle> obstacle_;
  std::optional<Nanos> joins_since_;
  bool kept_waiting_ = false;
  std::optional<Nanos> leaving_since_;
  MemberState state_ = MemberState::kJoining;
  std::string problem_;
  MemberNews news_;
};

}  // namespace troupe
