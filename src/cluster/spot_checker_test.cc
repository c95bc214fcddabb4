// Answers of peers that are kept to be computed again, and what is found in them.
#include "cluster/spot_checker.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include "cluster/peer_calls_for_test.h"

namespace troupe {
namespace {

using testing::IsEmpty;

// Computes with the true weights; whether they are is for the test to say.
SpotChecker CheckerOf(TwoNodes& nodes, SpotChecker::IsWhole is_whole) {
  return SpotChecker(
      nodes.shape().width, nodes.config().moe.expert_ff,
      [&nodes](ExpertId id, const std::function<void(const Mlp&)>& use) {
        use(nodes.Expert(id));
        return OkStatus();
      },
      std::move(is_whole));
}

std::optional<bool> IsWhole(ExpertId, const Mlp&) { return true; }

TEST_F(PeerCallsTest, AnswersInAnyFormCanBeCheckedAndALieIsFound) {
  Open(1);
  nodes_->Hold(0, 1, experts_);
  SpotChecker checker = CheckerOf(*nodes_, IsWhole);
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
  nodes_->calls().Ask(asked.batch(), MissesOf(experts, 0));
  (void)TakeAllNews(nodes_->calls());
  SpotChecker checker = CheckerOf(*nodes_, IsWhole);
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
  SpotChecker checker = CheckerOf(*nodes_, [&is_whole](ExpertId, const Mlp&) { return is_whole; });
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

}  // namespace
}  // namespace troupe
