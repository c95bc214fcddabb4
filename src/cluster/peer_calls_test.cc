#include "cluster/peer_calls.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <mutex>
#include <set>
#include <thread>

#include "cluster/answer_rows.h"
#include "cluster/spot_checker.h"
#include "cluster/two_nodes_for_test.h"
#include "kernels/target.h"
#include "testing/test_seed.h"

namespace troupe {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

std::vector<AnsweredElsewhere> All(const std::vector<std::uint32_t>& experts, std::uint32_t place) {
  std::vector<AnsweredElsewhere> misses;
  for (const std::uint32_t expert : experts) misses.push_back({.expert = expert, .place = place});
  return misses;
}

struct Had {
  std::map<std::uint32_t, std::vector<float>> answered;
  std::vector<std::uint32_t> to_load;
};

// Until nothing is waited for.
Had TakeAllNews(PeerCalls& calls) {
  Had had;
  while (calls.waiting()) {
    const ExpertPeers::News news = calls.Take();
    for (const ExpertPeers::Rows& rows : news.answered) {
      had.answered[rows.expert] = {rows.values.begin(), rows.values.end()};
    }
    for (const std::uint32_t expert : news.to_load) {
      had.to_load.push_back(expert);
      calls.OnLoaded(expert);  // by a disk that is quick
    }
    if (calls.waiting()) calls.Wait(std::nullopt);
  }
  return had;
}

class PeerCallsTypes : public testing::TestWithParam<TensorType> {};

TEST_P(PeerCallsTypes, APeerAnswersWithTheBytesThatThisNodeWouldHaveComputed) {
  TwoNodes nodes(GetParam());
  Rng rng(TestSeed());
  for (const std::size_t rows : {1u, 3u, 40u}) {
    const std::uint32_t layer = static_cast<std::uint32_t>(rng.Below(nodes.config().layers));
    const AskedLayer asked(nodes.config(), layer, rows, rng);
    const std::vector<std::uint32_t> experts = asked.experts();
    for (const std::uint32_t expert : experts) {
      if (!nodes.held(0).Holds({layer, expert})) nodes.Hold(0, layer, {expert});
    }
    ASSERT_EQ(nodes.calls().Places().size(), 1u);
    nodes.calls().Ask(asked.batch(), All(experts, 0));
    const Had had = TakeAllNews(nodes.calls());
    EXPECT_THAT(had.to_load, IsEmpty());
    ASSERT_EQ(had.answered.size(), experts.size());
    for (const auto& [expert, values] : had.answered) {
      EXPECT_EQ(values, nodes.Alone(asked, expert)) << "expert " << expert;
    }
  }
  EXPECT_EQ(nodes.host(0).counters().calls, nodes.calls().counters().calls);
  EXPECT_GT(nodes.host(0).counters().rows, 0u);
}

// As where a machine with AVX-512 asks one with AVX2, and the other way round.
TEST_P(PeerCallsTypes, APeerOfAnotherInstructionSetAnswersWithTheSameBytes) {
  TwoNodes nodes(GetParam());
  Rng rng(TestSeed());
  const AskedLayer asked(nodes.config(), 1, 5, rng);
  const std::vector<std::uint32_t> experts = asked.experts();
  nodes.Hold(0, 1, experts);
  const std::vector<Target> targets = SupportedTargets();
  std::size_t pairs = 0;
  for (const Target theirs : targets) {
    for (const Target ours : targets) {
      SCOPED_TRACE(fmt::format("{} asks {}", Name(ours), Name(theirs)));
      ForceTarget(theirs);
      (void)nodes.calls().Places();
      nodes.calls().Ask(asked.batch(), All(experts, 0));
      const Had had = TakeAllNews(nodes.calls());
      ASSERT_EQ(had.answered.size(), experts.size());
      ForceTarget(ours);
      for (const auto& [expert, values] : had.answered) {
        EXPECT_EQ(values, nodes.Alone(asked, expert)) << "expert " << expert;
      }
      pairs += theirs != ours ? 1 : 0;
    }
  }
  ForceTarget(std::nullopt);
  EXPECT_EQ(pairs > 0, targets.size() > 1);
}

INSTANTIATE_TEST_SUITE_P(Types, PeerCallsTypes,
                         testing::Values(TensorType::kQ4_0, TensorType::kQ8_0, TensorType::kF16),
                         [](const auto& type) { return std::string(Name(type.param)); });

// What is asked for in fewer bits comes in them: the very rows of the exact answer, rounded.
TEST_P(PeerCallsTypes, AnswersInFewerBitsAreTheExactOnesRounded) {
  TwoNodes nodes(GetParam());
  Rng rng(TestSeed());
  std::size_t most_bytes = 0;
  for (const RowForm form : {RowForm::kFloat, RowForm::kBf16, RowForm::kInt8}) {
    SCOPED_TRACE(ToString(form));
    const AskedLayer asked(nodes.config(), 1, 7, rng);
    const std::vector<std::uint32_t> experts = asked.experts();
    for (const std::uint32_t expert : experts) {
      if (!nodes.held(0).Holds({1, expert})) nodes.Hold(0, 1, {expert});
    }
    std::size_t bytes = 0, rows = 0;
    nodes.on_answer = [&](LinkId link, const std::vector<std::byte>& frame) {
      bytes += frame.size();
      nodes.calls().OnFrame(link, frame);
      return OkStatus();
    };
    nodes.calls().OnAsked(asked.batch(), form);
    (void)nodes.calls().Places();
    nodes.calls().Ask(asked.batch(), All(experts, 0));
    while (nodes.calls().waiting()) {
      for (const ExpertPeers::Rows& answer : nodes.calls().Take().answered) {
        EXPECT_EQ(answer.form, form);
        std::vector<float> expected = nodes.Alone(asked, answer.expert);
        rows += expected.size() / nodes.shape().width;
        const std::vector<float> exact = expected;
        RoundAnswerRows(form, nodes.shape().width, expected);
        EXPECT_EQ(expected == exact, form == RowForm::kFloat);
        EXPECT_EQ(std::vector<float>(answer.values.begin(), answer.values.end()), expected);
      }
      if (nodes.calls().waiting()) nodes.calls().Wait(std::nullopt);
    }
    nodes.on_answer = nullptr;
    EXPECT_GE(rows, experts.size());
    EXPECT_GE(bytes, rows * WireRowBytes(form, nodes.shape().width));
    if (form == RowForm::kFloat) most_bytes = bytes / rows;
    const std::size_t tenths = form == RowForm::kFloat ? 10 : form == RowForm::kBf16 ? 6 : 4;
    EXPECT_LE(bytes / rows, most_bytes * tenths / 10);
  }
}

class PeerCallsTest : public testing::Test {
 protected:
  void Open(std::size_t hosts) {
    nodes_ = std::make_unique<TwoNodes>(TensorType::kQ4_0, hosts);
    layer_ = std::make_unique<AskedLayer>(nodes_->config(), 1, 6, rng_);
    experts_ = layer_->experts();
    ASSERT_GT(experts_.size(), 3u);
  }
  void Ask(std::uint32_t place = 0) {
    (void)nodes_->calls().Places();
    nodes_->calls().Ask(layer_->batch(), All(experts_, place));
  }
  void ExpectBytes(const Had& had) {
    for (const auto& [expert, values] : had.answered) {
      EXPECT_EQ(values, nodes_->Alone(*layer_, expert)) << "expert " << expert;
    }
    EXPECT_EQ(had.answered.size() + had.to_load.size(), experts_.size());
  }

  SpotChecker CheckerOfTrueWeights() {
    return SpotChecker(
        nodes_->shape().width, nodes_->config().moe.expert_ff,
        [this](ExpertId id, const std::function<void(const Mlp&)>& use) {
          use(nodes_->Expert(id));
          return OkStatus();
        },
        [](ExpertId, const Mlp&) { return std::optional<bool>(true); });
  }

  Rng rng_{TestSeed()};
  std::unique_ptr<TwoNodes> nodes_;
  std::unique_ptr<AskedLayer> layer_;
  std::vector<std::uint32_t> experts_;
};

TEST_F(PeerCallsTest, HoldersAreThoseThatSayThatTheyHoldIt) {
  Open(2);
  nodes_->Hold(1, 1, {2});
  (void)nodes_->calls().Places();
  EXPECT_THAT(nodes_->calls().HoldersOf({1, 2}), ElementsAre(1));
  EXPECT_THAT(nodes_->calls().HoldersOf({1, 3}), IsEmpty());
  nodes_->directory().OnGone(2);
  (void)nodes_->calls().Places();
  EXPECT_THAT(nodes_->calls().HoldersOf({1, 2}), IsEmpty());
}

TEST_F(PeerCallsTest, WhatAPeerDoesNotHoldAnyMoreIsLoaded) {
  Open(1);
  nodes_->Hold(0, 1, experts_);
  (void)nodes_->calls().Places();
  nodes_->held(0).Remove({1, experts_[1]});
  nodes_->calls().Ask(layer_->batch(), All(experts_, 0));
  const Had had = TakeAllNews(nodes_->calls());
  EXPECT_EQ(had.to_load.size(), experts_.size());
  EXPECT_EQ(nodes_->host(0).counters().not_held, 1u);
  EXPECT_EQ(nodes_->calls().counters().refused, 1u);
}

TEST_F(PeerCallsTest, ASilentPeerIsGivenUpAndTheNextHolderAsked) {
  Open(2);
  nodes_->Hold(0, 1, experts_);
  nodes_->Hold(1, 1, experts_);
  std::vector<PeerMessageKind> silent;  // what it was told
  nodes_->on_ask = [&](LinkId link, const std::vector<std::byte>& frame) {
    if (link == 1) silent.push_back(KindOfFrame(frame).value());
    if (link == 2) nodes_->Deliver(link, frame);
    return OkStatus();
  };
  Ask(0);
  const Had had = TakeAllNews(nodes_->calls());
  EXPECT_THAT(had.to_load, IsEmpty());
  ExpectBytes(had);
  EXPECT_EQ(nodes_->calls().counters().hedges, 1u);
  (void)nodes_->calls().Take();
  EXPECT_THAT(silent, ElementsAre(PeerMessageKind::kAsk, PeerMessageKind::kCancel));
  EXPECT_EQ(nodes_->calls().counters().cancelled, 1u);
  // It has become expensive: the next time the planner prefers the other one.
  const std::span<const Place> places = nodes_->calls().Places();
  EXPECT_GT(places[0].queued_seconds, places[1].queued_seconds);
}

TEST_F(PeerCallsTest, APeerThatGoesInTheMiddleLeavesTheRestToTheDisk) {
  Open(1);
  nodes_->Hold(0, 1, experts_);
  nodes_->on_ask = [](LinkId, const std::vector<std::byte>&) { return OkStatus(); };
  Ask();
  std::thread gone([&] { nodes_->calls().OnGone(*nodes_->directory().OnGone(1)); });
  const Had had = TakeAllNews(nodes_->calls());
  gone.join();
  EXPECT_EQ(had.to_load.size(), experts_.size());
  EXPECT_EQ(nodes_->calls().counters().lost, 1u);
}

TEST_F(PeerCallsTest, AnAnswerThatComesWhileTheDiskIsReadIsUsed) {
  Open(1);
  nodes_->Hold(0, 1, experts_);
  std::vector<std::byte> kept;
  nodes_->on_ask = [&](LinkId, const std::vector<std::byte>& frame) {
    kept = frame;
    return OkStatus();
  };
  Ask();
  std::vector<std::uint32_t> to_load;
  while (to_load.empty()) {
    const ExpertPeers::News news = nodes_->calls().Take();
    to_load.assign(news.to_load.begin(), news.to_load.end());
    if (to_load.empty()) nodes_->calls().Wait(std::nullopt);
  }
  EXPECT_EQ(to_load.size(), experts_.size());
  nodes_->on_ask = nullptr;
  nodes_->Deliver(1, kept);
  Had had;
  while (nodes_->calls().waiting()) {
    nodes_->calls().Wait(std::nullopt);
    for (const ExpertPeers::Rows& rows : nodes_->calls().Take().answered) {
      had.answered[rows.expert] = {rows.values.begin(), rows.values.end()};
    }
  }
  ExpectBytes(had);
  EXPECT_EQ(nodes_->calls().counters().overtook, experts_.size());
  EXPECT_EQ(nodes_->calls().counters().unused, 0u);
}

TEST_F(PeerCallsTest, WhatTheDiskFailsAtIsAskedOfAHolderOnceALayer) {
  Open(1);
  nodes_->Hold(0, 1, {experts_[0]});
  (void)nodes_->calls().Places();
  EXPECT_FALSE(nodes_->calls().AskInPlaceOfDisk(layer_->batch(), experts_[1])) << "nobody holds it";
  ASSERT_TRUE(nodes_->calls().AskInPlaceOfDisk(layer_->batch(), experts_[0]));
  EXPECT_FALSE(nodes_->calls().AskInPlaceOfDisk(layer_->batch(), experts_[0]));
  const Had had = TakeAllNews(nodes_->calls());
  ASSERT_EQ(had.answered.size(), 1u);
  EXPECT_EQ(had.answered.at(experts_[0]), nodes_->Alone(*layer_, experts_[0]));
  EXPECT_EQ(nodes_->calls().counters().failed_loads, 1u);
  nodes_->calls().Forget();
  EXPECT_TRUE(nodes_->calls().AskInPlaceOfDisk(layer_->batch(), experts_[0])) << "another layer";
  (void)TakeAllNews(nodes_->calls());
}

TEST_F(PeerCallsTest, ALinkThatTakesNothingCountsAsARefusal) {
  Open(1);
  nodes_->Hold(0, 1, experts_);
  nodes_->on_ask = [](LinkId, const std::vector<std::byte>&) {
    return Error(Code::kUnavailable, "gone");
  };
  Ask();
  EXPECT_EQ(TakeAllNews(nodes_->calls()).to_load.size(), experts_.size());
}

TEST_F(PeerCallsTest, AnAnswerOfAnotherShapeIsNotUsed) {
  Open(1);
  nodes_->Hold(0, 1, experts_);
  nodes_->on_ask = [this](LinkId link, const std::vector<std::byte>& frame) {
    const PeerAsk ask = DecodePeerAsk(frame).value();
    const std::vector<float> row(nodes_->shape().width);
    PeerAnswer answer{
        .call = ask.call,
        .last = true,
        .experts = {{.expert = ask.experts[0].expert,
                     .rows = static_cast<std::uint16_t>(ask.experts[0].rows.size() + 1)}},
        .rows = {.width = nodes_->shape().width}};
    std::vector<float> rows((ask.experts[0].rows.size() + 1) * row.size());
    answer.rows.count = ask.experts[0].rows.size() + 1;
    answer.rows.bytes = std::as_bytes(std::span(rows));
    nodes_->calls().OnFrame(link, Encode(answer));
    return OkStatus();
  };
  Ask();
  EXPECT_EQ(TakeAllNews(nodes_->calls()).to_load.size(), experts_.size());
}

// One that rounds unasked would make an exact answer inexact, and nobody would count it.
TEST_F(PeerCallsTest, AnAnswerInAnotherFormThanWasAskedForIsNotUsed) {
  Open(1);
  nodes_->Hold(0, 1, experts_);
  nodes_->on_ask = [this](LinkId link, const std::vector<std::byte>& frame) {
    PeerAsk ask = DecodePeerAsk(frame).value();
    ask.answer = RowForm::kBf16;
    nodes_->Deliver(link, Encode(ask));
    return OkStatus();
  };
  Ask();
  const Had had = TakeAllNews(nodes_->calls());
  EXPECT_THAT(had.answered, IsEmpty());
  EXPECT_EQ(had.to_load.size(), experts_.size());
}

TEST_F(PeerCallsTest, APlaceIsPricedByTheBytesOfTheFormThatIsAskedFor) {
  Open(1);
  nodes_->Hold(0, 1, experts_);
  for (int i = 0; i < 50; ++i) {
    nodes_->calls().OnAsked(layer_->batch(), RowForm::kFloat);
    Ask();
    (void)TakeAllNews(nodes_->calls());
  }
  const double byte_seconds = nodes_->calls().Links().at(0).byte_seconds;
  const auto row_seconds = [&](RowForm form) {
    nodes_->calls().OnAsked(layer_->batch(), form);
    return nodes_->calls().Places()[0].row_seconds;
  };
  const double saved = row_seconds(RowForm::kFloat) - row_seconds(RowForm::kInt8);
  const std::size_t bytes = WireRowBytes(RowForm::kFloat, nodes_->shape().width) -
                            WireRowBytes(RowForm::kInt8, nodes_->shape().width);
  EXPECT_NEAR(saved, byte_seconds * static_cast<double>(bytes), 0.2 * saved + 1e-9);
}

TEST_F(PeerCallsTest, AnAnswerFromAnotherLinkIsNotUsed) {
  Open(2);
  nodes_->Hold(0, 1, experts_);
  nodes_->on_answer = [this](LinkId, const std::vector<std::byte>& frame) {
    nodes_->calls().OnFrame(2, frame);  // as if the other peer had said it
    return OkStatus();
  };
  Ask();
  const Had had = TakeAllNews(nodes_->calls());
  EXPECT_THAT(had.answered, IsEmpty());
  EXPECT_EQ(had.to_load.size(), experts_.size());
}

TEST_F(PeerCallsTest, LateAnswersOfALayerThatIsOverAreNotTakenForThoseOfTheNext) {
  Open(1);
  nodes_->Hold(0, 1, experts_);
  std::vector<std::vector<std::byte>> kept;
  nodes_->on_answer = [&](LinkId, std::vector<std::byte> frame) {
    kept.push_back(std::move(frame));
    return OkStatus();
  };
  Ask();
  while (nodes_->host(0).counters().calls < 1) std::this_thread::yield();
  nodes_->calls().Forget();
  nodes_->on_answer = nullptr;
  const AskedLayer next(nodes_->config(), 1, 6, rng_);
  (void)nodes_->calls().Places();
  std::vector<std::uint32_t> held;
  for (const std::uint32_t expert : next.experts()) {
    if (nodes_->held(0).Holds({1, expert})) held.push_back(expert);
  }
  nodes_->calls().Ask(next.batch(), All(held, 0));
  for (const auto& frame : kept) nodes_->calls().OnFrame(1, frame);
  const Had had = TakeAllNews(nodes_->calls());
  for (const auto& [expert, values] : had.answered) EXPECT_EQ(values, nodes_->Alone(next, expert));
  EXPECT_EQ(had.answered.size(), held.size());
}

TEST_F(PeerCallsTest, AHostThatIsAskedTooMuchRefusesAtOnce) {
  Open(1);
  nodes_->Hold(0, 1, experts_);
  std::vector<std::vector<std::byte>> asks;
  nodes_->on_ask = [&](LinkId, std::vector<std::byte> frame) {
    asks.push_back(std::move(frame));
    return OkStatus();
  };
  Ask();
  nodes_->on_answer = [](LinkId, const std::vector<std::byte>&) { return OkStatus(); };
  for (int i = 0; i < 2000; ++i) nodes_->Deliver(1, asks[0]);
  while (nodes_->host(0).waiting() > 0) std::this_thread::yield();
  EXPECT_GT(nodes_->host(0).counters().busy, 0u);
  nodes_->calls().Forget();
}

TEST_F(PeerCallsTest, AHostDoesNotBeginWhatItsAskerHasGivenUp) {
  Open(1);
  nodes_->Hold(0, 1, experts_);
  std::vector<std::byte> sent;
  nodes_->on_ask = [&](LinkId, const std::vector<std::byte>& frame) {
    if (sent.empty()) sent = frame;
    return OkStatus();
  };
  Ask();
  PeerAsk ask = DecodePeerAsk(sent).value();
  ask.deadline_micros = 1;
  const std::vector<std::byte> hasty = Encode(ask);
  nodes_->on_answer = [](LinkId, const std::vector<std::byte>&) { return OkStatus(); };
  while (nodes_->host(0).counters().expired < 1) {
    nodes_->Deliver(1, hasty);
    std::this_thread::yield();
  }
  nodes_->calls().Forget();
}

// What a host answers to one long call whose parts are an expert each, where another link asks, or
// the first one cancels, while the first part is computed: links by message.
class PeerHostParts : public PeerCallsTest {
 protected:
  std::vector<LinkId> LinksOfAnswers(bool cancels) {
    nodes_ = std::make_unique<TwoNodes>(TensorType::kQ4_0, 1, /*most_of_one_message=*/1);
    layer_ = std::make_unique<AskedLayer>(nodes_->config(), 1, 6, rng_);
    experts_ = layer_->experts();
    nodes_->Hold(0, 1, experts_);
    std::vector<std::byte> sent;
    nodes_->on_ask = [&](LinkId, std::vector<std::byte> frame) {
      sent = std::move(frame);
      return OkStatus();
    };
    Ask();
    const PeerAsk ask = DecodePeerAsk(sent).value();
    std::mutex mu;
    std::vector<LinkId> links;
    nodes_->on_answer = [&](LinkId link, const std::vector<std::byte>&) {
      const std::lock_guard lock(mu);
      links.push_back(link);
      if (links.size() > 1) return OkStatus();
      cancels ? nodes_->host(0).OnCancel(1, ask.call) : nodes_->host(0).OnAsk(2, sent);
      return OkStatus();
    };
    nodes_->host(0).OnAsk(1, sent);
    const auto is_over = [&] {
      const std::lock_guard lock(mu);
      return cancels ? nodes_->host(0).counters().cancelled == 1
                     : links.size() == 2 * experts_.size();
    };
    while (!is_over()) std::this_thread::yield();
    nodes_->calls().Forget();
    const std::lock_guard lock(mu);
    return links;
  }
};

TEST_F(PeerHostParts, OthersAreAnsweredBetweenThePartsOfALongCall) {
  const std::vector<LinkId> links = LinksOfAnswers(/*cancels=*/false);
  ASSERT_GT(links.size(), 6u);
  EXPECT_EQ(links[0], 1u);
  EXPECT_EQ(links[1], 2u);
  EXPECT_EQ(std::ranges::count(links, 1u), std::ranges::count(links, 2u));
}

TEST_F(PeerHostParts, NoFurtherPartOfACallIsComputedOnceItIsCancelled) {
  EXPECT_EQ(LinksOfAnswers(/*cancels=*/true), std::vector<LinkId>{1});
}

TEST_F(PeerCallsTest, AnswersInAnyFormCanBeCheckedAndALieIsFound) {
  Open(1);
  nodes_->Hold(0, 1, experts_);
  SpotChecker checker = CheckerOfTrueWeights();
  for (const RowForm form : {RowForm::kFloat, RowForm::kBf16, RowForm::kInt8}) {
    nodes_->calls().OnAsked(layer_->batch(), form);
    Ask();
    (void)TakeAllNews(nodes_->calls());
    std::vector<SpotCheck> checks = nodes_->calls().TakeChecks();
    ASSERT_GT(checks.size(), 1u);
    for (const SpotCheck& check : checks)
      EXPECT_EQ(checker.Check(check).value().found, SpotResult::Found::kTrue);
    checks[0].answer.back() += 1e-6f;
    EXPECT_EQ(checker.Check(checks[0]).value().found, SpotResult::Found::kPeerWrong)
        << ToString(form);
    EXPECT_THAT(nodes_->calls().TakeChecks(), IsEmpty());
  }
}

TEST_F(PeerCallsTest, APeerThatLiesFromTheNinthRowOnIsFound) {
  Open(1);
  const AskedLayer asked(nodes_->config(), 1, 100, rng_);  // about 33 rows an expert
  const std::vector<std::uint32_t> experts = asked.experts();
  for (const std::uint32_t expert : experts) {
    if (!nodes_->held(0).Holds({1, expert})) nodes_->Hold(0, 1, {expert});
  }
  nodes_->on_answer = [&](LinkId link, std::vector<std::byte> frame) {
    const PeerAnswer answer = DecodePeerAnswer(frame).value();
    std::size_t row = static_cast<std::size_t>(answer.rows.bytes.data() - frame.data());
    for (const ExpertRows& got : answer.experts) {
      for (std::size_t i = 0; i < got.rows; ++i, row += answer.rows.row_bytes()) {
        if (i >= 8) frame[row] ^= std::byte{1};
      }
    }
    nodes_->calls().OnFrame(link, std::move(frame));
    return OkStatus();
  };
  (void)nodes_->calls().Places();
  nodes_->calls().Ask(asked.batch(), All(experts, 0));
  (void)TakeAllNews(nodes_->calls());
  SpotChecker checker = CheckerOfTrueWeights();
  const std::vector<SpotCheck> checks = nodes_->calls().TakeChecks();
  ASSERT_EQ(checks.size(), experts.size());
  for (const SpotCheck& check : checks) {
    ASSERT_GT(check.rows, 8u);
    EXPECT_EQ(checker.Check(check).value().found, SpotResult::Found::kPeerWrong);
  }
  EXPECT_EQ(nodes_->calls().rows_not_checked(), 0u);
}

TEST_F(PeerCallsTest, WhoseOwnWeightsAreWrongOrNotKnownSaysThatOfNoPeer) {
  Open(1);
  nodes_->Hold(0, 1, experts_);
  std::optional<bool> is_whole;
  SpotChecker checker(
      nodes_->shape().width, nodes_->config().moe.expert_ff,
      [this](ExpertId id, const std::function<void(const Mlp&)>& use) {
        use(nodes_->Expert(id));
        return OkStatus();
      },
      [&is_whole](ExpertId, const Mlp&) { return is_whole; });
  nodes_->calls().OnAsked(layer_->batch(), RowForm::kFloat);
  Ask();
  (void)TakeAllNews(nodes_->calls());
  SpotCheck check = nodes_->calls().TakeChecks().at(0);
  const std::vector<float> truth = check.answer;
  check.answer.front() += 1e-6f;
  EXPECT_EQ(checker.Check(check).value().found, SpotResult::Found::kUnproven);
  is_whole = false;
  EXPECT_EQ(checker.Check(check).value().found, SpotResult::Found::kOwnWrong);
  is_whole = true;
  EXPECT_EQ(checker.Check(check).value(), (SpotResult{SpotResult::Found::kPeerWrong, truth}));
}

TEST_F(PeerCallsTest, CountsWhatTheOwnUsersActivate) {
  Open(1);
  const ExpertDemand demands[] = {{.expert = 2, .tokens = 5}};
  ExpertBatch batch = layer_->batch();
  batch.demands = demands;
  nodes_->calls().OnAsked(batch, RowForm::kFloat);
  EXPECT_EQ(nodes_->calls().TakeActivity()[nodes_->shape().grid.Index({1, 2})], 5u);
}

TEST_F(PeerCallsTest, ADamagedAskIsCountedAndNotAnswered) {
  Open(1);
  nodes_->Deliver(1, std::vector<std::byte>(5));
  EXPECT_EQ(nodes_->host(0).counters().bad, 1u);
}

}  // namespace
}  // namespace troupe
