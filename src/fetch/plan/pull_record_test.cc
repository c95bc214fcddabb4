#include "fetch/plan/pull_record.h"

#include <gtest/gtest.h>

namespace troupe {
namespace {

TEST(PullRecord, IsReadBackAsItWasWritten) {
  const PullRecord record = {"hf.co/o/r:Q4_0",
                             {{"a/m-00001-of-00002.gguf", 5'000'000'000, std::string(64, '0')},
                              {"a/m-00002-of-00002.gguf", 7, ""}}};
  const Result<PullRecord> read = ParsePullRecord("x", PullRecordText(record));
  ASSERT_TRUE(read.ok()) << read.status().message();
  EXPECT_EQ(*read, record);
}

TEST(PullRecord, OfOthersIsRefused) {
  const std::string good = PullRecordText({"hf.co/o/r", {{"m", 1, ""}}});
  ASSERT_TRUE(ParsePullRecord("x", good).ok());
  const auto with = [&](std::string_view from, std::string_view to) {
    std::string text = good;
    text.replace(text.find(from), from.size(), to);
    return text;
  };
  EXPECT_FALSE(ParsePullRecord("x", with("\"m\"", "\"../m\"")).ok());
  EXPECT_FALSE(ParsePullRecord("x", with("troupe pull", "other")).ok());
  EXPECT_FALSE(ParsePullRecord("x", with("hf.co/o/r", "hf.co/o/$(x)")).ok()) << "shells see it";
  EXPECT_FALSE(ParsePullRecord("x", with("\"version\": 1", "\"version\": 2")).ok());
  EXPECT_FALSE(ParsePullRecord("x", with("\"sha256\": \"\"", "\"sha256\": \"zz\"")).ok());
  EXPECT_FALSE(ParsePullRecord("x", PullRecordText({"hf.co/o/r", {}})).ok());
}

TEST(SafePath, StaysInItsFolder) {
  for (const char* path : {"m.gguf", "a/b/m.gguf", "a..b/m", "...", "a b"}) {
    EXPECT_TRUE(IsSafePath(path)) << path;
  }
  for (const char* path :
       {"", "/", "/m", "..", "../m", "a/../m", "a/..", "a//m", "a/", ".", "./m", "a\\b", "a\nb"}) {
    EXPECT_FALSE(IsSafePath(path)) << path;
  }
}

}  // namespace
}  // namespace troupe
