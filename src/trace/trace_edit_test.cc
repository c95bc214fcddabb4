#include "trace/trace_edit.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "testing/temp_folder.h"
#include "trace/trace_for_test.h"
#include "trace/trace_summary.h"

namespace troupe {
namespace {

class TraceEdit : public testing::Test {
 protected:
  void SetUp() override {
    Rng rng(2);
    TraceWriter writer = TraceWriter::Create(WholeFile(in()).value(), header_).value();
    all_ = RandomBlock(header_,
                       {{.sequence = 0, .position = 10, .tokens = 6},
                        {.sequence = 0, .position = 16, .tokens = 1, .phase = TracePhase::kDecode},
                        {.sequence = 1, .position = 0, .tokens = 4, .domain = 1}},
                       rng);
    ASSERT_TRUE(writer.Append(all_).ok() && writer.Finish().ok());
  }
  std::string in() const { return folder_.PathOf("in"); }

  TraceBlock Cut(const TraceCut& cut) {
    TraceReader reader = TraceReader::Open(in()).value();
    cut_header_ = CutHeader(reader.header(), cut).value();
    TraceWriter writer =
        TraceWriter::Create(WholeFile(folder_.PathOf("out")).value(), cut_header_).value();
    EXPECT_TRUE(CutTrace(reader, cut, writer).ok());
    EXPECT_TRUE(writer.Finish().ok());
    return TraceReader::Open(folder_.PathOf("out")).value().Next().value().value();
  }

  const TraceHeader header_ = TestTraceHeader(true, true);
  TraceHeader cut_header_;
  TempFolder folder_;
  TraceBlock all_;
};

TEST_F(TraceEdit, KeepsTheFirstTokensOfEachSequenceWhereverItBegins) {
  const TraceBlock block = Cut({.tokens = 3});
  EXPECT_EQ(block.tokens, 6u);
  EXPECT_EQ(block.segments[1].sequence, 1u);
  EXPECT_TRUE(std::ranges::equal(block.Ids(header_, 2, 4), all_.Ids(header_, 2, 8)));
  EXPECT_TRUE(std::ranges::equal(block.AllScores(header_, 0, 3), all_.AllScores(header_, 0, 7)));
}

TEST_F(TraceEdit, KeepsLayersSequencesPhasesAndDomains) {
  const TraceBlock block = Cut({.layers = {3}});
  EXPECT_EQ(cut_header_.moe_layers, std::vector<std::uint32_t>{3});
  EXPECT_EQ(cut_header_.layers, 4u);  // the model's
  EXPECT_TRUE(std::ranges::equal(block.Ids(cut_header_, 0, 9), all_.Ids(header_, 2, 9)));
  EXPECT_EQ(Cut({.first_sequence = 1, .last_sequence = 5}).tokens, 4u);
  EXPECT_EQ(Cut({.phase = TracePhase::kDecode}).tokens, 1u);
  EXPECT_EQ(Cut({.domain = "law"}).tokens, 7u);
}

TEST_F(TraceEdit, KeepsTheScoresThatAreAskedFor) {
  EXPECT_TRUE(Cut({.drop_all_scores = true}).all_scores.empty());
  EXPECT_EQ(Cut({.score_type = ScoreType::kF16}).scores, all_.scores);  // halves hold them all
  EXPECT_EQ(cut_header_.score_type, ScoreType::kF16);
  EXPECT_TRUE(Cut({.drop_scores = true}).scores.empty());
}

TEST_F(TraceEdit, RefusesALayerWithoutExperts) {
  EXPECT_THAT(CutHeader(header_, {.layers = {0}}).status().message(),
              testing::HasSubstr("layer 0 has no experts"));
}

TEST_F(TraceEdit, SequencesThatAreAppendedGoOnCounting) {
  TraceWriter writer =
      TraceWriter::Create(WholeFile(folder_.PathOf("out")).value(), header_).value();
  std::uint32_t next = 0;
  for (int i = 0; i < 3; ++i) {
    TraceReader reader = TraceReader::Open(in()).value();
    next = AppendTrace(reader, next, writer).value();
  }
  EXPECT_EQ(next, 6u);
  ASSERT_TRUE(writer.Finish().ok());
  TraceReader reader = TraceReader::Open(folder_.PathOf("out")).value();
  const TraceSummary summary = Summarize(reader).value();
  EXPECT_EQ(summary.sequences, 6u);
  EXPECT_EQ(summary.tokens, 33u);
  EXPECT_EQ(summary.decode_tokens, 3u);
  EXPECT_EQ(summary.passes, 9u);
  EXPECT_EQ(summary.longest_pass, 6u);
  EXPECT_EQ(summary.tokens_by_domain,
            (std::map<std::string, std::uint64_t>{{"law", 21}, {"", 12}}));
}

}  // namespace
}  // namespace troupe
