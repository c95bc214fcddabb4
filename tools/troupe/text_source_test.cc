#include "troupe/text_source.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <fstream>
#include <thread>

#include "testing/temp_folder.h"
#include "troupe/text_input.h"

namespace troupe {
namespace {

TEST(TextSourceTest, ReadsNoMoreThanIsAskedForAndGoesOnLater) {
  const TempFolder folder;
  TextSource source = TextSource::Open(folder.Write("a", std::string(200'000, 'x'))).value();
  ASSERT_TRUE(source.ReadTo(1000).ok());
  EXPECT_EQ(source.text().size(), 1000u);
  EXPECT_FALSE(source.ended());
  ASSERT_TRUE(source.ReadTo(1'000'000).ok());
  EXPECT_EQ(source.text().size(), 200'000u);
  EXPECT_TRUE(source.ended());
}

TEST(TextSourceTest, APipeIsReadToItsEnd) {
  const TempFolder folder;
  const std::string pipe = folder.PathOf("pipe");
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  const std::string sent(300'000, 'y');
  std::thread writer([&] { std::ofstream(pipe) << sent; });
  EXPECT_EQ(ReadTextFile(pipe).value(), sent);
  writer.join();
}

TEST(TextSourceTest, ATextThatIsTooLongIsRefusedWithoutBeingReadToItsEnd) {
  // It has no end.
  const Result<std::string> text = ReadTextFile("/dev/zero", 1000);
  EXPECT_EQ(text.status().code(), Code::kResourceExhausted);
  EXPECT_THAT(text.status().message(), testing::HasSubstr("/dev/zero: more than 1000 bytes"));
}

TEST(TextSourceTest, ATextOfExactlyTheMostIsTaken) {
  const TempFolder folder;
  EXPECT_EQ(ReadTextFile(folder.Write("a", std::string(1000, 'x')), 1000)->size(), 1000u);
}

TEST(TextSourceTest, AFolderIsNoText) {
  const TempFolder folder;
  EXPECT_THAT(ReadTextFile(folder.path().string()).status().message(),
              testing::HasSubstr("reading it: Is a directory"));
}

TEST(TextSourceTest, ACharacterThatIsCutIsLeftOut) {
  EXPECT_EQ(WholeCharacters(""), 0u);
  EXPECT_EQ(WholeCharacters("abc"), 3u);
  EXPECT_EQ(WholeCharacters("ab\xC3\xA9"), 4u);
  EXPECT_EQ(WholeCharacters("ab\xC3"), 2u);
  EXPECT_EQ(WholeCharacters("ab\xF0\x9F\x98"), 2u);
  EXPECT_EQ(WholeCharacters("ab\xFF"), 3u);  // no part of any: its reader says so
}

TEST(TokenIdsTest, AreNumbersBetweenSingleCommas) {
  EXPECT_THAT(ParseTokenIds("1, 306,\n55\n").value(), testing::ElementsAre(1, 306, 55));
  EXPECT_THAT(ParseTokenIds(" 7 ").value(), testing::ElementsAre(7));
  EXPECT_THAT(ParseTokenIds("1 2 3").value(), testing::ElementsAre(1, 2, 3));
  EXPECT_TRUE(ParseTokenIds("")->empty());
  for (const char* const bad : {"1,,2", ",1", "1,", "1,x", "-1", "1 ,, 2", "1;2"}) {
    EXPECT_EQ(ParseTokenIds(bad).status().code(), Code::kInvalidArgument) << bad;
  }
}

}  // namespace
}  // namespace troupe
