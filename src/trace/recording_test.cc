#include "trace/recording.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "testing/temp_folder.h"
#include "trace/trace_reader.h"

namespace troupe {
namespace {

using testing::HasSubstr;

// Two layers, three tokens, two experts a token.
class RecordingTest : public testing::Test {
 protected:
  void SetUp() override {
    folder_.Write("ids", std::string({0, 1, 2, 3, 1, 0, 3, 2, 1, 0, 2, 1}));
    std::string scores;
    for (int i = 0; i < 12; ++i) scores += {static_cast<char>(10 * i), 1};  // 256 + 10 i
    folder_.Write("scores", scores);
  }
  std::string Meta(const std::string& more = "",
                   const std::string& sequences = R"("sequence_lengths": [2, 1])") const {
    return folder_.Write("x.meta.json",
                         fmt::format(R"({{"model": "m", "num_moe_layers": 2, "first_moe_layer": 1,
        "num_experts": 4, "top_k": 2, "num_tokens": 3, "task": "law", {}, "ids": {{"file": "ids"}},
        "scores": {{"file": "scores", "dtype": "uint16 little-endian", "scale": 0.0001}}{}}})",
                                     sequences, more));
  }
  TempFolder folder_;
};

TEST_F(RecordingTest, KeepsEveryChoiceAndScore) {
  const auto recording = ReadRecording(Meta());
  ASSERT_TRUE(recording.ok()) << recording.status().message();
  EXPECT_EQ(recording->header.moe_layers, (std::vector<std::uint32_t>{1, 2}));
  EXPECT_EQ(recording->header.layers, 3u);
  EXPECT_EQ(recording->header.scores, ScoreKind::kSoftmax);
  EXPECT_EQ(recording->ids, (std::vector<std::uint16_t>{0, 1, 2, 3, 1, 0, 3, 2, 1, 0, 2, 1}));
  EXPECT_FLOAT_EQ(recording->scores[11], 0.0366f);
  const std::string path = folder_.PathOf("t");
  TraceWriter writer = TraceWriter::Create(WholeFile(path).value(), recording->header).value();
  ASSERT_TRUE(Write(*recording, writer).ok() && writer.Finish().ok());
  TraceReader reader = TraceReader::Open(path).value();
  const TraceBlock block = reader.Next().value().value();
  EXPECT_EQ(block.ids, recording->ids);
  EXPECT_EQ(block.scores, recording->scores);
  EXPECT_EQ(block.domains, std::vector<std::string>{"law"});
  ASSERT_EQ(block.segments.size(), 2u);  // a prompt is a pass
  EXPECT_EQ(block.segments[1].sequence, 1u);
  EXPECT_EQ(block.segments[1].position, 0u);
}

TEST_F(RecordingTest, OfGeneratedTokensEachIsAPass) {
  const auto recording = ReadRecording(Meta(
      R"(, "phase": "decode, one by one")",
      R"("sequences": [{"dataset": "mmlu", "category": "law", "length": 2, "first_position": 7},
                       {"dataset": "mmlu", "category": "art", "length": 1}])"));
  ASSERT_TRUE(recording.ok()) << recording.status().message();
  const std::string path = folder_.PathOf("t");
  TraceWriter writer = TraceWriter::Create(WholeFile(path).value(), recording->header).value();
  ASSERT_TRUE(Write(*recording, writer).ok() && writer.Finish().ok());
  const TraceBlock block = TraceReader::Open(path).value().Next().value().value();
  ASSERT_EQ(block.segments.size(), 3u);
  EXPECT_EQ(block.segments[1].position, 8u);
  EXPECT_EQ(block.segments[1].phase, TracePhase::kDecode);
  EXPECT_FALSE(block.segments[1].joins);
  EXPECT_EQ(block.domains, (std::vector<std::string>{"mmlu/law", "mmlu/art"}));
}

TEST_F(RecordingTest, SaysWhatIsWrongAndWhere) {
  folder_.Write("ids", std::string({0, 1, 2, 9, 1, 0, 3, 2, 1, 0, 2, 1}));
  EXPECT_THAT(ReadRecording(Meta()).status().message(),
              HasSubstr("ids: layer 1, token 1: expert 9"));
  folder_.Write("ids", "short");
  EXPECT_THAT(ReadRecording(Meta()).status().message(), HasSubstr("5 choices, expected 2 layers"));
  EXPECT_THAT(ReadRecording(Meta("", R"("sequence_lengths": [2])")).status().message(),
              HasSubstr("add up to 3"));
  EXPECT_FALSE(ReadRecording(folder_.PathOf("none.meta.json")).ok());
}

}  // namespace
}  // namespace troupe
