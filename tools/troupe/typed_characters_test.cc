#include "troupe/typed_characters.h"

#include <gtest/gtest.h>

#include <string>

#include "base/rng.h"
#include "testing/test_seed.h"
#include "text/utf8.h"

namespace troupe {
namespace {

std::string Drain(TypedCharacters& typed, bool all) {
  std::string out;
  while (const auto character = typed.Next(all)) AppendUtf8(*character, out);
  return out;
}

std::string AllOf(std::string_view bytes) {
  TypedCharacters typed;
  typed.Push(bytes);
  return Drain(typed, /*all=*/true);
}

TEST(TypedCharactersTest, TypedTextIsAsItIs) {
  EXPECT_EQ(AllOf("h\xC3\xA9\x7f\x01"), "h\xC3\xA9\x7f\x01");
  EXPECT_EQ(AllOf("hello\r"), "hello\n");
  EXPECT_EQ(AllOf("hello\n"), "hello\n");
}

TEST(TypedCharactersTest, LineEndsOfAMarkedPasteSendNothing) {
  EXPECT_EQ(AllOf("\033[200~one\rtwo\r\nthree\r\033[201~"), "one\u240atwo\u240athree\u240a");
  EXPECT_EQ(AllOf("a\033[200~b\033[201~c\r"), "abc\n");
}

TEST(TypedCharactersTest, OfAPasteWithoutMarksOnlyTheLastLineEndSends) {
  EXPECT_EQ(AllOf("one\ntwo\nthree\n"), "one\u240atwo\u240athree\n");
}

TEST(TypedCharactersTest, APasteBringsNoCommandsForTheEditor) {
  EXPECT_EQ(AllOf("\033[200~a\033[A\x04\x03\xC2\x9B"
                  "b\tc\033[201~"),
            "a[Ab\tc");
}

TEST(TypedCharactersTest, KeysThatBeginLikeAMarkStay) {
  EXPECT_EQ(AllOf("\033[2~"), "\033[2~");  // Insert
  EXPECT_EQ(AllOf("\033[D"), "\033[D");
  EXPECT_EQ(AllOf("\033"), "\033");
}

TEST(TypedCharactersTest, WhatIsCutWaitsForTheRest) {
  TypedCharacters typed;
  typed.Push("\033[20");
  EXPECT_EQ(Drain(typed, false), "");
  typed.Push("0~one\ntwo\033[201~\xC3");
  EXPECT_EQ(Drain(typed, false), "one\u240atwo");
  typed.Push("\xA9");
  EXPECT_EQ(Drain(typed, false), "\xC3\xA9");
}

TEST(TypedCharactersTest, WhatBelongsToNoCharacterIsReplaced) {
  EXPECT_EQ(AllOf("\xFF"
                  "a\xC3"),
            "\xEF\xBF\xBD"
            "a\xEF\xBF\xBD");
}

TEST(TypedCharactersTest, HowAMarkedPasteIsCutIntoReadsDoesNotMatter) {
  const std::string bytes = "x\033[200~one\r\ntw\xC3\xB6\n\033[Cthree\033[201~y\r";
  const std::string whole = AllOf(bytes);
  Rng rng(TestSeed());
  for (int round = 0; round < 200; ++round) {
    TypedCharacters typed;
    std::string out;
    for (std::size_t at = 0; at < bytes.size();) {
      const std::size_t count = 1 + rng.Below(bytes.size() - at);
      typed.Push(std::string_view(bytes).substr(at, count));
      at += count;
      out += Drain(typed, at == bytes.size());
    }
    // A line end may come in two reads; then it is two.
    EXPECT_TRUE(out == whole || out == "xone\u240a\u240atw\xC3\xB6\u240a[Cthreey\n") << out;
  }
}

}  // namespace
}  // namespace troupe
