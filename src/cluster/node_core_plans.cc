// What a node core makes of plans: the one in force and the way to it, what is told to who leads,
// and what to do where this node does. node_core.cc has links and peers.
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <functional>
#include <utility>

#include "cluster/node_core.h"
#include "cluster/plan/coming_speed.h"
#include "cluster/wire/holdings.h"
#include "cluster/wire/plan_notice.h"
#include "cluster/wire/report.h"

namespace troupe {
namespace {

// A step may wait for a node that is away, and time is what it waits for.
constexpr Nanos kGoOnEvery = 1'000'000'000;
// Times as long as until a plan leaves such a node out. If no such plan comes, what only that node
// is to hold may go.
constexpr Nanos kAwaitedTimes = 2;

// Of the time until a plan that the store did not take is written again: a store that is full stays
// so for hours.
constexpr std::uint32_t kMostDoublings = 4;

std::string WithoutNumbers(std::string text) {
  std::erase_if(text, [](unsigned char c) { return std::isdigit(c) != 0; });
  return text;
}

// By the grid's index.
std::vector<std::uint8_t> FlagsOf(const ExpertBits& bits) {
  const ExpertGrid grid = bits.grid();
  std::vector<std::uint8_t> flags(grid.Count());
  for (std::uint32_t layer = 0; layer < grid.layers; ++layer) {
    for (std::uint32_t expert = 0; expert < grid.experts; ++expert) {
      flags[grid.Index({layer, expert})] = bits.Has({layer, expert}) ? 1 : 0;
    }
  }
  return flags;
}

}  // namespace

void NodeCore::OnPlan(std::uint64_t epoch, std::string_view plan) {
  TakePlan(epoch, plan, "the store");
}

void NodeCore::OnPlanWanted(bool wanted, Nanos now) {
  wanted_ = wanted;
  if (wanted) planner_.OnCame(now);
}

void NodeCore::OnPlanWritten(const Status& outcome, Nanos now) {
  writing_ = false;
  if (outcome.ok()) {
    said_unwritten_.clear();
    unwritten_ = 0;
    return;
  }
  ++plans_unwritten_;
  if (look_) look_->unwritten = outcome.message();
  // One that is too large will not become smaller: it is looked at again when one is due.
  if (outcome.code() != Code::kInvalidArgument) {
    planner_.TryAgain(now);
    write_again_at_ = now + (options_.planner.gather << std::min(unwritten_++, kMostDoublings));
  }
  std::string reason = WithoutNumbers(outcome.message());
  if (reason == said_unwritten_) return;
  said_unwritten_ = std::move(reason);
  Say(outcome.message());
}

void NodeCore::OnHoldings(const std::string& name, const PeerHoldings& holdings) {
  Peer& peer = peers_[name];
  if (holdings.held.grid() != self_.hello.grid || holdings.sequence < peer.sequence) return;
  peer.sequence = holdings.sequence;
  peer.held = holdings.held;
  peer.held_by = holdings.epoch;
  actions_.push_back(node_action::PeerHolds{.link = peer.link, .held = holdings.held});
  GoOn();
}

void NodeCore::OnReport(const std::string& name, const PeerReport& report) {
  if (!leads_ || report.grid != self_.hello.grid) return;
  const auto peer = peers_.find(name);
  if (peer != peers_.end() && IsOutOfPlans(peer->second.hello.start_id)) return;
  planner_.OnReport(name, report);
}

void NodeCore::OnPlanNotice(const std::string& name, const PeerPlanNotice& notice) {
  const auto peer = peers_.find(name);
  if (!has_list() || peer == peers_.end()) return;
  if (!Leads(peer->second.hello) && !YieldsTo(peer->second.hello)) return;
  if (notice.epoch <= kMostEpoch) TakePlan(notice.epoch, notice.plan, name);
}

// By its own list it leads: the lists are not in the same order. Of two such the one with the
// smaller address leads, whatever the lists say, so that there is one.
bool NodeCore::YieldsTo(const PeerHello& other) {
  std::vector<std::string>& list = options_.addresses;
  const auto found = std::ranges::find(list, other.address);
  const bool yields = found != list.end() && other.address < list.front();
  if (yields || !said_lists_differ_) {
    Say(
        fmt::format("node {} plans, but the first of --peers here is {}: the lists are not in the "
                    "same order; {} leads",
                    other.node, list.front(), yields ? other.address : list.front()));
  }
  said_lists_differ_ = true;
  if (!yields) return false;
  std::rotate(list.begin(), found, found + 1);
  if (std::exchange(leads_, false)) planner_.End();
  report_at_ = 0;
  return true;
}

void NodeCore::TakePlan(std::uint64_t epoch, std::string_view text, std::string_view from) {
  newest_epoch_ = std::max(newest_epoch_, epoch);
  if (plan() && epoch <= plan()->epoch) return;
  Result<ClusterPlan> plan =
      ParseClusterPlan(text, ModelText(self_.hello), self_.hello.grid, epoch);
  if (!plan.ok()) {
    if (EndsAtPlan(epoch, text)) return;
    not_followed_ = epoch;
    if (leads_) planner_.OnCame(now_);
    return Say(
        fmt::format("plan {} of {} is not followed: {}", epoch, from, plan.status().message()));
  }
  Adopt(*std::move(plan));
}

// All others may be off: it would lead, its plan would take the place of theirs, and the others
// would be those that do not fit. One that serves already has found its cluster.
bool NodeCore::EndsAtPlan(std::uint64_t epoch, std::string_view text) {
  if (has_list() || options_.new_model || was_listed_ || first_contact_.settled()) return false;
  const std::string model = ModelOfPlan(text);
  const std::string own = ModelText(self_.hello);
  if (model.empty() || model == own || plan()) return false;
  Fail(
      fmt::format("cluster '{}' serves another model: plan {} in etcd is for {}, and this node's "
                  "model is {}; --new-model goes over to it once all others have ended",
                  self_.hello.cluster, epoch, model, own));
  return true;
}

void NodeCore::Adopt(ClusterPlan plan) {
  const ClusterPlan::Node* const own = plan.Find(self_.hello.node);
  const std::size_t count = own != nullptr ? own->count() : 0;
  Say(fmt::format("plan {}: {} experts are to be held here", plan.epoch, count));
  if (count > self_.most_held) {
    Say(fmt::format("plan {} cannot be carried out here: memory holds {} experts", plan.epoch,
                    self_.most_held));
  }
  if (has_list()) first_contact_.Settle();
  unwritten_ = 0;
  adopted_at_ = now_;
  follower_.Adopt(std::move(plan));
  GoOn();
}

std::vector<OtherNode> NodeCore::Others(const ClusterPlan& plan) const {
  const Nanos longest = kAwaitedTimes * options_.planner.forget_after;
  std::vector<OtherNode> others;
  for (const auto& [name, peer] : peers_) {
    others.push_back(
        {.name = name,
         .here = peer.link != 0,
         .awaited = peer.link != 0 || now_ - std::max(peer.seen, adopted_at_) < longest,
         .epoch = peer.held_by,
         .held = &peer.held,
         .planned = plan.Find(name)});
  }
  for (const ClusterPlan::Node& node : plan.nodes) {
    if (node.name == self_.hello.node || peers_.contains(node.name)) continue;
    others.push_back(
        {.name = node.name, .awaited = now_ - adopted_at_ < longest, .planned = &node});
  }
  return others;
}

Result<std::string> NodeCore::Drain() {
  const bool any_may_hold = std::ranges::any_of(peers_, [this](const auto& peer) {
    return peer.second.link != 0 && (!leads_ || planner_.MayHold(peer.first));
  });
  if (!any_may_hold) {
    return Error(Code::kFailedPrecondition,
                 "no other node is here that has memory for what {} holds: stop it as it is",
                 self_.hello.node);
  }
  if (!follower_.draining()) {
    follower_.Drain();
    Say("what is held here goes to other nodes");
    report_at_ = 0;
  }
  if (LeaderName().empty()) {
    return std::string("nobody leads now: others take what it holds once somebody does");
  }
  return std::string("others take what it holds; see status for what is left");
}

Result<std::string> NodeCore::PlanNow(Nanos now) {
  if (!leads_) {
    const std::string leader = LeaderName();
    return Error(Code::kFailedPrecondition, "{} leads, not {}", leader.empty() ? "nobody" : leader,
                 self_.hello.node);
  }
  planner_.PlanNow(now);
  write_again_at_ = 0;
  const std::vector<std::string> awaited = planner_.Awaits(now);
  if (awaited.empty()) return std::string("it looks");
  return fmt::format(
      "it looks in {:.0f} s, or as soon as it has heard of {}: {} has just begun to lead",
      static_cast<double>(planner_.awaited_until() - now) * 1e-9, fmt::join(awaited, ", "),
      self_.hello.node);
}

void NodeCore::GoOn() {
  std::optional<HoldingStep> step = follower_.TakeStep();
  TellHoldings();
  if (step) actions_.push_back(node_action::Carry{*std::move(step)});
}

void NodeCore::TellHoldings() {
  if (told_sequence_ == follower_.sequence()) return;
  told_sequence_ = follower_.sequence();
  SendToPeers(Encode(follower_.Holdings()));
}

void NodeCore::OnHeld(std::vector<std::uint8_t> held, bool as_planned) {
  follower_.OnHeld(std::move(held), as_planned);
  TellHoldings();
  GoOn();
}

void NodeCore::OnActivity(std::vector<std::uint32_t> counts, Nanos) {
  for (std::size_t i = 0; i < counts.size(); ++i) counted_[i] += counts[i];
}

void NodeCore::OnMeasured(NodeMeasures measured) {
  measured_ = std::move(measured);
  follower_.SetAtOnce(ExpertsAtOnce(measured_.disk_bytes_per_second, self_.expert_bytes));
}

void NodeCore::SendReport(Nanos now) {
  const auto leader = std::ranges::find_if(peers_, [this](const auto& peer) {
    return peer.second.link != 0 && Leads(peer.second.hello);
  });
  if (!leads_ && leader == peers_.end()) return;  // it is told when there is one again
  const std::uint64_t start = leads_ ? self_.hello.start_id : leader->second.hello.start_id;
  if (std::exchange(told_to_, start) != start) AddWhatWasTold();
  const PeerReport report{
      .seconds = static_cast<double>(now - counted_since_) * 1e-9,
      .grid = self_.hello.grid,
      .activations = counted_,
      .expert_memory = Bytes(follower_.draining() ? 0 : self_.most_held * self_.expert_bytes),
      .measured = measured_};
  leads_ ? OnReport(self_.hello.node, report) : Send(leader->second.link, Encode(report));
  told_before_.Add(counted_, report.seconds);
  std::ranges::fill(counted_, 0);
  counted_since_ = now;
  LetLittleUsedRest();
}

void NodeCore::OnSharing(bool given_up) {
  if (std::exchange(sharing_given_up_, given_up) == given_up) return;
  Say(given_up ? "sharing does not pay here: what others hold too, and the own users use less than "
                 "the rest, gives its slots to the cache"
               : "sharing pays again: what the plan gives this node is held here again");
  LetLittleUsedRest();
  GoOn();
}

// What is used changes, so it is looked at with each report.
void NodeCore::LetLittleUsedRest() {
  if (!sharing_given_up_) return follower_.Rest({});
  std::vector<double> use = told_before_.values();
  use.resize(counted_.size());
  for (std::size_t i = 0; i < use.size(); ++i) use[i] += counted_[i];
  follower_.Rest(std::move(use));
}

// A leader that has just begun knows nothing of what users activated before.
void NodeCore::AddWhatWasTold() {
  const std::vector<double>& before = told_before_.values();
  for (std::size_t i = 0; i < before.size(); ++i) {
    counted_[i] += static_cast<std::uint32_t>(std::lround(before[i]));
  }
  told_before_ = AgedActivity(options_.planner.half_life_seconds());
}

void NodeCore::Plan(Nanos now) {
  std::vector<Planner::Present> present = {
      {.name = self_.hello.node, .round_trip_seconds = {}, .held = follower_.held()}};
  for (const auto& [name, peer] : peers_) {
    if (peer.link == 0 && planner_.Forgets(now - peer.seen)) continue;
    if (IsOutOfPlans(peer.hello.start_id)) continue;
    Planner::Present& node = present.emplace_back(Planner::Present{.name = name});
    if (peer.link == 0) continue;
    node.round_trip_seconds = links_[peer.link].round_trip;
    node.held = FlagsOf(peer.held);
  }
  std::ranges::sort(present, {}, &Planner::Present::name);
  planner_.LeaveOut(present, follower_.plan());
  std::optional<PlanJob> job = planner_.Job(present, follower_.plan());
  const bool was_said = std::exchange(said_no_memory_, !job);
  if (!job) {
    if (!was_said) Say("no plan: no node that is here has memory for experts, or all are to go");
    return;
  }
  choosing_ = true;
  actions_.push_back(node_action::Choose{*std::move(job)});
}

void NodeCore::OnPlanChosen(Result<PlanChoice> choice, Nanos now) {
  choosing_ = false;
  if (!leads_) return;  // another one plans by now
  if (!choice.ok()) {
    Say(fmt::format("no plan: {}", choice.status().message()));
    planner_.TryAgain(now);
    return;
  }
  const Adoption& adoption = choice->adoption;
  using Why = Adoption::Why;
  look_ = {.at = now,
           .adopted = adoption.adopt(),
           .why = ToString(adoption),
           .weighed = adoption.why == Why::kPays || adoption.why == Why::kDoesNotPay,
           .seconds_now = adoption.eq4.seconds_now,
           .seconds_after = adoption.eq4.seconds_after,
           .migration_seconds = adoption.eq4.migration_seconds};
  std::optional<ClusterPlan> plan;
  if (look_->adopted) {
    said_why_.reset();
    plan = std::move(choice->plan);
    Say(fmt::format("a new plan, as {}", look_->why));
  } else {
    // Once: it is looked at every few minutes.
    if (std::exchange(said_why_, adoption.why) != adoption.why) {
      Say(fmt::format("the plan stays: {}", look_->why));
    }
    // Who starts anew gets no other one than the newest, which may be for another model.
    if (!wanted_ && not_followed_ <= follower_.epoch()) return;
    plan = follower_.plan();
  }
  if (!has_list()) {
    writing_ = true;
    actions_.push_back(node_action::WritePlan{ToJson(*plan, self_.hello.grid)});
    return;
  }
  plan->epoch = newest_epoch_ = NextEpoch();
  SendToPeers(Encode(PeerPlanNotice{plan->epoch, ToJson(*plan, self_.hello.grid)}));
  Adopt(*std::move(plan));
}

// The newest that peers tell of, as far as more than half of the others tell of about as new a one.
std::uint64_t NodeCore::EpochOfMost() const {
  std::vector<std::uint64_t> told;
  for (const auto& [name, peer] : peers_) {
    if (peer.link != 0) told.push_back(std::max(peer.hello.plan_epoch, peer.held_by));
  }
  std::ranges::sort(told, std::greater());
  const std::size_t others = std::max(options_.addresses.size() - 1, told.size());
  if (told.size() <= others / 2) return 0;
  const std::uint64_t most =
      std::min(told[others / 2] + kMostEpochRise, kMostEpoch - kMostEpochRise);
  const auto newest =
      std::ranges::find_if(told, [most](std::uint64_t epoch) { return epoch <= most; });
  return newest != told.end() ? *newest : 0;
}

// Greater than any that was told of. A leader that has started anew may not have been told yet of a
// plan that it made itself: two plans of one epoch would be taken for one.
std::uint64_t NodeCore::NextEpoch() const {
  constexpr std::uint64_t kStarts = std::uint64_t{1} << 16;
  const std::uint64_t newest = std::max(newest_epoch_, EpochOfMost());
  return (newest / kStarts + 1) * kStarts + self_.hello.start_id % kStarts;
}

void NodeCore::TellWhetherSettled() {
  if (!plan() || settled_of_ == plan()->epoch || !settled()) return;
  settled_of_ = plan()->epoch;
  Say(fmt::format("plan {} is carried out here", settled_of_));
}

void NodeCore::OnTime(Nanos now) {
  now_ = now;
  if (follower_.OnTime(now) || now >= go_on_at_) {
    go_on_at_ = now + kGoOnEvery;
    GoOn();
  }
  TellWhetherSettled();
  KeepOneLinkEach();
  if (now >= report_at_) {
    report_at_ = now + options_.report_every;
    SendReport(now);
  }
  if (!leads_ || choosing_ || writing_ || ends_ || now < write_again_at_) return;
  if (planner_.IsDue(now, members_.size(), plan().has_value())) Plan(now);
}

}  // namespace troupe
