// Peers answer with the very bytes that the asking node would have computed: in every type, on
// every instruction set, and rounded where fewer bits were asked for.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <string>
#include <thread>
#include <vector>

#include "cluster/answer_rows.h"
#include "cluster/peer_calls_for_test.h"
#include "kernels/target_testing.h"

namespace troupe {
namespace {

using testing::IsEmpty;

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
    nodes.calls().Ask(asked.batch(), MissesOf(experts, 0));
    const TakenNews had = TakeAllNews(nodes.calls());
    EXPECT_THAT(had.to_load, IsEmpty());
    ASSERT_EQ(had.answered.size(), experts.size());
    for (const auto& [expert, values] : had.answered) {
      EXPECT_EQ(values, nodes.Alone(asked, expert)) << "expert " << expert;
    }
  }
  // The host counts what it has sent.
  const std::uint64_t calls = nodes.calls().counters().calls;
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (nodes.host(0).counters().calls < calls && std::chrono::steady_clock::now() < end) {
    std::this_thread::yield();
  }
  EXPECT_EQ(nodes.host(0).counters().calls, calls);
  EXPECT_GT(nodes.host(0).counters().rows, 0u);
}

// As where a machine with AVX-512 asks one with AVX2, and the other way round.
TEST_P(PeerCallsTypes, APeerOfAnotherInstructionSetAnswersWithTheSameBytes) {
  TwoNodes nodes(GetParam());
  Rng rng(TestSeed());
  const AskedLayer asked(nodes.config(), 1, 5, rng);
  const std::vector<std::uint32_t> experts = asked.experts();
  nodes.Hold(0, 1, experts);
  std::vector<TakenNews> answers;  // of a peer of each
  ForEachTarget([&] {
    (void)nodes.calls().Places();
    nodes.calls().Ask(asked.batch(), MissesOf(experts, 0));
    answers.push_back(TakeAllNews(nodes.calls()));
    ASSERT_EQ(answers.back().answered.size(), experts.size());
  });
  ASSERT_EQ(answers.size(), SupportedTargets().size());
  ForEachTarget([&] {
    for (const TakenNews& had : answers) {
      for (const auto& [expert, values] : had.answered) {
        EXPECT_EQ(values, nodes.Alone(asked, expert)) << "expert " << expert;
      }
    }
  });
}

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
    nodes.calls().Ask(asked.batch(), MissesOf(experts, 0));
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

INSTANTIATE_TEST_SUITE_P(Types, PeerCallsTypes,
                         testing::Values(TensorType::kQ4_0, TensorType::kQ8_0, TensorType::kF16),
                         [](const auto& type) { return std::string(Name(type.param)); });

}  // namespace
}  // namespace troupe
