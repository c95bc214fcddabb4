#include "server/reload_gate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <list>
#include <string>
#include <thread>
#include <vector>

#include "server/served_model.h"

namespace troupe {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using State = ReloadGate::State;
constexpr std::chrono::milliseconds kAtOnce(0), kLong(60'000);

class ReloadGateTest : public testing::Test {
 protected:
  // A request that keeps its use of the model until it is told to end.
  struct Client {
    std::uint64_t id = 0;
    std::optional<ModelUse> use;
    std::optional<Status> refusal;
  };

  Client& Come(const std::string& name, std::size_t places = 1) {
    Client& client = clients_.emplace_back();
    client.id = gate_.NextId();
    gate_.Enter(client.id, {.begin =
                                [this, name, &client](ModelUse use) {
                                  client.use.emplace(std::move(use));
                                  begun_.push_back(name + " by " + ModelOf(client));
                                },
                            .refuse = [&client](const Status& why) { client.refusal = why; },
                            .places = [places] { return places; }});
    return client;
  }
  static std::string ModelOf(const Client& client) { return client.use->served().options.name; }
  void Change(std::size_t most = 64) {
    gate_.Park({.places = most, .retry_seconds = 7});
    ASSERT_TRUE(gate_.WaitUntilUnused(kAtOnce));
  }

  ServedModel old_{.model = nullptr, .options = {.name = "old", .sampling = {}}};
  ServedModel new_{.model = nullptr, .options = {.name = "new", .sampling = {}}};
  ReloadGate gate_{old_};
  std::list<Client> clients_;  // before the gate goes
  std::vector<std::string> begun_;
};

TEST_F(ReloadGateTest, RequestsUseTheModelAtOnceWhileItIsServed) {
  Come("a");
  Come("b");
  EXPECT_THAT(begun_, ElementsAre("a by old", "b by old"));
  EXPECT_EQ(gate_.users(), 2u);
}

TEST_F(ReloadGateTest, OneThatHasWaitedForTooLongIsRefusedAndItsPlaceIsFree) {
  Client& under_way = Come("a");
  gate_.Park({.places = 1});
  Client& late = Come("b");
  EXPECT_TRUE(gate_.IsParked(late.id));
  EXPECT_FALSE(gate_.IsParked(under_way.id));
  EXPECT_TRUE(gate_.Refuse(late.id, Status(Code::kDeadlineExceeded, "late")));
  EXPECT_EQ(late.refusal->code(), Code::kDeadlineExceeded);
  EXPECT_EQ(gate_.parked(), 0u);
  Client& next = Come("c");  // in its place
  EXPECT_FALSE(next.refusal);
  under_way.use.reset();
  ASSERT_TRUE(gate_.WaitUntilUnused(kAtOnce));
  gate_.Reopen(new_);
  EXPECT_THAT(begun_, ElementsAre("a by old", "c by new"));
  EXPECT_FALSE(gate_.Refuse(next.id, Status(Code::kDeadlineExceeded, "late")));
}

TEST_F(ReloadGateTest, AModelIsNotGivenUpWhileARequestUsesIt) {
  Client& under_way = Come("a");
  gate_.Park({});
  EXPECT_FALSE(gate_.WaitUntilUnused(kAtOnce));
  EXPECT_EQ(gate_.state(), State::kEmptying);
  EXPECT_EQ(ModelOf(under_way), "old");
  under_way.use.reset();
  EXPECT_TRUE(gate_.WaitUntilUnused(kAtOnce));
  EXPECT_EQ(gate_.state(), State::kEmpty);
}

TEST_F(ReloadGateTest, ThoseThatComeMeanwhileAreServedByTheNextInTheirOrder) {
  Client& under_way = Come("a");
  gate_.Park({});
  Come("b");
  Come("c");
  under_way.use.reset();
  ASSERT_TRUE(gate_.WaitUntilUnused(kAtOnce));
  Come("d");
  EXPECT_THAT(begun_, ElementsAre("a by old"));
  EXPECT_EQ(gate_.parked(), 3u);
  gate_.Reopen(new_);
  EXPECT_THAT(begun_, ElementsAre("a by old", "b by new", "c by new", "d by new"));
  EXPECT_EQ(gate_.state(), State::kServing);
  EXPECT_EQ(gate_.parked(), 0u);
}

TEST_F(ReloadGateTest, WhoComesWhileTheParkedAreCalledDoesNotOvertakeThem) {
  Change();
  const auto come_then = [&](const std::string& name, const std::string& next) {
    gate_.Enter(gate_.NextId(), {.begin =
                                     [this, name, next](const ModelUse&) {
                                       begun_.push_back(name);
                                       if (!next.empty()) Come(next);
                                     },
                                 .refuse = {}});
  };
  come_then("a", "c");
  come_then("b", "");
  gate_.Reopen(new_);
  EXPECT_THAT(begun_, ElementsAre("a", "b", "c by new"));
}

TEST_F(ReloadGateTest, WhoFindsAsManyParkedAsMayBeIsToldWhenToComeAgain) {
  Change(2);
  Come("a");
  Client& left = Come("b");
  const Client& refused = Come("c");
  ASSERT_TRUE(refused.refusal.has_value());
  EXPECT_EQ(refused.refusal->code(), Code::kUnavailable);
  EXPECT_EQ(refused.refusal->retry_after(), 7);
  EXPECT_THAT(refused.refusal->message(), HasSubstr("2 requests wait"));
  gate_.Leave(left.id);
  EXPECT_FALSE(Come("d").refusal.has_value());
  gate_.Reopen(new_);
  EXPECT_THAT(begun_, ElementsAre("a by new", "d by new"));
}

TEST_F(ReloadGateTest, ARequestTakesAsManyPlacesAsItHasAnswers) {
  Change(/*most=*/5);
  Client& left = Come("a", 3);
  Come("b", 2);
  EXPECT_TRUE(Come("c").refusal.has_value());
  gate_.Leave(left.id);
  EXPECT_TRUE(Come("d", 4).refusal.has_value());
  EXPECT_FALSE(Come("e", 3).refusal.has_value());
  EXPECT_TRUE(Come("f").refusal.has_value());
  gate_.Reopen(new_);
  EXPECT_THAT(begun_, ElementsAre("b by new", "e by new"));
}

TEST_F(ReloadGateTest, APlaceIsNotGivenAgainWhileThoseWhoWaitedAreCalled) {
  Change(/*most=*/3);
  gate_.Enter(gate_.NextId(), {.begin =
                                   [this](const ModelUse&) {
                                     begun_.push_back("a");
                                     Come("b");
                                     Come("c");
                                   },
                               .refuse = {},
                               .places = [] { return std::size_t{2}; }});
  gate_.Reopen(new_);
  EXPECT_THAT(begun_, ElementsAre("a", "b by new"));
  EXPECT_TRUE(clients_.back().refusal.has_value());
  EXPECT_FALSE(Come("d").refusal.has_value());
}

TEST_F(ReloadGateTest, TheLimitMayBeLoweredToWhatThoseParkedNeed) {
  Change(/*most=*/5);
  Come("a", 2);
  EXPECT_FALSE(gate_.LimitTo(1));
  EXPECT_FALSE(Come("b").refusal.has_value());
  EXPECT_TRUE(gate_.LimitTo(3));
  EXPECT_TRUE(gate_.LimitTo(9)) << "which is no limit";
  EXPECT_TRUE(Come("c").refusal.has_value());
}

TEST_F(ReloadGateTest, PlacesAreCountedOnlyOfARequestThatIsParked) {
  int counted = 0;
  const auto come = [&] {
    gate_.Enter(gate_.NextId(), {.begin = [](const ModelUse&) {},
                                 .refuse = [](const Status&) {},
                                 .places = [&counted] { return std::size_t(++counted); }});
  };
  come();
  EXPECT_EQ(counted, 0);
  Change();
  come();
  EXPECT_EQ(counted, 1);
  gate_.End(Error(Code::kUnavailable, "ending"));
  come();
  EXPECT_EQ(counted, 1);
}

TEST_F(ReloadGateTest, WhoeverLeavesWhileParkedIsCalledByNobody) {
  Change();
  const auto held = std::make_shared<int>();
  const std::uint64_t id = gate_.NextId();
  gate_.Enter(
      id, {.begin = [held](const ModelUse&) { FAIL(); }, .refuse = [](const Status&) { FAIL(); }});
  EXPECT_EQ(held.use_count(), 2);
  gate_.Leave(id);
  gate_.Leave(id);
  EXPECT_EQ(held.use_count(), 1);
  gate_.Reopen(new_);
}

TEST_F(ReloadGateTest, WhoLeftBeforeHeCameTakesNoPlaceAmongTheParked) {
  Change(/*most=*/1);
  const std::uint64_t id = gate_.NextId();
  EXPECT_TRUE(gate_.Leave(id));
  gate_.Enter(id,
              {.begin = [](const ModelUse&) { FAIL(); }, .refuse = [](const Status&) { FAIL(); }});
  EXPECT_EQ(gate_.parked(), 0u);
  Come("a");
  gate_.Reopen(new_);
  EXPECT_THAT(begun_, ElementsAre("a by new"));
}

TEST_F(ReloadGateTest, TheModelCanBeLookedAtUntilItIsGivenUp) {
  gate_.Park({});
  {
    const std::optional<ModelUse> look = gate_.Look();
    ASSERT_TRUE(look.has_value());
    EXPECT_EQ(&look->served(), &old_);
    EXPECT_FALSE(gate_.WaitUntilUnused(kAtOnce));
  }
  ASSERT_TRUE(gate_.WaitUntilUnused(kAtOnce));
  EXPECT_FALSE(gate_.Look().has_value());
  EXPECT_FALSE(gate_.has_model());
  gate_.Reopen(new_);
  EXPECT_EQ(&gate_.Look()->served(), &new_);
}

TEST_F(ReloadGateTest, TheEndRefusesWhoIsParkedAndWhoComesAndLetsOthersEnd) {
  Client& under_way = Come("a");
  gate_.Park({});
  const Client& parked = Come("b");
  gate_.End(Error(Code::kUnavailable, "ending"));
  EXPECT_EQ(parked.refusal->message(), "ending");
  EXPECT_EQ(Come("c").refusal->message(), "ending");
  EXPECT_THAT(begun_, ElementsAre("a by old"));
  EXPECT_TRUE(gate_.Look().has_value());
  EXPECT_EQ(ModelOf(under_way), "old");
  EXPECT_EQ(gate_.state(), State::kEnded);
}

TEST_F(ReloadGateTest, AnEndWithoutAModelRefusesToo) {
  Change();
  const Client& parked = Come("a");
  gate_.End(Error(Code::kUnavailable, "lost"));
  EXPECT_EQ(parked.refusal->message(), "lost");
  EXPECT_FALSE(gate_.has_model());
}

TEST_F(ReloadGateTest, ARequestThatThrowsHoldsUpNoOther) {
  Change();
  gate_.Enter(gate_.NextId(),
              {.begin = [](const ModelUse&) { throw std::bad_alloc(); }, .refuse = {}});
  Come("b");
  gate_.Reopen(new_);
  EXPECT_THAT(begun_, ElementsAre("b by new"));
}

TEST_F(ReloadGateTest, AMovedUseIsOneUse) {
  {
    std::optional<ModelUse> first = gate_.Look();
    const ModelUse second = *std::move(first);
    first.reset();
    EXPECT_EQ(gate_.users(), 1u);
  }
  EXPECT_EQ(gate_.users(), 0u);
}

TEST_F(ReloadGateTest, AGateGoesRoundAnyNumberOfTimes) {
  for (int round = 0; round < 3; ++round) {
    Change();
    Come("a");
    gate_.Reopen(round % 2 == 0 ? new_ : old_);
    clients_.clear();
  }
  EXPECT_THAT(begun_, ElementsAre("a by new", "a by old", "a by new"));
}

// A model that is there only between its opening and its closing, as memory is.
TEST(ReloadGateThreads, NoRequestIsLostAndNoneUsesAModelThatWasClosed) {
  constexpr int kThreads = 4, kRequests = 400, kReloads = 60;
  ServedModel models[2];
  bool open[2] = {true, false};  // written while nobody may use it
  ReloadGate gate(models[0]);
  std::atomic<int> answered = 0, closed = 0, refused = 0;
  {
    std::vector<std::jthread> clients;
    for (int t = 0; t < kThreads; ++t) {
      clients.emplace_back([&] {
        for (int r = 0; r < kRequests; ++r) {
          gate.Enter(gate.NextId(), {.begin =
                                         [&](const ModelUse& use) {
                                           const auto which = &use.served() - models;
                                           if (!open[which]) ++closed;
                                           ++answered;
                                         },
                                     .refuse = [&](const Status&) { ++refused; }});
          if (const auto look = gate.Look(); look && !open[&look->served() - models]) ++closed;
        }
      });
    }
    for (int reload = 0; reload < kReloads; ++reload) {
      gate.Park({.places = kThreads * kRequests, .retry_seconds = 1});
      ASSERT_TRUE(gate.WaitUntilUnused(kLong));
      const int next = (reload + 1) % 2;
      open[1 - next] = false;
      open[next] = true;
      gate.Reopen(models[next]);
    }
  }
  EXPECT_EQ(answered, kThreads * kRequests);
  EXPECT_EQ(closed, 0);
  EXPECT_EQ(refused, 0);
}

TEST(ReloadGateThreads, ParkedRequestsOfOneThreadKeepTheirOrder) {
  ServedModel served;
  ReloadGate gate(served);
  std::vector<int> order;  // a request's begin is on this thread or on the other, never on both
  Mutex mu;
  gate.Park({.places = 1000, .retry_seconds = 1});
  ASSERT_TRUE(gate.WaitUntilUnused(kAtOnce));
  std::jthread client([&] {
    for (int i = 0; i < 1000; ++i) {
      gate.Enter(gate.NextId(), {.begin =
                                     [&, i](const ModelUse&) {
                                       const MutexLock lock(mu);
                                       order.push_back(i);
                                     },
                                 .refuse = {}});
    }
  });
  while (gate.parked() < 10) std::this_thread::yield();
  gate.Reopen(served);
  client.join();
  ASSERT_EQ(order.size(), 1000u);
  EXPECT_TRUE(std::ranges::is_sorted(order));
}

}  // namespace
}  // namespace troupe
