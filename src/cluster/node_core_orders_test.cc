// Two nodes under all orders of what can happen between them: hello, holdings, reports and plans on
// their way each in its direction, steps that end, a plan that is chosen, a link that is lost and
// comes back. Depth first; each state is checked, and from each end all becomes well.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <deque>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "cluster/node_core.h"
#include "cluster/wire/holdings.h"

namespace troupe {
namespace {

constexpr ExpertGrid kPairGrid{.layers = 1, .experts = 3};
constexpr std::uint32_t kPairHolds = 2;
constexpr Nanos kPairSecond = 1'000'000'000;

// What may happen next. Of a side where it has one.
struct Happening {
  enum class Kind { kDeliver, kCarried, kChosen, kTick, kCut, kReconnect };
  Kind kind = Kind::kDeliver;
  std::size_t side = 0;
};

class Pair {
 public:
  Pair() {
    for (std::size_t i = 0; i < 2; ++i) {
      Side& side = sides_[i];
      side.held.assign(kPairGrid.Count(), 0);
      const std::string name(1, static_cast<char>('a' + i));
      side.core =
          std::make_unique<NodeCore>(NodeSelf{.hello = {.start_id = i + 1,
                                                        .model = {7, 8},
                                                        .arithmetic = 9,
                                                        .grid = kPairGrid,
                                                        .width = 64,
                                                        .form = RowForm::kInt8,
                                                        .cluster = "lab",
                                                        .node = name,
                                                        .address = name + ":1"},
                                              .experts_per_token = 1,
                                              .expert_bytes = 100,
                                              .most_held = kPairHolds,
                                              .held = side.held},
                                     NodeOptions{.addresses = {"a:1", "b:1"}, .planner = {}}, now_);
      Perform(i);
    }
    Connect();
  }

  std::vector<Happening> Possible() const {
    using Kind = Happening::Kind;
    std::vector<Happening> all;
    for (std::size_t i = 0; i < 2; ++i) {
      if (linked_ && !sides_[i].inbox.empty()) all.push_back({Kind::kDeliver, i});
      if (sides_[i].carrying) all.push_back({Kind::kCarried, i});
      if (sides_[i].choosing) all.push_back({Kind::kChosen, i});
    }
    if (ticks_ < 2) all.push_back({Kind::kTick});
    if (linked_ && !was_cut_) all.push_back({Kind::kCut});
    if (!linked_) all.push_back({Kind::kReconnect});
    return all;
  }

  void Do(const Happening& happening) {
    Side& side = sides_[happening.side];
    switch (happening.kind) {
      case Happening::Kind::kDeliver: {
        const std::vector<std::byte> frame = std::move(side.inbox.front());
        side.inbox.pop_front();
        side.core->OnFrame(link_, frame, now_);
        break;
      }
      case Happening::Kind::kCarried: {
        const HoldingStep step = *std::exchange(side.carrying, std::nullopt);
        if (const auto* release = std::get_if<ReleaseStep>(&step)) {
          side.held[kPairGrid.Index(release->id)] = 0;
        } else {
          const auto& hold = std::get<HoldStep>(step);
          for (const std::uint32_t expert : hold.experts) {
            side.held[kPairGrid.Index({hold.layer, expert})] = 1;
          }
        }
        side.core->OnHeld(side.held, true);
        break;
      }
      case Happening::Kind::kChosen:
        side.core->OnPlanChosen(ChoosePlan(*std::exchange(side.choosing, std::nullopt)), now_);
        break;
      case Happening::Kind::kTick:
        ++ticks_;
        now_ += 6 * kPairSecond;
        for (Side& each : sides_) each.core->OnTime(now_);
        break;
      case Happening::Kind::kCut:
        was_cut_ = true;
        linked_ = false;
        for (Side& each : sides_) {
          each.inbox.clear();
          each.told.reset();
          each.core->OnLinkClosed(link_, "cut", now_);
        }
        break;
      case Happening::Kind::kReconnect:
        Connect();
        break;
    }
    for (std::size_t i = 0; i < 2; ++i) Perform(i);
  }

  // In any state.
  void Check() {
    for (Side& side : sides_) {
      ASSERT_LE(std::ranges::count(side.held, 1), kPairHolds + HoldingFacts::kSwapSlots);
      const std::uint64_t epoch = side.core->plan() ? side.core->plan()->epoch : 0;
      ASSERT_GE(epoch, side.epoch);
      side.epoch = epoch;
      ASSERT_FALSE(side.failed);
      ASSERT_TRUE(linked_ || side.core->Peers().empty());
    }
  }

  // What makes two states the same, as far as it can be seen.
  std::string Key() const {
    std::string key = fmt::format("{} {} {} |", ticks_, linked_, was_cut_);
    for (const Side& side : sides_) {
      key += fmt::format("{} {} {} {} {}", side.core->plan() ? side.core->plan()->epoch : 0,
                         side.core->Peers().size(), side.core->changes(), side.carrying.has_value(),
                         side.choosing.has_value());
      for (const std::uint8_t held : side.held) key += held != 0 ? '1' : '0';
      for (const std::uint8_t known : side.known) key += known != 0 ? '1' : '0';
      for (const std::vector<std::byte>& frame : side.inbox) {
        key.append(reinterpret_cast<const char*>(frame.data()), frame.size());
        key += ';';
      }
      key += '|';
    }
    return key;
  }

  // As time goes on and nothing else happens, both are peers and hold what one plan says.
  void ExpectWellInTheEnd() {
    for (int round = 0; !IsWell(); ++round) {
      ASSERT_LT(round, 400) << Key();
      std::vector<Happening> possible = Possible();
      std::erase_if(possible, [](const Happening& one) {
        return one.kind == Happening::Kind::kCut || one.kind == Happening::Kind::kTick;
      });
      Do(possible.empty() ? Happening{Happening::Kind::kTick} : possible.front());
      Check();
    }
  }

 private:
  struct Side {
    std::unique_ptr<NodeCore> core;
    std::vector<std::uint8_t> held, known;
    std::deque<std::vector<std::byte>> inbox;
    std::optional<HoldingStep> carrying;
    std::optional<PlanJob> choosing;
    std::optional<ExpertBits> told;  // of its holdings, on this link
    std::uint64_t epoch = 0;
    bool failed = false;
  };

  bool IsWell() const {
    for (std::size_t i = 0; i < 2; ++i) {
      const NodeCore& core = *sides_[i].core;
      if (core.Peers().empty() || !core.plan() || !core.settled()) return false;
      if (sides_[i].known != sides_[1 - i].held) return false;
    }
    return sides_[0].core->plan()->epoch == sides_[1].core->plan()->epoch;
  }

  void Connect() {
    linked_ = true;
    ++link_;
    for (std::size_t i = 0; i < 2; ++i) {
      sides_[i].core->OnLinkOpened(link_, {.address = {}, .names = {}}, now_);
      Perform(i);
    }
  }

  void Perform(std::size_t i) {
    Side& side = sides_[i];
    for (NodeAction& action : side.core->TakeActions()) {
      if (auto* send = std::get_if<node_action::Send>(&action)) {
        if (!linked_ || send->link != link_) continue;
        if (const auto holdings = DecodePeerHoldings(send->frame); holdings.ok()) {
          side.told = holdings->held;
        }
        sides_[1 - i].inbox.push_back(std::move(send->frame));
      } else if (auto* carry = std::get_if<node_action::Carry>(&action)) {
        ASSERT_FALSE(side.carrying);
        // Whoever might ask for what goes has been told, or is told before anything else.
        if (const auto* release = std::get_if<ReleaseStep>(&carry->step); release && side.told) {
          ASSERT_FALSE(side.told->Has(release->id));
        }
        side.carrying = std::move(carry->step);
      } else if (auto* choose = std::get_if<node_action::Choose>(&action)) {
        side.choosing = std::move(choose->job);
      } else if (auto* holds = std::get_if<node_action::PeerHolds>(&action)) {
        side.known.assign(kPairGrid.Count(), 0);
        if (holds->held.grid() != kPairGrid) continue;
        for (std::uint32_t e = 0; e < kPairGrid.experts; ++e) {
          side.known[e] = holds->held.Has({0, e}) ? 1 : 0;
        }
      } else if (std::get_if<node_action::Fail>(&action) != nullptr) {
        side.failed = true;
      }
    }
  }

  std::array<Side, 2> sides_;
  Nanos now_ = kPairSecond;
  LinkId link_ = 0;
  bool linked_ = false, was_cut_ = false;
  int ticks_ = 0;
};

class PairSearch {
 public:
  // A node core cannot be copied: each path is walked anew.
  void Run() {
    std::vector<std::vector<Happening>> to_visit = {{}};
    while (!to_visit.empty() && !testing::Test::HasFatalFailure()) {
      const std::vector<Happening> path = std::move(to_visit.back());
      to_visit.pop_back();
      Pair pair;
      for (const Happening& happening : path) pair.Do(happening);
      pair.Check();
      if (!seen_.insert(pair.Key()).second) continue;
      const std::vector<Happening> possible = pair.Possible();
      for (const Happening& happening : possible) {
        to_visit.push_back(path);
        to_visit.back().push_back(happening);
      }
      ASSERT_LT(seen_.size(), 200'000u) << "too many states for a small case";
      if (seen_.size() % kEach == 0 && followed_ < kMostFollowed) {
        ++followed_;
        pair.ExpectWellInTheEnd();
      }
    }
  }
  std::size_t states() const { return seen_.size(); }

 private:
  static constexpr std::size_t kEach = 7;  // of the states is followed to its end
  static constexpr std::size_t kMostFollowed = 5'000;
  std::size_t followed_ = 0;
  std::set<std::string> seen_;
};

TEST(NodeCoreOrders, InEveryOrderTwoNodesHoldWhatOnePlanSays) {
  PairSearch search;
  search.Run();
  EXPECT_GT(search.states(), 500u);
}

}  // namespace
}  // namespace troupe
