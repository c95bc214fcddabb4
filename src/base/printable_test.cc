#include "base/printable.h"

#include <gtest/gtest.h>

namespace troupe {
namespace {

TEST(PrintableTest, NoControlCharacterIsLeft) {
  EXPECT_EQ(Printable("a\x1b[2Jb"), "a?[2Jb");
  EXPECT_EQ(Printable("one\ntwo\tthree\r\x7f"), "one?two?three??");
  EXPECT_EQ(Printable(std::string_view("\0x", 2)), "?x");
}

TEST(PrintableTest, NorOneThatUtf8WritesInTwoBytes) {
  EXPECT_EQ(Printable("a\xC2\x9B"
                      "2Jb"),
            "a?2Jb");
  EXPECT_EQ(Printable("\xC2\x80\xC2\x9F"), "??");
}

TEST(PrintableTest, OtherCharactersStay) {
  for (const char* const text :
       {"", "plain", "\xC2\xA0\xC3\xA9", "\xE2\x82\xAC \xF0\x9F\x98\x80", "\xC2"}) {
    EXPECT_EQ(Printable(text), text);
    EXPECT_EQ(PrintableText(text), text);
  }
}

TEST(PrintableTest, ATextKeepsItsLinesAndTabs) {
  EXPECT_EQ(PrintableText("one\n\ttwo\x1b]0;x\x07"), "one\n\ttwo?]0;x?");
}

}  // namespace
}  // namespace troupe
