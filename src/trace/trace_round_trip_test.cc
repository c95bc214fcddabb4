// What is written comes back, whatever its shape and however it was cut; memory does not grow with
// the trace.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "base/rng.h"
#include "testing/temp_folder.h"
#include "testing/test_seed.h"
#include "trace/trace_for_test.h"
#include "trace/trace_reader.h"
#include "trace/trace_writer.h"

namespace troupe {
namespace {

using testing::HasSubstr;

TraceWriter Writer(const std::string& path, const TraceHeader& header,
                   const TraceWriterOptions& options = {}) {
  return TraceWriter::Create(GrowingFile(path).value(), header, options).value();
}

std::vector<TraceBlock> ReadAll(TraceReader& reader) {
  std::vector<TraceBlock> blocks;
  while (auto block = reader.Next().value()) blocks.push_back(std::move(*block));
  return blocks;
}

TEST(TraceFileTest, WhatIsWrittenComesBackForEveryShapeAndCut) {
  const TempFolder folder;
  Rng rng(TestSeed());
  for (int round = 0; round < 40; ++round) {
    TraceHeader header = TestTraceHeader(rng.Below(4) > 0, rng.Below(2) > 0);
    header.score_type =
        header.scores != ScoreKind::kNone && rng.Below(2) > 0 ? ScoreType::kF16 : ScoreType::kF32;
    if (rng.Below(3) == 0) header.experts = 300;  // ids of two bytes
    if (rng.Below(2) == 0) header.sequences = 9;
    const auto place = static_cast<std::uint16_t>(rng.Below(header.sequences));
    std::vector<TraceBlock> written;
    TraceWriter writer = Writer(folder.PathOf("t"), header,
                                {.chunk_tokens = static_cast<std::uint32_t>(1 + rng.Below(40)),
                                 .chunk_bytes = 1 + rng.Below(5000)});
    std::uint32_t position = 0;
    for (std::uint64_t passes = 1 + rng.Below(30); passes > 0; --passes) {
      const auto tokens = static_cast<std::uint32_t>(1 + rng.Below(rng.Below(4) == 0 ? 50 : 2));
      written.push_back(
          RandomBlock(header,
                      {{.sequence = 3,
                        .position = position,
                        .tokens = tokens,
                        .domain = static_cast<std::uint16_t>(rng.Below(2)),
                        .phase = tokens == 1 ? TracePhase::kDecode : TracePhase::kPrefill,
                        .place = place}},
                      rng));
      position += tokens;
      ASSERT_TRUE(writer.Append(written.back()).ok());
    }
    ASSERT_TRUE(writer.Finish().ok());
    TraceReader reader = TraceReader::Open(folder.PathOf("t")).value();
    EXPECT_EQ(reader.header(), header);
    const std::vector<TraceBlock> blocks = ReadAll(reader);
    const TraceBlock all = Join(header, written), read = Join(header, blocks);
    EXPECT_EQ(read.ids, all.ids);
    EXPECT_EQ(read.scores, all.scores);
    EXPECT_EQ(read.all_scores, all.all_scores);
    EXPECT_EQ(reader.tokens(), writer.tokens());
    EXPECT_FALSE(reader.damage().any()) << ToString(reader.damage());
    // Passes are what they were: those that chunks cut go on as ones that join.
    std::vector<std::uint32_t> passes;
    std::uint32_t expected_position = 0;
    for (const TraceBlock& block : blocks) {
      for (const TraceSegment& segment : block.segments) {
        EXPECT_EQ(segment.position, expected_position);
        expected_position += segment.tokens;
        if (!segment.joins) passes.push_back(0);
        passes.back() += segment.tokens;
      }
    }
    ASSERT_EQ(passes.size(), written.size());
    for (std::size_t i = 0; i < passes.size(); ++i) EXPECT_EQ(passes[i], written[i].tokens);
    reader.Rewind();
    EXPECT_EQ(ReadAll(reader), blocks);
  }
}

TEST(TraceFileTest, WhatWasAppendedIsThereBeforeTheFileIsFinished) {
  const TempFolder folder;
  const TraceHeader header = TestTraceHeader();
  Rng rng(1);
  TraceWriter writer = Writer(folder.PathOf("t"), header, {.chunk_tokens = 8});
  ASSERT_TRUE(writer.Append(RandomBlock(header, {{.tokens = 20}}, rng)).ok());
  TraceReader reader = TraceReader::Open(folder.PathOf("t")).value();
  ReadAll(reader);
  EXPECT_EQ(reader.tokens(), 16u);
  EXPECT_THAT(ToString(reader.damage()), testing::HasSubstr("ends without its end mark"));
}

TEST(TraceFileTest, AWholeFileIsThereOnlyWhenItIsFinished) {
  const TempFolder folder;
  {
    TraceWriter writer =
        TraceWriter::Create(WholeFile(folder.PathOf("t")).value(), TestTraceHeader()).value();
    EXPECT_EQ(folder.Count(), 0u);
  }
  EXPECT_EQ(folder.Count(), 0u);
  TraceWriter writer =
      TraceWriter::Create(WholeFile(folder.PathOf("t")).value(), TestTraceHeader()).value();
  EXPECT_TRUE(writer.Finish().ok());
  EXPECT_TRUE(TraceReader::Open(folder.PathOf("t")).ok());
}

TEST(TraceFileTest, RefusesABlockThatIsNoneAndWritesNothingOfIt) {
  const TempFolder folder;
  Rng rng(1);
  const TraceHeader header = TestTraceHeader();
  TraceWriter writer = Writer(folder.PathOf("t"), header);
  TraceBlock block = RandomBlock(header, {{.tokens = 4}}, rng);
  block.ids[2] = 99;
  EXPECT_THAT(writer.Append(block).message(), HasSubstr("expert 99"));
  EXPECT_EQ(writer.tokens(), 0u);
}

TEST(TraceFileTest, AFolderThatIsNotThereIsOneClearError) {
  EXPECT_THAT(GrowingFile("/nowhere/t").status().message(), HasSubstr("/nowhere/t"));
  EXPECT_THAT(TraceReader::Open("/nowhere/t").status().message(), HasSubstr("/nowhere/t"));
}

}  // namespace
}  // namespace troupe
