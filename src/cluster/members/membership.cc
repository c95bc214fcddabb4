#include "cluster/members/membership.h"

#include <fmt/core.h>

#include <algorithm>
#include <limits>

#include "cluster/members/cluster_names.h"

namespace troupe {
namespace {

// What a store still counts down after a lease's end, and its changes of who counts.
constexpr Nanos kGraceOfStore = 1'000'000'000;

}  // namespace

Membership::Membership(MembershipOptions options, KvStore& store, Nanos now)
    : options_(std::move(options)),
      keys_(options_.cluster),
      own_key_(keys_.node(options_.node)),
      store_(store),
      period_(options_.ttl),
      picture_(keys_, options_.start),
      now_(now),
      heard_at_(now) {}

void Membership::Tick(Nanos now) {
  if (state_ == MemberState::kLeft) return;
  now_ = now;
  Conclude(now);
  Step(now);
}

Nanos Membership::next_tick() const {
  Nanos next = std::numeric_limits<Nanos>::max();
  const auto consider = [&](const Errand& errand, Nanos due) {
    if (errand.ask == 0) next = std::min(next, std::max(due, errand.not_before));
  };
  if (state_ == MemberState::kLeft) return next;
  if (leaving_since_) {
    if (lease_ != 0) consider(revoke_, 0);
    return std::min(next, *leaving_since_ + period_);
  }
  lease_ == 0 ? consider(grant_, 0) : consider(keep_, keep_at_);
  consider(read_, read_at_);
  if (MustLook()) consider(look_, 0);
  if (watchable_) consider(watch_, 0);
  if (write_.not_before > now_) consider(write_, 0);
  if (state_ != MemberState::kWithoutStore && state_ != MemberState::kDistrusted) {
    next = std::min(next, heard_at_ + period_ + 1);
  }
  if (obstacle_ && !obstacle_->is_own && state_ != obstacle_->state) {
    next = std::min(next, obstacle_->since + obstacle_->allowed + 1);
  }
  return next;
}

void Membership::Told(const KvEvent& event, Nanos now) {
  if (state_ == MemberState::kLeft) return;
  now_ = now;
  if (!std::holds_alternative<KvFailure>(event.what)) {
    heard_at_ = now;
    was_heard_ = true;
  }
  // What is none of these answers something that was given up.
  if (event.ask == grant_.ask) TakeGrant(event, now);
  if (event.ask == keep_.ask) TakeKeep(event, now);
  if (event.ask == read_.ask) TakeRead(event, now);
  if (event.ask == look_.ask) TakeLook(event, now);
  if (event.ask == watch_.ask) TakeWatch(event, now);
  if (event.ask == write_.ask) TakeWrite(event, now);
  if (event.ask == revoke_.ask) TakeRevoke(event, now);
  Conclude(now);
  Step(now);
}

Status Membership::WritePlan(Json plan, Nanos now) {
  // etcd takes requests of 1.5 MiB at most, and the plan before it is compared.
  constexpr std::size_t kLargestPlan = std::size_t{720} << 10;
  if (!leads())
    return Error(Code::kFailedPrecondition, "plan not written: this node does not lead");
  if (plan_to_write_ || plan_under_way_) {
    return Error(Code::kUnavailable, "plan not written: another one is being written");
  }
  if (const std::size_t size = plan.Dump().size(); size > kLargestPlan) {
    return InvalidArgument("plan not written: it has {} bytes, etcd takes {}", size, kLargestPlan);
  }
  plan_to_write_ = std::move(plan);
  now_ = now;
  Step(now);
  return OkStatus();
}

void Membership::Leave(Nanos now) {
  if (leaving_since_) return;
  leaving_since_ = now;
  Tick(now);
}

void Membership::TakeGrant(const KvEvent& event, Nanos now) {
  grant_.ask = 0;
  if (const auto* failure = std::get_if<KvFailure>(&event.what)) return Fail(grant_, *failure, now);
  const auto& granted = std::get<LeaseGranted>(event.what);
  lease_ = granted.lease;
  period_ = granted.ttl;
  keep_at_ = now + period_ / 3;
}

void Membership::TakeKeep(const KvEvent& event, Nanos now) {
  keep_.ask = 0;
  if (const auto* failure = std::get_if<KvFailure>(&event.what)) return Fail(keep_, *failure, now);
  period_ = std::get<LeaseKept>(event.what).ttl;
  keep_at_ = now + period_ / 3;
}

void Membership::TakeRead(const KvEvent& event, Nanos now) {
  read_.ask = 0;
  if (const auto* failure = std::get_if<KvFailure>(&event.what)) return Fail(read_, *failure, now);
  const auto& read = std::get<PrefixRead>(event.what);
  const StoreView::Took took = view_.TakeRead(event.revision, read.entries, read_known_);
  const bool back = took == StoreView::Took::kWentBack;
  // The watch of a store that was restored may wait for a revision that lies in the future now. One
  // that has not told this news is late, or silent for good: another one costs little.
  if (back || took == StoreView::Took::kNews) EndTheWatch();
  if (back) keep_at_ = now;  // tells whether the store still knows the lease
  // Without a lease nothing else is heard of the store.
  read_at_ = read_early_ ? now : now + (lease_ == 0 ? period_ / 3 : period_);
  if (!read_early_) shown_ = watchable_ = true;
}

// A node that comes meanwhile is no harm: this one finds the cluster there then.
void Membership::TakeLook(const KvEvent& event, Nanos now) {
  look_.ask = 0;
  if (const auto* failure = std::get_if<KvFailure>(&event.what)) return Fail(look_, *failure, now);
  if (standing_ != Standing::kNotKnown) return;
  other_clusters_ = ClustersOf(std::get<PrefixRead>(event.what).entries);
  const bool is_known = std::erase(other_clusters_, options_.cluster) > 0;
  if (!is_known && !other_clusters_.empty() && !options_.new_cluster) {
    standing_ = Standing::kUnknownCluster;
    return;
  }
  standing_ = Standing::kMayJoin;
  news_.begins = !is_known;
}

void Membership::TakeWatch(const KvEvent& event, Nanos now) {
  if (const auto* changes = std::get_if<WatchChanges>(&event.what)) {
    view_.TakeChanges(changes->changes);
    return;
  }
  watchable_ = false;
  LookAgain(now);
  Fail(watch_, std::get<KvFailure>(event.what), now);
}

void Membership::TakeWrite(const KvEvent& event, Nanos now) {
  write_.ask = 0;
  shown_ = false;
  LookAgain(now);
  const std::optional<PlanStamp> plan = std::exchange(plan_under_way_, std::nullopt);
  if (const auto* failure = std::get_if<KvFailure>(&event.what)) {
    if (plan) {
      EndPlan(Error(Code::kUnavailable, "it is not known whether plan {} was written: {}",
                    plan->epoch, failure->message));
    }
    return Fail(write_, *failure, now);
  }
  if (!plan) return;
  const auto& done = std::get<TransactionDone>(event.what);
  if (done.held) return EndPlan(*plan);
  const Result<LeaderRecord> leader = ParseLeader(done.entries.at(0).value);
  EndPlan(Error(Code::kFailedPrecondition, "plan {} not written: {}", plan->epoch,
                !leader.ok()                      ? "nobody leads any more"
                : leader->start != options_.start ? fmt::format("node '{}' leads now", leader->node)
                                                  : "another plan was written before it"));
}

void Membership::TakeRevoke(const KvEvent& event, Nanos now) {
  revoke_.ask = 0;
  const auto* failure = std::get_if<KvFailure>(&event.what);
  if (failure != nullptr) return Fail(revoke_, *failure, now);
  LoseLease();
}

void Membership::Fail(Errand& errand, const KvFailure& failure, Nanos now) {
  errand.ask = 0;
  if (failure.fault == KvFault::kCompacted) return;  // part of a store's life: read and watch again
  if (failure.fault == KvFault::kLeaseExpired) return LoseLease();
  errand.not_before = now + options_.retry;
  complaint_ = failure.message;
  distrusts_ = failure.fault == KvFault::kDistrusted;
}

void Membership::EndTheWatch() {
  if (watch_.ask != 0) store_.Ask(++last_ask_, EndWatch{std::exchange(watch_.ask, 0)});
}

void Membership::LoseLease() {
  lease_ = 0;
  keep_.ask = 0;
}

void Membership::EndPlan(Result<PlanStamp> outcome) {
  plan_to_write_.reset();
  news_.written = std::move(outcome);
}

void Membership::LookAgain(Nanos now) {
  read_at_ = now;
  read_early_ = read_.ask != 0;
}

// What follows from all that is known by now.
void Membership::Conclude(Nanos now) {
  const bool heard = now - heard_at_ <= period_;
  const bool may_lead = heard && !leaving_since_;
  if (const Seen seen = {view_.changes(), lease_, may_lead, period_}; seen != seen_) {
    seen_ = seen;
    const ClusterPicture::Changed changed = picture_.Look(view_, lease_, may_lead);
    news_.nodes |= changed.nodes;
    news_.leader |= changed.leader;
    news_.plan |= changed.plan;
    news_.plan_wanted |= changed.plan_wanted;
    own_value_ = OwnValue();
  }
  if (plan_to_write_ && !leads()) {
    EndPlan(Error(Code::kFailedPrecondition, "plan not written: this node leads no more"));
  }
  LookForObstacle(heard, now);
  if (const MemberState state = StateNow(heard, now); state != state_) {
    state_ = state;
    news_.state = true;
  }
  problem_ = ProblemNow();
  LookHowLongItJoins(heard, now);
}

void Membership::LookHowLongItJoins(bool heard, Nanos now) {
  const bool joins = heard && state_ == MemberState::kJoining && !leaving_since_;
  if (!joins) joins_since_.reset();
  if (joins && !joins_since_) joins_since_ = now;
  const bool waits = joins && now - *joins_since_ > period_ && !problem_.empty();
  if (waits && !kept_waiting_) news_.kept_waiting = true;
  kept_waiting_ = waits;
}

void Membership::LookForObstacle(bool heard, Nanos now) {
  const NodeRecord* const stranger = OfOtherModel();
  // While the store is away its leases may live on: what was seen before counts for nothing.
  if (!heard || (!IsNameTaken() && stranger == nullptr)) {
    obstacle_.reset();
    return;
  }
  Obstacle seen = {.state = stranger ? MemberState::kOtherModel : MemberState::kNameTaken,
                   .node = options_.node,
                   .start = "",
                   .address = "an unknown address",
                   .since = now,
                   .allowed = period_};
  const auto holder = std::ranges::find(nodes(), options_.node, &NodeRecord::name);
  const NodeRecord* const record = stranger                  ? stranger
                                   : holder != nodes().end() ? &*holder
                                                             : nullptr;
  if (record != nullptr) {
    seen.node = record->name;
    seen.start = record->start;
    seen.address = record->address;
    seen.allowed = std::max(seen.allowed, record->ttl);
    seen.is_own = stranger == nullptr && record->address == options_.address;
  }
  // Twice: a store gives all leases their whole time anew when another machine begins to lead it.
  seen.allowed = 2 * seen.allowed + kGraceOfStore;
  if (!obstacle_ || obstacle_->start != seen.start) obstacle_ = std::move(seen);
}

MemberState Membership::StateNow(bool heard, Nanos now) const {
  if (standing_ == Standing::kUnknownCluster) return MemberState::kUnknown;
  if (!heard) {
    return distrusts_ && !was_heard_ ? MemberState::kDistrusted : MemberState::kWithoutStore;
  }
  // A store that begins to be led anew time and again lets no lease end for long.
  if (obstacle_ && !obstacle_->is_own && now - obstacle_->since > obstacle_->allowed) {
    return obstacle_->state;
  }
  return IsListed() ? MemberState::kMember : MemberState::kJoining;
}

std::string Membership::ProblemNow() const {
  if (state_ == MemberState::kMember || state_ == MemberState::kLeft) return "";
  if (state_ == MemberState::kUnknown) {
    return SayUnknownCluster(options_.cluster, other_clusters_);
  }
  if (!obstacle_) return complaint_;
  const char* const waiting = state_ == obstacle_->state ? "" : "; waiting in case it is dead";
  if (obstacle_->state == MemberState::kOtherModel) {
    return fmt::format("cluster '{}' serves another model: node '{}' at {} does{}",
                       options_.cluster, obstacle_->node, obstacle_->address, waiting);
  }
  return fmt::format("cluster '{}' has a node '{}' already, at {}{}", options_.cluster,
                     options_.node, obstacle_->address, waiting);
}

}  // namespace troupe
