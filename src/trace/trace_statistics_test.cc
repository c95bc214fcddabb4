#include "trace/trace_statistics.h"

#include <gtest/gtest.h>

#include <cmath>

#include "testing/temp_folder.h"
#include "testing/test_seed.h"
#include "trace/trace_for_test.h"
#include "trace/trace_writer.h"

namespace troupe {
namespace {

// One layer of four experts, two a token.
const TraceHeader kStatisticsHeader{
    .model = "m", .layers = 1, .moe_layers = {0}, .experts = 4, .top_k = 2};

TraceStatistics Of(const TraceBlock& block, const TraceHeader& header = kStatisticsHeader) {
  const TempFolder folder;
  TraceWriter writer =
      TraceWriter::Create(WholeFile(folder.PathOf("t")).value(), header, {.chunk_tokens = 3})
          .value();
  EXPECT_TRUE(writer.Append(block).ok() && writer.Finish().ok());
  TraceReader reader = TraceReader::Open(folder.PathOf("t")).value();
  TraceStatistics statistics(header);
  EXPECT_TRUE(statistics.Read(reader).ok());
  return statistics;
}

TEST(TraceStatisticsTest, AreThoseOfASmallTraceByHand) {
  const TraceStatistics s =
      Of({.domains = {"a/x", "b"},
          .segments = {{.sequence = 0, .tokens = 4}, {.sequence = 1, .tokens = 2, .domain = 1}},
          .tokens = 6,
          .ids = {0, 1, 1, 2, 0, 1, 0, 1, 2, 3, 2, 3}});
  EXPECT_EQ(s.tokens(), 6u);
  EXPECT_EQ(s.Uses(0, 1), 4u);
  const auto part = [](double p) { return -p * std::log2(p); };
  EXPECT_NEAR(s.EntropyBits(0), part(3 / 12.0) + part(4 / 12.0) + part(3 / 12.0) + part(2 / 12.0),
              1e-12);
  EXPECT_DOUBLE_EQ(s.HottestOverUniform(0), 4.0 / 3);
  // Neighbours: 1 of 2, 1 of 2, 2 of 2; in the other sequence 2 of 2.
  EXPECT_DOUBLE_EQ(s.Reuse(0, 0), 6.0 / 8);
  EXPECT_DOUBLE_EQ(s.Reuse(0, 1), 3.0 / 4);  // two apart: 2 of 2, 1 of 2
  EXPECT_DOUBLE_EQ(s.WorkingSet(0, 0), 2);
  EXPECT_DOUBLE_EQ(s.WorkingSet(0, 1), (3 + 2 + 2) / 3.0);
  EXPECT_DOUBLE_EQ(s.WorkingSet(0, 2), 3);
  EXPECT_DOUBLE_EQ(s.WorkingSet(0, 3), 0);  // no sequence is so long
  EXPECT_DOUBLE_EQ(s.Together(0, 2, 3), 2.0 / 3);
  EXPECT_DOUBLE_EQ(s.Together(0, 3, 2), 1);
  EXPECT_EQ(s.domains(), (std::vector<std::string>{"a", "b"}));
  EXPECT_DOUBLE_EQ(s.DomainDistance("a", "a"), 0);
  EXPECT_GT(s.DomainDistance("a", "b"), 0.5);
  EXPECT_DOUBLE_EQ(s.DomainDistance("a", "b"), s.DomainDistance("b", "a"));
}

// The tokens of AreThoseOfASmallTraceByHand, the second sequence's between the first one's.
TEST(TraceStatisticsTest, CountWithinEachOfSeveralSequencesAtOnce) {
  const TraceHeader header{
      .model = "m", .layers = 1, .moe_layers = {0}, .experts = 4, .top_k = 2, .sequences = 2};
  const TraceStatistics s =
      Of({.domains = {""},
          .segments = {{.sequence = 0, .tokens = 2},
                       {.sequence = 1, .tokens = 1, .joins = true, .place = 1},
                       {.sequence = 0, .position = 2, .tokens = 1},
                       {.sequence = 1, .position = 1, .tokens = 1, .joins = true, .place = 1},
                       {.sequence = 0, .position = 3, .tokens = 1}},
          .tokens = 6,
          .ids = {0, 1, 1, 2, 2, 3, 0, 1, 2, 3, 0, 1}},
         header);
  EXPECT_DOUBLE_EQ(s.Reuse(0, 0), 6.0 / 8);
  EXPECT_DOUBLE_EQ(s.Reuse(0, 1), 3.0 / 4);
  EXPECT_DOUBLE_EQ(s.WorkingSet(0, 1), (3 + 2 + 2) / 3.0);
  EXPECT_DOUBLE_EQ(s.WorkingSet(0, 2), 3);
}

TEST(TraceStatisticsTest, RandomChoicesAreAsChanceHasThem) {
  Rng rng(TestSeed());
  const TraceHeader header{
      .model = "m", .layers = 2, .moe_layers = {0, 1}, .experts = 80, .top_k = 4};
  const TraceStatistics s = Of(RandomBlock(header, {{.tokens = 4000}}, rng), header);
  for (std::size_t l = 0; l < 2; ++l) {
    EXPECT_NEAR(s.EntropyBits(l), std::log2(80), 0.02);
    EXPECT_NEAR(s.Reuse(l, 0), 4.0 / 80, 0.01);
    EXPECT_NEAR(s.WorkingSet(l, 4), 80 * (1 - std::pow(76.0 / 80, 16)), 0.6);
  }
}

}  // namespace
}  // namespace troupe
