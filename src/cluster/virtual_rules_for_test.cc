#include "cluster/virtual_rules_for_test.h"

#include <algorithm>

#include "cluster/virtual_node_for_test.h"

namespace troupe {
namespace {

constexpr Nanos kRuleSecond = 1'000'000'000;
constexpr Nanos kLongestLayer = 120 * kRuleSecond;  // a hang among it

}  // namespace

VirtualRules::VirtualRules(VirtualWorld& world, NodeAt node)
    : world_(world), node_(std::move(node)) {
  world.rules = this;
  world.store.state().set_on_put(
      [this](const FakeKvState& state, const KvPut& put) { OnPut(state, put); });
}

void VirtualRules::Break(const std::string& what) {
  if (!broken_.empty()) return;
  broken_ = fmt::format("at {:.4f} s: {}", static_cast<double>(world_.time.now()) * 1e-9, what);
  world_.timeline.Add(world_.time.now(), "BROKEN: {}", what);
}

// A plan is written by whoever leads then, and is newer than any before.
void VirtualRules::OnPut(const FakeKvState& state, const KvPut& put) {
  const ClusterKeys keys("lab");
  if (put.key != keys.plan()) return;
  const PlanRecord plan = ParsePlan(put.value).value();
  const KvEntry* const before = state.Find(keys.plan());
  const KvEntry* const leader = state.Find(keys.leader());
  if (before != nullptr && ParsePlan(before->value)->stamp.epoch >= plan.stamp.epoch) {
    Break(fmt::format("plan {} is written over {}", put.value, before->value));
  }
  if (leader == nullptr || ParseLeader(leader->value)->start != plan.stamp.by) {
    Break(fmt::format("plan {} is written by who does not lead", plan.stamp.epoch));
  }
}

void VirtualRules::OnStep(VirtualNode& node) {
  // Who is out has no peers that would show that the name is its own, should it start anew.
  const bool is_out = std::ranges::any_of(
      out_, [&](const auto& by_whom) { return node_(by_whom.second) == &node; });
  if (node.failed() && !is_out) Break(fmt::format("{} would end", node.name()));
  const auto& plan = node.core().plan();
  std::uint64_t& epoch = epoch_of_[node.start()];
  if (node.users().waits() && world_.time.now() - node.users().since() > kLongestLayer) {
    Break(fmt::format("{}: a layer is lost", node.name()));
  }
  if (!plan || plan->epoch == epoch) return;
  if (plan->epoch < epoch) {
    Break(fmt::format("{} goes from plan {} back to {}", node.name(), epoch, plan->epoch));
  }
  epoch = plan->epoch;
  world_.events.Count("plans taken up");
  std::string text = ToJson(*plan, VirtualModel::kGrid);
  world_.timeline.Add(world_.time.now(), "{} takes up plan {}: {}", node.name(), epoch, text);
  const auto [known, is_new] = plan_of_.try_emplace(epoch, node.name(), text);
  if (!is_new && known->second.second != text && !restored_) {
    Break(fmt::format("two plans {}: of {} {}, of {} {}", epoch, known->second.first,
                      known->second.second, node.name(), text));
  }
}

void VirtualRules::OnGiven(VirtualNode& node, ExpertId id, bool wanted, const ExpertBatch& batch,
                           std::span<const float> rows) {
  if (!wanted)
    Break(fmt::format("{}: {} is given, and nobody wants it", node.name(), ToString(id)));
  const auto which = batch.RowsOf(id.expert);
  if (rows.size() != which.size() * VirtualModel::kWidth) {
    return Break(fmt::format("{}: {} floats of {}", node.name(), rows.size(), ToString(id)));
  }
  world_.events.Count("experts given");
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const float asked =
        batch.input.Values(which[i / VirtualModel::kWidth])[i % VirtualModel::kWidth];
    const float right = asked * VirtualWorld::model().FactorOf(id);
    if (rows[i] == right) continue;
    // What a bad node answers is used until it is found out.
    if (world_.Has(VirtualFault::kLiar) && rows[i] == Lie(right)) continue;
    if (world_.Has(VirtualFault::kRot)) continue;
    return Break(fmt::format("{}: a wrong row of {}", node.name(), ToString(id)));
  }
}

void VirtualRules::OnHolds(VirtualNode& node, ExpertId id) {
  const bool may_rot = !world_.shape.packed && !node.is_sane();
  if (!may_rot && node.slots().at(id) != VirtualWorld::model().BytesOf(id)) {
    Break(fmt::format("{} takes in wrong bytes of {}", node.name(), ToString(id)));
  }
  const std::uint32_t most = world_.shape.most_held + HoldingFacts::kSwapSlots;
  if (node.held().count() > most) {
    Break(fmt::format("{} holds {} experts of {}", node.name(), node.held().count(), most));
  }
}

// Without checksums it may be the own copy that is wrong, where nobody else can be asked.
void VirtualRules::OnThrownOut(VirtualNode& by, std::size_t accused) {
  // Who is out stays out when it starts anew, and with whatever memory.
  if (!out_.emplace(by.start(), accused).second) return;
  world_.events.Count("nodes thrown out");
  VirtualNode* const other = node_(accused);
  if (other == nullptr || !other->is_sane() || (!world_.shape.packed && !by.is_sane())) return;
  // What it answered before it started anew may be found out after that.
  const auto died = died_bad_.find(other->name());
  if (died != died_bad_.end() && world_.time.now() - died->second < 10 * kRuleSecond) return;
  Break(fmt::format("{} throws {} out, which is honest", by.name(), other->name()));
}

void VirtualRules::OnKilled(VirtualNode& node) {
  if (!node.is_sane()) died_bad_[node.name()] = world_.time.now();
  for (const auto& [id, bytes] : node.slots()) died_[id] = world_.time.now();
}

// docs/design/cluster.md says when no expert leaves all memories, and when one may.
bool VirtualRules::MayBeGone(VirtualNode& node, ExpertId id) const {
  if (restored_ || !node.core().plan()) return true;
  const auto died = died_.find(id);
  if (died != died_.end()) {
    // It was counted on until its death was known; of one that hangs nobody knows when that is.
    const bool unclear = world_.Has(VirtualFault::kHang) || world_.Has(VirtualFault::kStop);
    if (unclear || world_.time.now() - died->second < 30 * kRuleSecond) return true;
  }
  const std::vector<std::string> peers = node.core().Peers();
  for (const ClusterPlan::Node& planned : node.core().plan()->nodes) {
    if (planned.name == node.name() || !planned.Wants(id)) continue;
    if (std::ranges::find(peers, planned.name) != peers.end()) return false;
  }
  return true;  // nobody is to hold it, or those that are have been away for long
}

void VirtualRules::OnReleased(VirtualNode& node, ExpertId id, bool might) {
  world_.events.Count("experts let go");
  for (VirtualNode* const other : Living()) {
    if (other->held().Holds(id)) return;
  }
  if (!might && !MayBeGone(node, id)) {
    Break(fmt::format("{} lets {} go, and it is in no memory", node.name(), ToString(id)));
  }
}

std::vector<VirtualNode*> VirtualRules::Living() const {
  std::vector<VirtualNode*> living;
  for (std::size_t i = 0; i < world_.shape.nodes; ++i) {
    if (VirtualNode* const node = node_(i)) living.push_back(node);
  }
  return living;
}

std::optional<std::string> VirtualRules::WhyNotAtRest() const {
  for (VirtualNode* const node : Living()) {
    if (node->users().waits()) return fmt::format("{}: a layer waits", node->name());
    if (node->host().waiting() > 0) return fmt::format("{}: calls wait", node->name());
    if (node->parts().fetches()) return fmt::format("{} fetches", node->name());
  }
  return std::nullopt;
}

std::optional<std::string> VirtualRules::WhyNotWell(VirtualNode& node) const {
  const std::vector<VirtualNode*> living = Living();
  const NodeCore& core = node.core();
  if (core.Peers().size() + 1 != living.size()) {
    return fmt::format("{} has {} peers", node.name(), core.Peers().size());
  }
  if (!core.plan()) return fmt::format("{} follows no plan", node.name());
  if (core.plan()->nodes.size() != living.size()) {
    return fmt::format("plan {} has {} nodes", core.plan()->epoch, core.plan()->nodes.size());
  }
  if (!core.settled()) return fmt::format("{} has not carried out its plan", node.name());
  for (VirtualNode* const other : living) {
    const std::vector<PeerEntry> peers = node.directory().Entries();
    const auto peer = std::ranges::find(peers, other->name(), &PeerEntry::name);
    if (other == &node || peer == peers.end()) continue;
    ExpertBits held(VirtualModel::kGrid);
    for (const auto& [id, bytes] : other->slots()) held.Add(id);
    if (peer->held == held) continue;
    return fmt::format("{} does not know what {} holds", node.name(), other->name());
  }
  return std::nullopt;
}

std::optional<std::string> VirtualRules::WhyNotWell() const {
  if (auto why = WhyNotAtRest()) return why;
  const std::vector<VirtualNode*> living = Living();
  std::size_t leaders = 0;
  std::set<std::uint64_t> epochs;
  ExpertBits all(VirtualModel::kGrid);
  for (VirtualNode* const node : living) {
    if (auto why = WhyNotWell(*node)) return why;
    leaders += node->core().leads() ? 1 : 0;
    epochs.insert(node->core().plan()->epoch);
    for (const auto& [id, bytes] : node->slots()) all.Add(id);
  }
  if (leaders != 1) return fmt::format("{} lead", leaders);
  if (epochs.size() != 1) return fmt::format("they follow {} plans", epochs.size());
  const std::size_t experts =
      (VirtualModel::kGrid.layers - VirtualModel::kFirstLayer) * VirtualModel::kGrid.experts;
  if (all.size() < std::min(experts, living.size() * world_.shape.most_held)) {
    return fmt::format("only {} experts are in any memory", all.size());
  }
  return std::nullopt;
}

}  // namespace troupe
