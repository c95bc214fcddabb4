#include "split/wire/cloud_line.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/rng.h"
#include "testing/test_seed.h"

namespace troupe {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

CloudLine ReadLine(const std::string& line) {
  EXPECT_EQ(line.back(), '\n');
  return DecodeCloudLine(std::string_view(line).substr(0, line.size() - 1)).value();
}

TEST(CloudLine, ReadsWhatItWrote) {
  const std::vector<CloudLine> lines = {
      CloudTokens{{5, 0, 2147483647}},
      CloudTokens{},
      CloudEnd{.reason = FinishReason::kContextFull,
               .read = 12,
               .queue_seconds = 0.5,
               .read_seconds = 1.0 / 3,
               .decode_seconds = 2,
               .load = {.under_way = 3,
                        .to_read = 900,
                        .answer_seconds = 0.5,
                        .read_seconds = 0.25,
                        .token_seconds = 0.125}},
      CloudWait{.seconds = 1.5},
      CloudFailure{Error(Code::kUnavailable, "the queue is full")},
      CloudFailure{ContextFull("9 tokens are more than 8")},
      CloudReady{}};
  for (const CloudLine& line : lines) EXPECT_EQ(ReadLine(Encode(line)), line);
  EXPECT_EQ(EncodeTokens(std::vector<TokenId>{306, 12}), "[306,12]\n");
}

TEST(CloudLine, RefusesWhatIsNone) {
  for (const std::string_view text :
       {"", "7", "[-1]", "[1.5]", "[4294967296]", "{}", R"({"end":"soon"})", R"({"ready":false})",
        R"({"wait_s":-1})", R"({"error":{"code":14}})", "[1"}) {
    const auto line = DecodeCloudLine(text);
    EXPECT_FALSE(line.ok()) << text;
    EXPECT_EQ(line.status().message().find('\n'), std::string::npos);
  }
}

TEST(CloudLine, AFailureIsOneLineAndAlwaysAnError) {
  const auto line = DecodeCloudLine(R"({"error":{"code":0,"message":"a\nb"}})").value();
  EXPECT_EQ(std::get<CloudFailure>(line).status, Status(Code::kInternal, "a b"));
}

TEST(CloudLines, AreTheSameHoweverTheyAreCut) {
  Rng rng(TestSeed());
  const std::string text = "[1,2]\n\n[]\n{\"end\":\"length\"}\n";
  for (int round = 0; round < 200; ++round) {
    CloudLines lines;
    std::vector<std::string> all;
    for (std::size_t at = 0; at < text.size();) {
      const std::size_t length = 1 + rng.Below(7);
      const auto some = lines.Take(std::string_view(text).substr(at, length)).value();
      all.insert(all.end(), some.begin(), some.end());
      at += length;
    }
    EXPECT_THAT(all, ElementsAre("[1,2]", "", "[]", "{\"end\":\"length\"}"));
  }
}

TEST(CloudLines, ALineThatNeverEndsIsNotKept) {
  CloudLines lines;
  EXPECT_TRUE(lines.Take(std::string(1 << 16, '1')).ok());
  EXPECT_THAT(lines.Take("1").status().message(), HasSubstr("65536 bytes"));
}

}  // namespace
}  // namespace troupe
