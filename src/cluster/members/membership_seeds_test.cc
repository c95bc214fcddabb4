// A cluster of nodes and its store on a virtual clock. A seed decides who dies, is stopped or cut
// off, when the store is away, compacted or restored from a backup, and what the network loses.
// What must always hold is looked at on every put and every accepted plan; what must come about,
// some time after all faults are mended.
#include <fmt/core.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/rng.h"
#include "base/sanitized.h"
#include "cluster/members/fake_kv_network_for_test.h"
#include "cluster/members/membership.h"
#include "testing/test_seed.h"

namespace troupe {
namespace {

// What happened in many simulations: the seeds are of use only if they reach these.
struct SimulatedEvents {
  int restores = 0, compactions = 0, outages = 0;
  int leaders = 0;  // that began
  int plans = 0;    // written
  int refused = 0;  // by the transaction's comparisons
  int unknown = 0;  // plans whose answer was lost
  int raised = 0;   // epochs beyond the leader's revision, since somebody knew as much
  int names_taken = 0;
};

class MembersSimulation {
 public:
  MembersSimulation(std::uint64_t seed, SimulatedEvents& events);
  ~MembersSimulation();

  // Some faults, their end, and what must have come about afterwards.
  void Round();
  // What should not have happened; empty if all is well.
  const std::string& faults() const { return faults_; }

 private:
  static constexpr Nanos kTtl = 10 * kFakeSecond;
  static constexpr Nanos kFaultsFor = 30 * kFakeSecond;
  // A dead one's lease, twice (a store that starts renews it), and two reads a ttl apart, in case
  // that all watches are silent.
  static constexpr Nanos kSettledAfter = 4 * kTtl;

  struct Process {
    std::string name, start;
    std::shared_ptr<FakeKvLink> link;
    std::unique_ptr<Membership> member;
    bool stopped = false;
    std::vector<KvEvent> waiting;  // told when it is continued
    Nanos tick_at = -1;
    Nanos wrote_at = 0;
    std::uint64_t epoch = 0;  // of the plan accepted last
  };
  using Ref = std::shared_ptr<Process>;

  void StartNode(const std::string& name);
  void Kill(const Ref& process);
  void Continue(const Ref& process);
  void Told(const Ref& process, const KvEvent& event);
  void After(const Ref& process);
  void TickLater(const Ref& process);
  void MaybePlan(Process& process);
  void OnPut(const FakeKvState& state, const KvPut& put);
  void OneFault(Nanos end);
  void Mend();
  void CheckSettled();
  Ref AnyProcess() { return processes_[rng_.Below(processes_.size())]; }
  template <typename... Args>
  void Fault(fmt::format_string<Args...> format, Args&&... args) {
    faults_ += fmt::format("{:.3f} s: ", static_cast<double>(time_.now()) * 1e-9) +
               fmt::format(format, std::forward<Args>(args)...) + "\n";
  }

  Rng rng_;
  SimulatedEvents& events_;
  VirtualTime time_;
  FakeKvNetwork network_;
  const ClusterKeys keys_{"lab"};
  std::vector<Ref> processes_;
  std::vector<FakeKvState> backups_;
  int starts_ = 0, plans_ = 0;
  bool calm_ = false;  // no faults, and no plans that are not wanted
  std::map<std::pair<std::uint64_t, std::string>, Json> accepted_;
  std::string faults_;
};

MembersSimulation::MembersSimulation(std::uint64_t seed, SimulatedEvents& events)
    : rng_(seed), events_(events), network_(time_, rng_) {
  network_.state().set_on_put(
      [this](const FakeKvState& state, const KvPut& put) { OnPut(state, put); });
  backups_.push_back(network_.state());
  const std::size_t nodes = 2 + rng_.Below(3);
  for (std::size_t n = 0; n < nodes; ++n) StartNode(std::string(1, static_cast<char>('a' + n)));
}

MembersSimulation::~MembersSimulation() {
  for (const Ref& process : processes_) process->link->Close();
}

void MembersSimulation::StartNode(const std::string& name) {
  const auto process = std::make_shared<Process>();
  process->name = name;
  process->start = fmt::format("{}{}", name, ++starts_);
  process->link = network_.Connect(
      [this, weak = std::weak_ptr(process)](const KvEvent& event) { Told(weak.lock(), event); });
  // Now where the last one of that name was, now elsewhere, as another machine of the same name.
  const std::string address = fmt::format("{}:{}", name, 7400 + starts_ % 3 / 2);
  process->member = std::make_unique<Membership>(MembershipOptions{.cluster = "lab",
                                                                   .node = name,
                                                                   .address = address,
                                                                   .model = "9f",
                                                                   .start = process->start,
                                                                   .ttl = kTtl},
                                                 *process->link, time_.now());
  processes_.push_back(process);
  process->member->Tick(time_.now());
  After(process);
}

void MembersSimulation::Kill(const Ref& process) {
  process->link->Close();
  std::erase(processes_, process);
  process->member.reset();
}

void MembersSimulation::Continue(const Ref& process) {
  if (process->member == nullptr || !std::exchange(process->stopped, false)) return;
  process->tick_at = -1;
  for (const KvEvent& event : std::exchange(process->waiting, {})) Told(process, event);
  After(process);
}

void MembersSimulation::Told(const Ref& process, const KvEvent& event) {
  if (process == nullptr || process->member == nullptr) return;
  if (process->stopped) {
    process->waiting.push_back(event);
    return;
  }
  process->member->Told(event, time_.now());
  After(process);
}

void MembersSimulation::After(const Ref& process) {
  Membership& member = *process->member;
  const MemberNews news = member.TakeNews();
  if (news.plan) {
    const PlanRecord& plan = *member.plan();
    if (plan.stamp.epoch <= process->epoch) {
      Fault("{} accepts epoch {} after {}", process->start, plan.stamp.epoch, process->epoch);
    }
    process->epoch = plan.stamp.epoch;
    const auto [known, is_new] =
        accepted_.try_emplace({plan.stamp.epoch, plan.stamp.by}, plan.plan);
    if (!is_new && known->second != plan.plan) {
      Fault("two plans of epoch {} by {}", plan.stamp.epoch, plan.stamp.by);
    }
  }
  if (news.leader && member.leads()) ++events_.leaders;
  if (news.state && member.state() == MemberState::kNameTaken) ++events_.names_taken;
  if (news.written) {
    ++(news.written->ok()                                           ? events_.plans
       : news.written->status().code() == Code::kFailedPrecondition ? events_.refused
                                                                    : events_.unknown);
  }
  MaybePlan(*process);
  TickLater(process);
}

void MembersSimulation::MaybePlan(Process& process) {
  const bool wants = process.member->plan_wanted() || (!calm_ && rng_.Below(20) == 0);
  if (!process.member->leads() || !wants || time_.now() - process.wrote_at < kFakeSecond) return;
  process.wrote_at = time_.now();
  (void)process.member->WritePlan(Json(++plans_), time_.now());
}

void MembersSimulation::TickLater(const Ref& process) {
  const Nanos next = std::max(process->member->next_tick(), time_.now());
  if (process->tick_at >= 0 && process->tick_at <= next) return;
  process->tick_at = next;
  time_.After(next - time_.now(), [this, process, next] {
    if (process->member == nullptr || process->stopped || process->tick_at != next) return;
    process->tick_at = -1;
    if (process->member->next_tick() <= time_.now()) process->member->Tick(time_.now());
    After(process);
  });
}

// What no put may do, whoever asks for it and however late it comes.
void MembersSimulation::OnPut(const FakeKvState& state, const KvPut& put) {
  if (put.key == keys_.plan()) {
    const PlanRecord plan = ParsePlan(put.value).value();
    const KvEntry* before = state.Find(keys_.plan());
    const KvEntry* leader = state.Find(keys_.leader());
    if (before != nullptr && ParsePlan(before->value)->stamp.epoch >= plan.stamp.epoch) {
      Fault("plan {} after {}", put.value, before->value);
    }
    if (leader == nullptr || ParseLeader(leader->value)->start != plan.stamp.by) {
      Fault("plan {} under leader {}", put.value, leader == nullptr ? "-" : leader->value);
    } else if (plan.stamp.epoch > static_cast<std::uint64_t>(leader->created) + 5) {
      ++events_.raised;
    }
  } else if (put.key == keys_.leader()) {
    if (state.Find(put.key) != nullptr) Fault("leader overwritten: {}", put.value);
  } else {
    const std::string name(keys_.NodeOf(put.key));
    const KvEntry* before = state.Find(put.key);
    const std::string start = ParseNode(name, put.value)->start;
    if (before != nullptr && ParseNode(name, before->value)->start != start) {
      Fault("{} overwritten with {}", before->value, put.value);
    }
  }
}

void MembersSimulation::OneFault(Nanos end) {
  const Ref some = AnyProcess();
  const Nanos left = end - time_.now();
  const Nanos span = static_cast<Nanos>(rng_.Uniform() * static_cast<double>(left));
  switch (rng_.Below(9)) {
    case 0:
      ++events_.outages;
      network_.Stop();
      time_.After(span, [this] { network_.Start(); });
      break;
    case 1:
      ++events_.restores;
      network_.Stop();
      network_.Restore(backups_[rng_.Below(backups_.size())]);
      time_.After(span / 4, [this] { network_.Start(); });
      break;
    case 2:
      ++events_.compactions;
      network_.state().Compact();
      break;
    case 3:
      some->link->set_cut(true);
      time_.After(span, [some] { some->link->set_cut(false); });
      break;
    case 4:
      some->stopped = true;
      time_.After(span, [this, some] { Continue(some); });
      break;
    case 5:
      Kill(some);
      time_.After(span, [this, name = some->name] { StartNode(name); });
      if (processes_.empty()) StartNode("z");
      break;
    case 6:
      StartNode(some->name);
      break;
    case 7:
      network_.set_loss(rng_.Uniform() * 0.4);
      break;
    case 8:
      some->member->Leave(time_.now());
      time_.After(span, [this, some] {
        if (some->member == nullptr) return;
        Kill(some);
        StartNode(some->name);
      });
      break;
  }
}

void MembersSimulation::Mend() {
  calm_ = true;
  network_.Start();
  network_.set_loss(0);
  for (const Ref& process : std::vector(processes_)) {
    process->link->set_cut(false);
    Continue(process);
  }
}

void MembersSimulation::Round() {
  calm_ = false;
  const Nanos end = time_.now() + kFaultsFor;
  for (std::uint64_t left = 1 + rng_.Below(6); left > 0; --left) {
    time_.RunFor(static_cast<Nanos>(rng_.Below(kFaultsFor / 7)));
    if (rng_.Below(2) == 0) backups_.push_back(network_.state());
    OneFault(end);
  }
  time_.RunFor(end - time_.now());
  Mend();
  time_.RunFor(kSettledAfter);
  CheckSettled();
}

void MembersSimulation::CheckSettled() {
  std::map<std::string, std::string> listed;  // starts by name
  std::map<std::string, int> running;
  for (const Ref& process : processes_) {
    ++running[process->name];
    const MemberState state = process->member->state();
    if (state == MemberState::kMember) {
      if (!listed.emplace(process->name, process->start).second) {
        Fault("two are '{}'", process->name);
      }
    } else if (state != MemberState::kJoining && state != MemberState::kNameTaken) {
      Fault("{} is {}", process->start, ToString(state));
    }
  }
  if (listed.size() != running.size()) {
    Fault("{} of {} names are listed", listed.size(), running.size());
  }
  const KvEntry* plan = network_.state().Find(keys_.plan());
  if (plan == nullptr) return Fault("no plan");
  const PlanStamp stamp = ParsePlan(plan->value)->stamp;
  int leading = 0;
  for (const Ref& process : processes_) {
    const Membership& member = *process->member;
    std::map<std::string, std::string> seen;
    for (const NodeRecord& node : member.nodes()) {
      seen.emplace(node.name, node.start);
      if (node.plan != stamp) Fault("{} has not told that it has plan {}", node.name, stamp.epoch);
    }
    if (seen != listed) Fault("{} sees {} of {}", process->start, seen.size(), listed.size());
    if (!member.leader() || !listed.contains(member.leader()->node)) {
      Fault("{} knows no leader", process->start);
    }
    // Who is not listed can know a newer one that it cannot tell anybody.
    const bool is_listed = member.state() == MemberState::kMember;
    if (is_listed && (!member.plan() || member.plan()->stamp != stamp)) {
      Fault("{} lacks plan {}", process->start, stamp.epoch);
    }
    leading += member.leads();
  }
  if (leading != 1) Fault("{} lead", leading);
}

TEST(MembershipSeeds, NoEpochFallsAndAllAgreeSomeTimeAfterTheFaultsEnd) {
  const std::uint64_t first = TestSeed();
  const std::size_t cases = TestCases(kSanitized ? 100 : 2000);
  SimulatedEvents events;
  for (std::uint64_t seed = first; seed < first + cases; ++seed) {
    MembersSimulation simulation(seed, events);
    for (int round = 0; round < 2; ++round) {
      simulation.Round();
      ASSERT_EQ(simulation.faults(), "") << "TROUPE_SEED=" << seed << ", round " << round;
    }
  }
  if (cases < 100) return;  // so few need not reach everything
  EXPECT_GT(events.restores, 0);
  EXPECT_GT(events.compactions, 0);
  EXPECT_GT(events.outages, 0);
  EXPECT_GT(events.leaders, 0);
  EXPECT_GT(events.plans, 0);
  EXPECT_GT(events.refused, 0);
  EXPECT_GT(events.unknown, 0);
  EXPECT_GT(events.raised, 0);
  EXPECT_GT(events.names_taken, 0);
}

}  // namespace
}  // namespace troupe
