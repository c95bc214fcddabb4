#include "sim/trace_file.h"

#include <gtest/gtest.h>

#include "testing/temp_folder.h"
#include "trace/trace_for_test.h"
#include "trace/trace_writer.h"

namespace troupe {
namespace {

TEST(TraceFile, PutsTheTokensOfSequencesThatRanAtOnceTogether) {
  const TraceHeader header{
      .model = "m", .layers = 2, .moe_layers = {0, 1}, .experts = 9, .top_k = 1, .sequences = 2};
  const TempFolder folder;
  TraceWriter writer =
      TraceWriter::Create(WholeFile(folder.PathOf("t")).value(), header, {}).value();
  const auto decode = TracePhase::kDecode;
  ASSERT_TRUE(
      writer
          .Append({.domains = {""},
                   .segments = {{.sequence = 0, .tokens = 2},
                                {.sequence = 1, .tokens = 1, .joins = true, .place = 1},
                                {.sequence = 0, .position = 2, .tokens = 1, .phase = decode},
                                {.sequence = 1,
                                 .position = 1,
                                 .tokens = 1,
                                 .phase = decode,
                                 .joins = true,
                                 .place = 1}},
                   .tokens = 5,
                   .ids = {0, 1, 5, 2, 6, /* layer 1 */ 3, 4, 7, 3, 8}})
          .ok());
  ASSERT_TRUE(writer.Finish().ok());
  const RoutingTrace trace = ReadRoutingTrace(folder.PathOf("t")).value();
  EXPECT_EQ(trace.sequence_starts, (std::vector<std::uint32_t>{0, 3}));
  EXPECT_EQ(std::vector<int>(trace.ids.begin(), trace.ids.end()),
            (std::vector<int>{0, 1, 2, 5, 6, 3, 4, 3, 7, 8}));
  EXPECT_EQ(trace.answer_tokens, (std::vector<std::uint32_t>{1, 1}));
  EXPECT_EQ(trace.SequenceLength(0), 3u);
  EXPECT_EQ(trace.InputLength(0), 2u);
}

}  // namespace
}  // namespace troupe
