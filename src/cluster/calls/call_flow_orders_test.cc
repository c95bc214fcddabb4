// CallFlow under all orders of what can happen to a small layer: two experts, two hosts that
// answer, refuse or are lost, a disk that reads or fails, time that passes, a pass that is given
// up. Depth first; each state is checked.
#include <fmt/core.h>
#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <deque>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "cluster/calls/call_flow.h"

namespace troupe {
namespace {

constexpr std::uint32_t kAskedExperts = 2;
constexpr PeerIndex kHosts = 2;

struct HostOwes {
  PeerCallId call = 0;
  std::deque<std::uint32_t> experts;
};

// A value: the search goes back by keeping it.
struct LayerState {
  CallFlow flow{{.late_after = 2, .least = 1'000'000, .without_disk = 1'000'000}};
  Nanos now = 0;
  std::array<std::vector<HostOwes>, kHosts> owes;
  std::array<bool, kHosts> lost = {};
  std::set<std::uint32_t> loading, had, failed, given_up;
  std::set<PeerCallId> cancelled;
  std::map<std::pair<PeerIndex, std::uint32_t>, int> asked;  // how often a host was, for an expert
  int late = 0;                                              // how often time has passed
  bool forgotten = false;

  // What makes two states the same: what has happened, in whatever order, and what is to come.
  std::string Key() const {
    std::string key = fmt::format("{} {} {} ", late, flow.waiting(), forgotten);
    for (PeerIndex host = 0; host < kHosts; ++host) {
      key += fmt::format("{}[", lost[host]);
      for (const HostOwes& call : owes[host]) {
        key += cancelled.contains(call.call) ? 'c' : ' ';
        for (const std::uint32_t expert : call.experts) key += fmt::format("{},", expert);
      }
      key += ']';
    }
    for (const std::set<std::uint32_t>* some : {&loading, &had, &failed, &given_up}) {
      for (const std::uint32_t expert : *some) key += fmt::format("{},", expert);
      key += ';';
    }
    for (const auto& [who, times] : asked) {
      key += fmt::format("{}.{}.{} ", who.first, who.second, times);
    }
    return key;
  }
};

class AllOrders {
 public:
  void Run() {
    LayerState state;
    const std::vector<Place> places(kHosts, {.name = "host", .latency_seconds = 1e-3});
    const std::array<std::vector<PeerIndex>, kAskedExperts> holders = {{{0, 1}, {0}}};
    std::vector<AskedExpert> asked;
    for (std::uint32_t expert = 0; expert < kAskedExperts; ++expert) {
      asked.push_back({.expert = expert, .rows = 1, .holders = holders[expert]});
    }
    state.flow.Ask(asked, places);
    Visit(std::move(state), 0);
  }
  std::uint64_t states() const { return states_; }
  std::uint64_t ends() const { return ends_; }
  const CallCounters& most() const { return most_; }

 private:
  // What the flow wants done, done.
  static void Obey(LayerState& state) {
    for (const CallToSend& call : state.flow.TakeCalls(state.now)) {
      ASSERT_FALSE(state.lost[call.peer]) << "a lost host is asked";
      for (const std::uint32_t expert : call.experts) ++state.asked[{call.peer, expert}];
      state.owes[call.peer].push_back(
          {.call = call.call, .experts = {call.experts.begin(), call.experts.end()}});
    }
    for (const std::uint32_t expert : state.flow.TakeToLoad()) {
      ASSERT_FALSE(state.had.contains(expert)) << "what was had is loaded";
      const bool fails = state.failed.contains(expert);
      (fails ? state.given_up : state.loading).insert(expert);
      if (fails) state.flow.OnLoaded(expert);  // the pass ends with an error
    }
    for (const CallToCancel& cancel : state.flow.TakeCancels()) {
      ASSERT_TRUE(state.cancelled.insert(cancel.call).second) << "cancelled twice";
    }
  }

  static void Give(LayerState& state, std::uint32_t expert) {
    ASSERT_FALSE(state.forgotten);
    ASSERT_TRUE(state.had.insert(expert).second) << "given twice";
  }

  void Visit(LayerState state, int depth) {
    Obey(state);
    if (testing::Test::HasFatalFailure()) return;
    if (!seen_.insert(state.Key()).second) return;
    ++states_;
    ASSERT_LT(states_, 200'000u) << "too many for a small case";
    ASSERT_LT(depth, 60) << "it does not end";
    if (state.had.size() + state.given_up.size() == kAskedExperts) return End(state);
    const auto next = [&](const auto& change) {
      if (testing::Test::HasFatalFailure()) return;
      LayerState other = state;
      change(other);
      Visit(std::move(other), depth + 1);
    };
    bool any = false;
    for (PeerIndex host = 0; host < kHosts; ++host) {
      if (state.owes[host].empty() || state.lost[host]) continue;
      any = true;
      next([host](LayerState& to) { Answer(to, host); });
      next([host](LayerState& to) {
        const PeerCallId call = to.owes[host].front().call;
        to.owes[host].erase(to.owes[host].begin());
        to.flow.OnRefused(call);
      });
      next([host](LayerState& to) {
        to.lost[host] = true;
        to.owes[host].clear();
        to.flow.OnLost(host);
      });
    }
    if (!state.loading.empty()) {
      any = true;
      next([](LayerState& to) {
        const std::uint32_t expert = *to.loading.begin();
        to.loading.erase(expert);
        to.flow.OnLoaded(expert);
        Give(to, expert);
      });
      next([](LayerState& to) { FailLoad(to); });
    }
    if (const auto due = state.flow.NextTime()) {
      any = true;
      next([due](LayerState& to) {
        ++to.late;
        to.now = std::max(to.now, *due);
        to.flow.OnTime(to.now);
      });
    }
    ASSERT_TRUE(any) << "it waits for nothing";
    next([](LayerState& to) {
      to.forgotten = true;
      to.flow.Forget();
      for (std::uint32_t expert = 0; expert < kAskedExperts; ++expert) {
        if (!to.had.contains(expert)) to.given_up.insert(expert);
      }
    });
  }

  static void Answer(LayerState& state, PeerIndex host) {
    HostOwes& call = state.owes[host].front();
    const PeerCallId id = call.call;
    const std::uint32_t expert = call.experts.front();
    call.experts.pop_front();
    const bool was_had = state.had.contains(expert);
    const bool used = state.flow.OnAnswered(id, expert);
    ASSERT_FALSE(used && (was_had || state.cancelled.contains(id)));
    if (used) {
      state.loading.erase(expert);
      Give(state, expert);
    }
    if (call.experts.empty()) {
      state.owes[host].erase(state.owes[host].begin());
      state.flow.OnRefused(id);  // that was all of it
    }
  }

  static void FailLoad(LayerState& state) {
    const std::uint32_t expert = *state.loading.begin();
    state.loading.erase(expert);
    std::vector<PeerIndex> holders;
    for (PeerIndex host = 0; host < kHosts; ++host) {
      if (!state.lost[host] && (expert == 0 || host == 0)) holders.push_back(host);
    }
    if (holders.empty() || !state.failed.insert(expert).second) {
      state.flow.OnLoaded(expert);
      state.given_up.insert(expert);
      return;
    }
    state.flow.AskInPlaceOfDisk({.expert = expert, .rows = 1, .holders = holders});
  }

  void End(LayerState& state) {
    ++ends_;
    EXPECT_EQ(state.flow.waiting(), 0u);
    EXPECT_FALSE(state.flow.NextTime());
    for (const auto& owed : state.owes) {  // what still comes is used by nobody
      for (const HostOwes& call : owed) {
        for (const std::uint32_t expert : call.experts) {
          EXPECT_FALSE(state.flow.OnAnswered(call.call, expert));
        }
      }
    }
    const CallCounters& now = state.flow.counters();
    most_.hedges = std::max(most_.hedges, now.hedges);
    most_.overtook = std::max(most_.overtook, now.overtook);
    most_.failed_loads = std::max(most_.failed_loads, now.failed_loads);
    most_.lost = std::max(most_.lost, now.lost);
    most_.cancelled = std::max(most_.cancelled, now.cancelled);
  }

  std::set<std::string> seen_;
  std::uint64_t states_ = 0, ends_ = 0;
  CallCounters most_;
};

TEST(CallFlowOrders, InEveryOrderEachExpertIsHadOnceOrNobodyHasIt) {
  AllOrders orders;
  orders.Run();
  EXPECT_GT(orders.states(), 500u);
  EXPECT_GT(orders.ends(), 100u);
  for (const std::uint64_t count :
       {orders.most().hedges, orders.most().overtook, orders.most().failed_loads,
        orders.most().lost, orders.most().cancelled}) {
    EXPECT_GT(count, 0u);
  }
}

}  // namespace
}  // namespace troupe
