#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <set>
#include <utility>

#include "runtime/offloaded_for_test.h"

namespace troupe {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::UnorderedElementsAre;

// One place that holds what a test says, and says what a test tells it to.
class ScriptedPeers final : public ExpertPeers {
 public:
  std::span<const Place> Places() override { return {&place_, 1}; }
  std::span<const std::uint32_t> HoldersOf(ExpertId id) const override {
    return holds.contains(id) ? std::span(&kFirst, 1) : std::span<const std::uint32_t>();
  }
  std::uint32_t most_rows() const override { return most; }
  void OnAsked(const ExpertBatch&, RowForm wanted) override { form = wanted; }
  void Ask(const ExpertBatch& batch, std::span<const AnsweredElsewhere> misses) override {
    layer_ = batch.layer;
    for (const AnsweredElsewhere& miss : misses) {
      asked.push_back(miss.expert);
      owed_.insert(miss.expert);
    }
  }
  bool AskInPlaceOfDisk(const ExpertBatch&, std::uint32_t expert) override {
    if (!in_place.erase(expert)) return false;
    asked.push_back(expert);
    owed_.insert(expert);
    return true;
  }
  void OnLoaded(std::uint32_t expert) override { owed_.erase(expert); }
  News Take() override {
    answers_ = std::exchange(answers, {});
    gone_ = std::exchange(gone, {});
    rows_.clear();
    for (const std::uint32_t expert : answers_) {
      rows_.push_back({expert, form, kRow});
      owed_.erase(expert);
    }
    return {.answered = rows_, .to_load = gone_};
  }
  bool waiting() const override { return !owed_.empty(); }
  void Wait(std::optional<Nanos>) override {
    if (on_wait) on_wait();
  }
  void Forget() override {
    owed_.clear();
    ++forgotten;
  }

  void set_latency(double seconds) { place_.latency_seconds = seconds; }
  void set_row_seconds(double seconds) { place_.row_seconds = seconds; }

  std::uint32_t most = 512;  // rows of a pass
  static constexpr float kRow[2] = {1, 2};
  std::set<ExpertId> holds;
  std::vector<std::uint32_t> asked;          // so far
  std::vector<std::uint32_t> answers, gone;  // for the next Take
  std::set<std::uint32_t> in_place;          // that it computes if the disk fails at them, once
  std::function<void()> on_wait;
  int forgotten = 0;
  RowForm form = RowForm::kFloat;  // that the last layer takes

 private:
  static constexpr std::uint32_t kFirst = 0;
  Place place_ = {.name = "peer", .latency_seconds = 1e-9};
  std::uint32_t layer_ = 0;
  std::set<std::uint32_t> owed_;
  std::vector<std::uint32_t> answers_, gone_;
  std::vector<Rows> rows_;
};

class OffloadedPeersTest : public OffloadedExpertsTest {
 protected:
  // A byte takes a second to load, and the peer next to nothing.
  void SetUp() override {
    costs_ = {.medium = {.latency_seconds = 1, .bytes_per_second = 1}, .local = {}};
    Open(4);
    experts_->set_peers(peers_);
  }

  // What the peer computed, of one Take; the others are looked at as ever.
  std::vector<std::uint32_t> TakeRows(bool wait) {
    std::vector<std::uint32_t> experts;
    const std::span<const ReadyExpert> taken = experts_->Take(wait).value();
    for (const ReadyExpert& ready : taken) {
      EXPECT_EQ(std::get<ReadyRows>(ready.answer).values.data(), ScriptedPeers::kRow);
      experts.push_back(ready.expert);
    }
    return experts;
  }

  ScriptedPeers peers_;
};

TEST_F(OffloadedPeersTest, WhatAPeerHoldsItIsAskedForAndItsRowsAreGiven) {
  peers_.holds = {{0, 1}, {0, 3}, {1, 2}};
  Ask(0, {0, 1, 3});
  EXPECT_THAT(peers_.asked, UnorderedElementsAre(1, 3));
  EXPECT_THAT(Take(true), ElementsAre(0));  // from the disk
  peers_.answers = {3};
  EXPECT_THAT(TakeRows(false), ElementsAre(3));
  peers_.on_wait = [&] { peers_.answers = {1}; };
  EXPECT_THAT(TakeRows(true), ElementsAre(1));
  EXPECT_EQ(experts_->usage().elsewhere, 2u);
  EXPECT_EQ(experts_->usage().loaded, 1u);
}

TEST_F(OffloadedPeersTest, AnswersInFewerBitsAreTakenWhereEveryRowMayAndCountedForTheirRequests) {
  experts_->set_peers(peers_, RowForm::kInt8);
  peers_.holds = {{0, 1}};
  PassFacts pass{.groups = {{.request = 5, .rows = 1}}};
  const ExpertDemand demand{.expert = 1, .tokens = 1};
  const std::uint32_t row = 0, first_row[] = {0, 0, 1, 1, 1};  // the row chose expert 1
  const auto ask_and_take = [&] {
    experts_->OnPassBegins(pass);
    experts_->Ask({.demands = {&demand, 1}, .rows = {&row, 1}, .first_row = first_row});
    peers_.on_wait = [&] { peers_.answers = {1}; };
    EXPECT_THAT(TakeRows(true), ElementsAre(1));
    experts_->SettleUsage();
  };
  ask_and_take();
  EXPECT_EQ(peers_.form, RowForm::kInt8);
  EXPECT_EQ(experts_->TakeUsage(5).peer_q8, 1u);
  EXPECT_EQ(experts_->usage().NotExact(), 1u);
  EXPECT_FALSE(experts_->report().exact());
  pass.groups.push_back({.request = 6, .exact = true, .rows = 1});
  ask_and_take();
  EXPECT_EQ(peers_.form, RowForm::kFloat) << "one of the rows wants every bit";
  pass.groups = {{.request = 7, .rows = 1}};
  experts_->set_peers(peers_, RowForm::kBf16);
  ask_and_take();
  EXPECT_EQ(experts_->usage().peer_q8, 1u);
  EXPECT_EQ(experts_->usage().peer_bf16, 1u);
  EXPECT_EQ(experts_->EndRequest(7).peer_bf16, 1u);
  EXPECT_EQ(experts_->EndRequest(6).NotExact(), 0u);
  experts_->set_peers(peers_);
  EXPECT_TRUE(experts_->report().exact());
}

TEST_F(OffloadedPeersTest, WhatAPeerDoesNotAnswerIsLoaded) {
  peers_.holds = {{0, 1}, {0, 2}};
  Ask(0, {1, 2});
  EXPECT_THAT(Take(false), IsEmpty());
  peers_.on_wait = [&] { peers_.gone = {2}; };
  EXPECT_THAT(Take(true), ElementsAre(2));
  peers_.on_wait = [&] { peers_.answers = {1}; };
  EXPECT_THAT(TakeRows(true), ElementsAre(1));
  EXPECT_EQ(experts_->usage().elsewhere, 1u);
  EXPECT_EQ(experts_->usage().loaded, 1u);
}

TEST_F(OffloadedPeersTest, AnAnswerIsSeenWhileALoadIsUnderWay) {
  peers_.holds = {{0, 1}};
  Ask(0, {0, 1});
  peers_.answers = {1};
  // Whichever comes first; both are given before long.
  std::set<std::uint32_t> had;
  for (bool wait = false; had.size() < 2; wait = true) {
    const std::span<const ReadyExpert> ready = experts_->Take(wait).value();
    ASSERT_TRUE(!wait || !ready.empty());
    for (const ReadyExpert& one : ready) {
      EXPECT_EQ(std::holds_alternative<ReadyRows>(one.answer), one.expert == 1);
      had.insert(one.expert);
    }
  }
}

TEST_F(OffloadedPeersTest, AnAnswerThatComesWhileItsExpertIsLoadedIsUsed) {
  peers_.holds = {{0, 1}};
  Ask(0, {1});
  reader_->Hold(true);
  peers_.gone = {1};
  EXPECT_THAT(Take(false), IsEmpty());
  EXPECT_EQ(experts_->usage().loaded, 1u);
  peers_.answers = {1};
  EXPECT_THAT(TakeRows(true), ElementsAre(1));
  EXPECT_FALSE(peers_.waiting());
  EXPECT_EQ(experts_->usage().elsewhere, 1u);
  EXPECT_EQ(experts_->usage().loaded, 0u);
  // Its load has gone on, and hurts nobody.
  reader_->Hold(false);
  peers_.holds.clear();
  Ask(0, {1, 2});
  EXPECT_THAT(TakeAll(2), UnorderedElementsAre(1, 2));
}

TEST_F(OffloadedPeersTest, OnceItWasLoadedAnAnswerIsNotGivenToo) {
  peers_.holds = {{0, 1}};
  Ask(0, {1, 2});
  peers_.gone = {1};
  EXPECT_THAT(TakeAll(2), UnorderedElementsAre(1, 2));
  EXPECT_FALSE(peers_.waiting()) << "it was told that nobody waits";
}

TEST_F(OffloadedPeersTest, WhatTheDiskFailsAtAPeerComputes) {
  reader_->SetScript([](const ReadRequest&) { return FakeReader::Fault::kError; });
  peers_.in_place = {1};
  Ask(0, {1});
  peers_.on_wait = [&] { peers_.answers = {1}; };
  EXPECT_THAT(TakeRows(true), ElementsAre(1));
  EXPECT_EQ(experts_->usage().elsewhere, 1u);
  Ask(1, {1});
  EXPECT_FALSE(experts_->Take(true).ok()) << "nobody holds it";
}

TEST_F(OffloadedPeersTest, PassesOfMoreRowsThanPeersTakeGoToTheDisk) {
  peers_.most = 7;
  peers_.holds = {{0, 1}, {1, 1}};
  const ExpertDemand demand{.expert = 1, .tokens = 1};
  const std::uint32_t row = 0, first_row[] = {0, 0, 1, 1, 1};  // the row chose expert 1
  const auto ask = [&](std::uint32_t layer, std::size_t tokens) {
    experts_->Ask({.layer = layer,
                   .demands = {&demand, 1},
                   .input = {.tokens = tokens},
                   .rows = {&row, 1},
                   .first_row = first_row});
  };
  ask(0, 7);
  EXPECT_THAT(peers_.asked, ElementsAre(1));
  ask(0, 8);
  EXPECT_THAT(Take(true), ElementsAre(1));
  EXPECT_EQ(experts_->usage().loaded, 1u);
  reader_->SetScript([](const ReadRequest&) { return FakeReader::Fault::kError; });
  peers_.in_place = {1};
  ask(1, 8);
  EXPECT_FALSE(experts_->Take(true).ok()) << "not even where the disk has failed";
  EXPECT_THAT(peers_.asked, ElementsAre(1));
}

// A decision by layer and pass is one for each request: it has the rows of the request in it.
TEST_F(OffloadedPeersTest, RequestsInTurnOrTogetherGetTheDecisionThatIsRightForTheRowsOfEach) {
  // An expert takes the disk 12,289 s whatever its rows, and the peer 1,000 s a row.
  peers_.set_row_seconds(1000);
  peers_.holds = {{0, 0}, {0, 1}, {0, 2}, {0, 3}, {1, 1}, {1, 2}, {1, 3}};
  constexpr std::uint32_t kFew = 1, kMany = 40;
  const auto pass = [&](std::uint32_t layer, std::vector<RowGroupFacts> groups,
                        std::vector<ExpertDemand> demands) {
    peers_.asked.clear();
    PassFacts facts{.groups = std::move(groups)};
    experts_->OnPassBegins(facts);
    experts_->Ask({.layer = layer, .demands = demands, .input = {.tokens = facts.rows()}});
    peers_.on_wait = [&] { peers_.answers = peers_.asked; };
    for (std::size_t had = 0; had < demands.size();) had += experts_->Take(true).value().size();
    experts_->SettleUsage();
    return peers_.asked;
  };
  const RowGroupFacts chat{.request = 5, .rows = kFew};
  const RowGroupFacts prompt{.request = 6, .phase = Phase::kPrompt, .rows = kMany};
  for (const std::uint32_t layer : {0u, 1u}) {
    EXPECT_THAT(pass(layer, {chat}, {{.expert = 1, .tokens = kFew}}), ElementsAre(1));
    EXPECT_THAT(pass(layer, {prompt}, {{.expert = 2, .tokens = kMany}}), IsEmpty());
  }
  const ExpertUsage of_chat = experts_->TakeUsage(5), of_prompt = experts_->TakeUsage(6);
  EXPECT_EQ(of_chat.elsewhere, 2u);
  EXPECT_EQ(of_chat.loaded, 0u);
  EXPECT_EQ(of_prompt.elsewhere, 0u);
  EXPECT_EQ(of_prompt.loaded, 2u);
  // In one pass, too, where each wants an expert of its own.
  EXPECT_THAT(
      pass(0, {chat, prompt}, {{.expert = 3, .tokens = kFew}, {.expert = 0, .tokens = kMany}}),
      ElementsAre(3));
  // What both want is loaded for the one, and costs the other one nothing.
  EXPECT_THAT(pass(1, {chat, prompt}, {{.expert = 3, .tokens = kFew + kMany}}), IsEmpty());
  EXPECT_EQ(experts_->usage().loaded, 4u);
}

TEST_F(OffloadedPeersTest, WhatNeitherDiskNorPeerHasFailsThePass) {
  reader_->SetScript([](const ReadRequest&) { return FakeReader::Fault::kError; });
  peers_.in_place = {1};
  Ask(0, {1});
  peers_.on_wait = [&] { peers_.gone = {1}; };
  EXPECT_FALSE(experts_->Take(true).ok());
  EXPECT_THAT(peers_.asked, ElementsAre(1));
}

// Both lanes are measured in milliseconds: the disk takes as long as the test says.
TEST_F(OffloadedPeersTest, ADiskThatSlowsAfterManyLoadsIsNoticedAndPeersAreAsked) {
  Nanos read_takes = 1'000'000;
  peers_.set_latency(50e-3);
  reader_->SetScript([&](const ReadRequest&) {
    clock_.Advance(read_takes);
    return FakeReader::Fault::kNone;
  });
  const auto ask_some = [&](int layers) {
    const std::size_t before = peers_.asked.size();
    for (int i = 0; i < layers; ++i) {
      Ask(static_cast<std::uint32_t>(i % 2), {static_cast<std::uint32_t>(i / 2 % 4)});
      peers_.on_wait = [&] { peers_.answers = {peers_.asked.back()}; };
      while (experts_->Take(true).value().empty()) {
      }
    }
    return peers_.asked.size() - before;
  };
  ask_some(20);  // from here on the disk's own speed is what counts
  peers_.holds = {{0, 0}, {0, 1}, {0, 2}, {0, 3}, {1, 0}, {1, 1}, {1, 2}, {1, 3}};
  EXPECT_EQ(ask_some(2'000), 0u);
  read_takes = 500'000'000;
  EXPECT_GT(ask_some(200), 80u);
}

// What the peer says of itself is not how long it takes, as where its processor is busy.
TEST_F(OffloadedPeersTest, WhereSharingIsReallySlowerItRestsAndIsTriedAgainAndRestsForLonger) {
  constexpr Nanos kMs = 1'000'000, kRest = 30'000 * kMs;
  peers_.set_latency(1e-4);
  reader_->SetScript([&](const ReadRequest&) {
    clock_.Advance(kMs);
    return FakeReader::Fault::kNone;
  });
  const auto ask_some = [&](int layers) {
    const std::size_t before = peers_.asked.size();
    for (int i = 0; i < layers; ++i) {
      Ask(static_cast<std::uint32_t>(i % 2), {static_cast<std::uint32_t>(i / 2 % 4)});
      peers_.on_wait = [&] {
        clock_.Advance(100 * kMs);
        peers_.answers = {peers_.asked.back()};
      };
      while (experts_->Take(true).value().empty()) {
      }
    }
    return peers_.asked.size() - before;
  };
  const auto report = [&] { return experts_->report().distribution.at(0); };
  ask_some(20);  // from here on the disk's own speed is what counts
  peers_.holds = {{0, 0}, {0, 1}, {0, 2}, {0, 3}, {1, 0}, {1, 1}, {1, 2}, {1, 3}};
  EXPECT_GT(ask_some(400), 96u) << "the peer seems to be sooner";
  EXPECT_TRUE(report().rests);
  EXPECT_EQ(report().rests_begun, 1u);
  const std::uint64_t rested = report().rested;
  EXPECT_EQ(ask_some(100), 0u) << "it is not asked";
  EXPECT_EQ(report().rested, rested + 100);
  clock_.Advance(kRest);
  EXPECT_GT(ask_some(400), 96u) << "it is tried again";
  EXPECT_TRUE(report().rests);
  EXPECT_EQ(report().rests_begun, 2u);
  clock_.Advance(kRest);
  EXPECT_EQ(ask_some(20), 0u) << "twice as long";
  clock_.Advance(kRest);
  EXPECT_GT(ask_some(20), 0u);
}

TEST_F(OffloadedPeersTest, ALayerThatIsCutShortLetsItsPeersGo) {
  peers_.holds = {{0, 1}};
  Ask(0, {1});
  const int before = peers_.forgotten;
  Ask(1, {0});
  EXPECT_EQ(peers_.forgotten, before + 1);
  EXPECT_THAT(Take(true), ElementsAre(0));
}

}  // namespace
}  // namespace troupe
