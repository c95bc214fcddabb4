// What a Membership asks of the store next (membership.cc: what it makes of the answers).
#include <algorithm>
#include <utility>

#include "base/check.h"
#include "cluster/members/membership.h"

namespace troupe {
namespace {

// Values name their writers, and are never the same twice where that counts. Revisions are: after a
// restore another's key can have the one that was seen.
KvCompare AsSeen(const std::string& key, const KvEntry* entry) {
  if (entry == nullptr) return {.key = key, .what = KvCompare::What::kCreated, .revision = 0};
  return {.key = key, .what = KvCompare::What::kValue, .value = entry->value};
}

}  // namespace

void Membership::Step(Nanos now) {
  if (state_ == MemberState::kLeft) return;
  if (leaving_since_) return StepOut(now);
  if (lease_ == 0) {
    if (grant_.Idle(now)) Begin(grant_, GrantLease{options_.ttl});
  } else if (keep_.Idle(now) && now >= keep_at_) {
    Begin(keep_, KeepLease{lease_});
  }
  if (read_.Idle(now) && now >= read_at_) {
    read_known_ = view_.revision();
    read_early_ = false;
    Begin(read_, ReadPrefix{.prefix = keys_.prefix()});
  }
  if (!view_.entries().empty() && standing_ == Standing::kNotKnown) standing_ = Standing::kMayJoin;
  if (MustLook() && look_.Idle(now)) {
    Begin(look_, ReadPrefix{.prefix = std::string(ClusterKeys::kRoot), .keys_only = true});
  }
  if (watchable_ && watch_.Idle(now)) {
    Begin(watch_, WatchPrefix{.prefix = keys_.prefix(), .from = view_.revision() + 1});
  }
  // One write at a time, and each begins from what the one before it has left.
  if (lease_ != 0 && shown_ && write_.Idle(now)) {
    if (std::optional<KvTransaction> write = NextWrite()) Begin(write_, *std::move(write));
  }
}

void Membership::StepOut(Nanos now) {
  const bool nothing_left = lease_ == 0 && grant_.ask == 0;
  if (nothing_left || now - *leaving_since_ >= period_) {
    EndTheWatch();
    state_ = MemberState::kLeft;
    problem_.clear();
    news_.state = true;
  } else if (lease_ != 0 && revoke_.Idle(now)) {
    Begin(revoke_, RevokeLease{lease_});
  }
}

void Membership::Begin(Errand& errand, KvRequest request) {
  errand.ask = ++last_ask_;
  store_.Ask(errand.ask, std::move(request));
}

std::optional<KvTransaction> Membership::NextWrite() {
  if (standing_ != Standing::kMayJoin) return std::nullopt;
  if (IsNameTaken() || OfOtherModel() != nullptr) return std::nullopt;
  const KvEntry* own = Own();
  if (own == nullptr || !IsListed() || own->value != own_value_) return RegisterOver(own);
  if (view_.Find(keys_.leader()) == nullptr) return Campaign(*own);
  if (plan_to_write_ && leads()) return PutPlan();
  return std::nullopt;
}

// `own` is this start's entry of another lease or with an older value; null: there is none.
KvTransaction Membership::RegisterOver(const KvEntry* own) const {
  return {.compares = {AsSeen(own_key_, own)},
          .puts = {{.key = own_key_, .value = own_value_, .lease = lease_}}};
}

KvTransaction Membership::Campaign(const KvEntry& own) const {
  const LeaderRecord leader = {.node = options_.node, .start = options_.start};
  return {.compares = {AsSeen(keys_.leader(), nullptr), AsSeen(own_key_, &own)},
          .puts = {{.key = keys_.leader(), .value = ToValue(leader), .lease = lease_}}};
}

// The create revision alone would not do: a restored store can reach it again with another leader.
// That the plan is still the one that was seen keeps epochs from falling: this one is greater.
KvTransaction Membership::PutPlan() {
  const KvEntry* leader = view_.Find(keys_.leader());
  TROUPE_CHECK(leader != nullptr);
  const PlanRecord record = {.stamp = {.epoch = picture_.TakeEpoch(), .by = options_.start},
                             .plan = *std::exchange(plan_to_write_, std::nullopt)};
  plan_under_way_ = record.stamp;
  return {.compares = {{.key = keys_.leader(),
                        .what = KvCompare::What::kCreated,
                        .revision = leader->created},
                       AsSeen(keys_.leader(), leader),
                       AsSeen(keys_.plan(), view_.Find(keys_.plan()))},
          .puts = {{.key = keys_.plan(), .value = ToValue(record)}},
          .else_gets = {keys_.leader()}};
}

bool Membership::IsListed() const {
  const KvEntry* own = Own();
  return own != nullptr && lease_ != 0 && own->lease == lease_;
}

bool Membership::IsNameTaken() const {
  if (Own() == nullptr || IsListed()) return false;
  const auto record = std::ranges::find(nodes(), options_.node, &NodeRecord::name);
  return record == nodes().end() || record->start != options_.start;
}

// Of two that register at the same time the one whose key came to be later is in the wrong.
const NodeRecord* Membership::OfOtherModel() const {
  const auto created = [&](const std::string& node) {
    const KvEntry* entry = view_.Find(keys_.node(node));
    return entry == nullptr ? KvRevision{0} : entry->created;
  };
  const bool is_listed = IsListed();
  for (const NodeRecord& node : nodes()) {
    if (node.model == options_.model || node.name == options_.node) continue;
    if (!is_listed || created(node.name) < created(options_.node)) return &node;
  }
  return nullptr;
}

std::string Membership::OwnValue() const {
  return ToValue(NodeRecord{.name = options_.node,
                            .address = options_.address,
                            .model = options_.model,
                            .start = options_.start,
                            .ttl = period_,
                            .plan = picture_.accepted()});
}

}  // namespace troupe
