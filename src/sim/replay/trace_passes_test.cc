#include "sim/replay/trace_passes.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <span>

#include "testing/temp_folder.h"
#include "trace/trace_for_test.h"
#include "trace/trace_writer.h"

namespace troupe {
namespace {

class TracePassesTest : public testing::Test {
 protected:
  // Prompts of 5 and 3 tokens with generated ones after each, in chunks that cut the passes.
  void SetUp() override {
    Rng rng(4);
    block_ =
        RandomBlock(header_,
                    {{.sequence = 0, .tokens = 5},
                     {.sequence = 0, .position = 5, .tokens = 1, .phase = TracePhase::kDecode},
                     {.sequence = 0, .position = 6, .tokens = 1, .phase = TracePhase::kDecode},
                     {.sequence = 1, .tokens = 3},
                     {.sequence = 2, .tokens = 2, .joins = true},
                     {.sequence = 1, .position = 3, .tokens = 1, .phase = TracePhase::kDecode}},
                    rng);
    Write(block_);
  }
  void Write(const TraceBlock& block) {
    TraceWriter writer =
        TraceWriter::Create(WholeFile(folder_.PathOf("t")).value(), header_, {.chunk_tokens = 4})
            .value();
    ASSERT_TRUE(writer.Append(block).ok() && writer.Finish().ok());
  }

  std::vector<ReplayPass> Passes(std::uint32_t group) {
    TraceReader reader = TraceReader::Open(folder_.PathOf("t")).value();
    TracePasses source(reader, group);
    std::vector<ReplayPass> passes;
    for (ReplayPass pass; source.Next(pass).value();) passes.push_back(pass);
    return passes;
  }

  // What tokens [first, first + count) ask of a layer.
  std::vector<ExpertDemand> Demands(std::size_t layer, std::uint32_t first, std::uint32_t count) {
    std::vector<std::uint32_t> counts(header_.experts);
    for (std::uint32_t t = first; t < first + count; ++t) {
      for (const std::uint16_t id : block_.Ids(header_, layer, t)) ++counts[id];
    }
    std::vector<ExpertDemand> demands;
    for (std::uint32_t e = 0; e < header_.experts; ++e) {
      if (counts[e] > 0) demands.push_back({.expert = e, .tokens = counts[e]});
    }
    return demands;
  }

  void Expect(const std::vector<ReplayPass>& passes, const std::vector<std::uint32_t>& tokens) {
    ASSERT_EQ(passes.size(), tokens.size());
    std::uint32_t first = 0;
    for (std::size_t p = 0; p < passes.size(); ++p) {
      EXPECT_EQ(passes[p].tokens, tokens[p]) << p;
      for (std::size_t l = 0; l < 3; ++l) {
        EXPECT_EQ(passes[p].demands[l], Demands(l, first, tokens[p])) << p << ", layer " << l;
      }
      first += tokens[p];
    }
  }

  const TraceHeader header_ = TestTraceHeader();
  TempFolder folder_;
  TraceBlock block_;
};

TEST_F(TracePassesTest, AreThoseThatWereRecordedWhereverChunksEnd) {
  const auto passes = Passes(0);
  Expect(passes, {5, 1, 1, 5, 1});
  EXPECT_EQ(passes[0].phase, TracePhase::kPrefill);
  EXPECT_EQ(passes[1].phase, TracePhase::kDecode);
}

TEST_F(TracePassesTest, OneByOneEveryTokenIsAPass) {
  Expect(Passes(1), std::vector<std::uint32_t>(13, 1));
}

TEST_F(TracePassesTest, GroupedTheyEndWithTheirSequence) { Expect(Passes(4), {4, 3, 3, 2, 1}); }

TEST_F(TracePassesTest, APassThatLostItsEndIsNotMixedWithTheNext) {
  std::string bytes = folder_.Read("t");
  // The second chunk: tokens 4 to 7, the end of the first pass and the beginning of the fourth.
  const std::size_t second = bytes.find("TRPCHUNK", bytes.find("TRPCHUNK") + 1);
  bytes[second + 60] ^= 1;
  folder_.Write("t", bytes);
  std::vector<std::uint32_t> tokens;
  for (const ReplayPass& pass : Passes(0)) tokens.push_back(pass.tokens);
  EXPECT_EQ(tokens, (std::vector<std::uint32_t>{4, 4, 1}));
}

TEST_F(TracePassesTest, RoutesAreThoseOfThePassTokenByTokenAndBestFirst) {
  TraceReader reader = TraceReader::Open(folder_.PathOf("t")).value();
  TracePasses source(reader, /*group=*/0, /*with_routes=*/true);
  ReplayPass pass;
  for (std::uint32_t first = 0; source.Next(pass).value(); first += pass.tokens) {
    ASSERT_EQ(pass.routes.size(), 3u);
    for (std::size_t l = 0; l < 3; ++l) {
      ASSERT_EQ(pass.routes[l].chosen.size(), pass.tokens * 3);
      EXPECT_TRUE(pass.routes[l].scores.empty());  // the trace has those of the chosen alone
      for (std::uint32_t t = 0; t < pass.tokens; ++t) {
        for (std::size_t k = 0; k < 3; ++k) {
          const ExpertChoice& slot = pass.routes[l].chosen[t * 3 + k];
          EXPECT_EQ(slot.expert, block_.Ids(header_, l, first + t)[k]);
          EXPECT_EQ(slot.weight, block_.Scores(header_, l, first + t)[k]);
        }
      }
    }
  }
}

// Passes that sequences share: a prompt of each, a token of each, and a token beside a new prompt.
class SharedPassesTest : public TracePassesTest {
 protected:
  void SetUp() override {
    Rng rng(6);
    const auto decode = TracePhase::kDecode;
    block_ =
        RandomBlock(header_,
                    {{.sequence = 8, .tokens = 5},
                     {.sequence = 9, .tokens = 2, .joins = true},
                     {.sequence = 8, .position = 5, .tokens = 1, .phase = decode},
                     {.sequence = 9, .position = 2, .tokens = 1, .phase = decode, .joins = true},
                     {.sequence = 9, .position = 3, .tokens = 1, .phase = decode},
                     {.sequence = 7, .tokens = 3, .joins = true}},
                    rng);
    Write(block_);
  }
};

TEST_F(SharedPassesTest, HaveAGroupForEachSequenceWhereverChunksEnd) {
  const auto passes = Passes(0);
  Expect(passes, {7, 2, 4});
  ASSERT_EQ(passes.size(), 3u);
  using Group = RowGroupFacts;
  for (const ReplayPass& pass : passes) {
    EXPECT_EQ(pass.facts.first_layer, 1u);
    EXPECT_EQ(pass.facts.end_layer, header_.moe_layers.back() + 1);
  }
  EXPECT_EQ(passes[0].facts.groups,
            (std::vector<Group>{{.sequence = 0, .phase = Phase::kPrompt, .rows = 5},
                                {.sequence = 1, .phase = Phase::kPrompt, .rows = 2}}));
  EXPECT_EQ(passes[1].facts.groups,
            (std::vector<Group>{{.sequence = 0, .position = 5, .rows = 1},
                                {.sequence = 1, .position = 2, .rows = 1}}));
  // The third sequence takes the place of the first, which is not in the pass.
  EXPECT_EQ(passes[2].facts.groups,
            (std::vector<Group>{{.sequence = 1, .position = 3, .rows = 1},
                                {.sequence = 0, .phase = Phase::kPrompt, .rows = 3}}));
}

TEST_F(SharedPassesTest, CountEachGroupsRowsForItself) {
  std::uint32_t first = 0;
  for (const ReplayPass& pass : Passes(0)) {
    ASSERT_EQ(pass.by_group.size(), 3u);
    for (std::size_t g = 0; g < pass.facts.groups.size(); ++g) {
      const std::uint32_t rows = pass.facts.groups[g].rows;
      for (std::size_t l = 0; l < 3; ++l) {
        std::vector<std::uint32_t> expected(header_.experts);
        for (const ExpertDemand& demand : Demands(l, first, rows)) {
          expected[demand.expert] = demand.tokens;
        }
        const auto counted =
            std::span(pass.by_group[l]).subspan(g * header_.experts, header_.experts);
        EXPECT_TRUE(std::ranges::equal(counted, expected)) << g << ", layer " << l;
      }
      first += rows;
    }
  }
}

// More rows than are kept of one sequence, and only then the second sequence's, in another chunk.
TEST_F(SharedPassesTest, KeepTheRoutesOfEveryRow) {
  Rng rng(7);
  const auto decode = TracePhase::kDecode;
  Write(RandomBlock(header_,
                    {{.sequence = 8, .tokens = kMostRoutedTokens + 40},
                     {.sequence = 9, .position = 2, .tokens = 1, .phase = decode, .joins = true},
                     {.sequence = 8, .position = kMostRoutedTokens + 40, .tokens = 300}},
                    rng));
  TraceReader reader = TraceReader::Open(folder_.PathOf("t")).value();
  TracePasses source(reader, /*group=*/0, /*with_routes=*/true);
  for (const std::uint32_t kept : {kMostRoutedTokens + 41, kMostRoutedTokens}) {
    ReplayPass pass;
    ASSERT_TRUE(source.Next(pass).value());
    EXPECT_EQ(pass.mixed, kept > kMostRoutedTokens);
    for (const PassRoutes& routes : pass.routes) EXPECT_EQ(routes.chosen.size(), kept * 3);
  }
}

TEST_F(SharedPassesTest, RegroupedHaveOneSequenceEach) {
  const auto passes = Passes(4);
  Expect(passes, {4, 1, 2, 1, 2, 3});
  for (const ReplayPass& pass : passes) {
    ASSERT_EQ(pass.facts.groups.size(), 1u);
    EXPECT_EQ(pass.facts.groups[0].phase, Phase::kDecode);
    EXPECT_TRUE(pass.by_group.empty());
  }
}

class TracePlaces : public testing::Test {
 protected:
  // By pass: the place of each group.
  static std::vector<std::vector<SequenceId>> Of(std::uint32_t sequences,
                                                 std::vector<TraceSegment> segments) {
    TraceHeader header = TestTraceHeader();
    header.sequences = sequences;
    for (TraceSegment& segment : segments) segment.tokens = 1;
    Rng rng(4);
    const TempFolder folder;
    TraceWriter writer =
        TraceWriter::Create(WholeFile(folder.PathOf("t")).value(), header, {.chunk_tokens = 3})
            .value();
    EXPECT_TRUE(writer.Append(RandomBlock(header, segments, rng)).ok() && writer.Finish().ok());
    TraceReader reader = TraceReader::Open(folder.PathOf("t")).value();
    TracePasses source(reader, /*group=*/0);
    std::vector<std::vector<SequenceId>> places;
    for (ReplayPass pass; source.Next(pass).value();) {
      std::vector<SequenceId>& groups = places.emplace_back();
      for (const RowGroupFacts& group : pass.facts.groups) groups.push_back(group.sequence);
    }
    return places;
  }
};
using Places = std::vector<std::vector<SequenceId>>;

TEST_F(TracePlaces, AreThoseOfTheRun) {
  EXPECT_EQ(Of(4, {{.sequence = 0, .place = 2},
                   {.sequence = 1, .joins = true, .place = 1},
                   {.sequence = 2, .place = 2},
                   {.sequence = 1, .joins = true, .place = 1},
                   {.sequence = 3, .place = 3}}),
            (Places{{2, 1}, {2, 1}, {3}}));
}

TEST_F(TracePlaces, AreTheFirstFreeOnesOfThePassWhereTheTraceHasNone) {
  EXPECT_EQ(Of(1, {{.sequence = 0},
                   {.sequence = 1, .joins = true},
                   {.sequence = 1},
                   {.sequence = 2, .joins = true},
                   {.sequence = 3}}),
            (Places{{0, 1}, {1, 0}, {0}}));
}

TEST_F(TracePlaces, AreDifferentInAPassWhateverTheTraceSays) {
  EXPECT_EQ(Of(3, {{.sequence = 0, .place = 1},
                   {.sequence = 1, .joins = true, .place = 1},
                   {.sequence = 2, .joins = true, .place = 60000}}),
            (Places{{1, 2, 0}}));
}

TEST_F(TracePassesTest, WhatIsSkippedIsNotInThePassesAndTheRestOfACutPassIs) {
  TraceReader reader = TraceReader::Open(folder_.PathOf("t")).value();
  TracePasses source(reader, 0);
  ASSERT_TRUE(source.Skip(3).ok());
  ReplayPass pass;
  ASSERT_TRUE(source.Next(pass).value());
  EXPECT_EQ(pass.tokens, 2u);
  EXPECT_EQ(pass.demands[1], Demands(1, 3, 2));
  reader.Rewind();
  TracePasses beyond(reader, 1);
  ASSERT_TRUE(beyond.Skip(1000).ok());
  EXPECT_FALSE(beyond.Next(pass).value());
}

}  // namespace
}  // namespace troupe
