// Substitution in replays: chains are asked with what a cache holds, and only what they leave is
// asked for; the policies that want scores get them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "sim/replay/replay_for_test.h"
#include "sim/replay/trace_buddies.h"
#include "testing/test_seed.h"
#include "trace/trace_for_test.h"

namespace troupe {
namespace {

using testing::HasSubstr;

// Choices are those of the best scores, as a router's are.
TraceBlock RoutedBlock(const TraceHeader& header, std::vector<TraceSegment> segments, Rng& rng) {
  TraceBlock block = RandomBlock(header, std::move(segments), rng);
  for (std::size_t row = 0; row < header.moe_layers.size() * block.tokens; ++row) {
    const auto scores = std::span(block.all_scores).subspan(row * header.experts, header.experts);
    // Some experts are liked more than others, and no two scores are the same.
    for (std::uint32_t e = 0; e < header.experts; ++e) {
      scores[e] = scores[e] / static_cast<float>(1 + e / 3) + static_cast<float>(e) / 65536;
    }
    std::vector<std::uint16_t> best(header.experts);
    for (std::uint16_t e = 0; e < header.experts; ++e) best[e] = e;
    std::ranges::sort(best, std::greater(), [&](std::uint16_t e) { return scores[e]; });
    for (std::uint32_t k = 0; k < header.top_k; ++k) {
      block.ids[row * header.top_k + k] = best[k];
      block.scores[row * header.top_k + k] = scores[best[k]];
    }
  }
  return block;
}

class ReplaySubstitution : public ReplayedTrace {
 protected:
  void SetUp() override {
    Rng rng(TestSeed());
    Write(header_, RoutedBlock(header_, {{.tokens = 300}}, rng));
  }
  ReplayResult Substituted(const std::string& spec, std::uint32_t slots = 15,
                           const ReplayOptions& options = {.group = 1}) {
    return RunOne({.slots = slots, .substitution = spec}, options);
  }
  static std::uint64_t Count(const ReplayResult& result, std::string_view name) {
    for (const NamedCount& count : result.substitution.links.front().counts) {
      if (count.name == name) return count.count;
    }
    ADD_FAILURE() << name;
    return 0;
  }

  const TraceHeader header_ = TestTraceHeader(true, /*all_scores=*/true);
};

TEST_F(ReplaySubstitution, DroppingWhatIsMissingLoadsNothing) {
  const ReplayResult result = Substituted("drop");
  EXPECT_EQ(result.loads, 0u);
  EXPECT_EQ(result.all.asks, 0u);
  EXPECT_EQ(result.substitution.counts.dropped, 300u * 9);
  EXPECT_DOUBLE_EQ(result.substitution.ReplacedShare(), 1);
}

TEST_F(ReplaySubstitution, AChainThatChangesNothingReplaysAsTheExactOne) {
  const ReplayResult exact = Substituted("exact");
  for (const char* idle : {"smoe:alpha=0", "drop:most-share=0"}) {
    const ReplayResult result = Substituted(idle);
    EXPECT_EQ(result.cache, exact.cache) << idle;
    EXPECT_DOUBLE_EQ(result.substitution.ReplacedShare(), 0) << idle;
    EXPECT_GT(result.substitution.counts.missing, 0u) << idle;
  }
}

TEST_F(ReplaySubstitution, SmoeLoadsLessTheWiderItsWindowAndNeverMoreThanItsAnswersSay) {
  std::uint64_t before = Substituted("exact").loads;
  for (const char* alpha : {"0.1", "0.3", "0.6"}) {
    const ReplayResult result = Substituted(std::string("smoe:alpha=") + alpha);
    EXPECT_LT(result.loads, before) << alpha;
    EXPECT_EQ(result.loads, result.substitution.counts.loads_after) << alpha;
    EXPECT_EQ(Count(result, "unknown"), 0u);
    EXPECT_EQ(Count(result, "substituted"), result.substitution.counts.substituted);
    EXPECT_GT(result.substitution.counts.substituted, 0u);
    before = result.loads;
  }
}

TEST_F(ReplaySubstitution, WithoutScoresOfAllExpertsSmoeKeepsEverythingAndSaysSo) {
  TraceHeader header = TestTraceHeader(true, /*all_scores=*/false);
  Rng rng(TestSeed());
  Write(header, RandomBlock(header, {{.tokens = 50}}, rng));
  const ReplayResult result = Substituted("smoe:alpha=0.5");
  EXPECT_EQ(Count(result, "unknown"), 50u * 3);
  EXPECT_EQ(result.cache, Substituted("exact").cache);
}

TEST_F(ReplaySubstitution, PassesOfMoreTokensThanAllowedAreExact) {
  for (const std::uint32_t group : {0u, 10u, kMostRoutedTokens + 1}) {
    const ReplayResult many = Substituted("drop", 15, {.group = group, .substitution_tokens = 9});
    EXPECT_EQ(many.cache, Substituted("exact", 15, {.group = group}).cache) << group;
    EXPECT_GT(many.loads, 0u);
  }
  EXPECT_EQ(Substituted("drop", 15, {.group = 10, .substitution_tokens = 10}).loads, 0u);
}

TEST_F(ReplaySubstitution, ThePolicyLearnsByTheRoutersChoiceAndNotByTheAnswers) {
  const TraceHeader header{.model = "m", .layers = 1, .moe_layers = {0}, .experts = 4, .top_k = 2};
  Write(header, {.domains = {""},
                 .segments = {{.tokens = 5}},
                 .tokens = 5,
                 .ids = {0, 1, 0, 1, 1, 3, 2, 3, 1, 3}});
  const ReplayResult result =
      RunOne({.policy = "lfu", .slots = 2, .per_layer = false, .substitution = "top:keep=1"});
  // Needed are 0, 0, 1, 2, 1. When 2 comes, 0 was chosen twice and 1 three times, though needed
  // once: 0 goes, and 1 is there again.
  EXPECT_EQ(result.loads, 3u);
  EXPECT_EQ(result.all.hits, 2u);
  EXPECT_EQ(result.all.asks, 5u);
}

TEST_F(ReplaySubstitution, BuddiesOfOneTraceServeAnotherAndLoadLess) {
  TraceReader reader = Open();
  ReplayOptions options{.group = 1, .skip = 100};
  options.material.buddies = LearnBuddies(reader, 100).value();
  ASSERT_TRUE(Validate(*options.material.buddies).ok());
  const ReplayResult exact = Substituted("exact", 15, options);
  const ReplayResult result = Substituted("buddies:tau=-1", 15, options);
  EXPECT_EQ(exact.all.tokens, 200u);
  EXPECT_EQ(result.substitution.counts.tokens, 200u * 3);
  EXPECT_LT(result.loads, exact.loads);
  EXPECT_GT(Count(result, "substituted"), 0u);
}

TEST_F(ReplaySubstitution, BuddiesAreWhatIsChosenTogetherAndEarlyTokensCountLess) {
  const TraceHeader header{.model = "m", .layers = 2, .moe_layers = {1}, .experts = 4, .top_k = 2};
  Write(header,
        {.domains = {""}, .segments = {{.tokens = 3}}, .tokens = 3, .ids = {0, 1, 0, 2, 0, 2}});
  TraceReader reader = Open();
  const auto lists = LearnBuddies(reader, 3).value();
  const auto of_first = lists->Of({1, 0});
  ASSERT_EQ(of_first.size(), 2u);
  EXPECT_EQ(of_first[0].expert, 2u);
  EXPECT_GT(of_first[0].share, 2.0 / 3);
  EXPECT_TRUE(lists->Of({1, 3}).empty());
  reader.Rewind();
  EXPECT_EQ(LearnBuddies(reader, 1).value()->Of({1, 0}).size(), 1u);  // of the first token alone
  EXPECT_THAT(LearnBuddies(reader, 0).status().message(), HasSubstr("no tokens"));
}

TEST_F(ReplaySubstitution, WhatHasNoMeaningIsRefused) {
  TraceReader reader = Open();
  ThreadPool pool(1);
  const auto error = [&](const ReplaySpec& spec) {
    return Replay(reader, {spec}, {.group = 1}, pool).status().message();
  };
  EXPECT_THAT(error({.policy = "optimum", .slots = 9, .substitution = "drop"}),
              HasSubstr("'drop'"));
  EXPECT_THAT(error({.slots = 9, .substitution = "buddies"}), HasSubstr("buddy lists"));
  EXPECT_THAT(error({.slots = 9, .substitution = "guess"}), HasSubstr("'guess'"));
  EXPECT_THAT(error({.slots = 9, .substitution = "low-bit"}), HasSubstr("fewer bits"));
}

}  // namespace
}  // namespace troupe
