#include "text/utf8.h"

#include <gtest/gtest.h>

namespace troupe {
namespace {

using State = Utf8Prefix::State;

void ExpectPrefix(std::string_view text, State state, std::size_t length) {
  const Utf8Prefix prefix = ReadUtf8(text);
  EXPECT_EQ(prefix.state, state) << testing::PrintToString(text);
  EXPECT_EQ(prefix.length, length) << testing::PrintToString(text);
}

TEST(Utf8, WritesAndReadsEveryCharacter) {
  for (char32_t c = 0; c <= 0x10FFFF; ++c) {
    if (c >= 0xD800 && c <= 0xDFFF) continue;  // surrogates are no characters
    std::string text;
    AppendUtf8(c, text);
    const Utf8Prefix prefix = ReadUtf8(text);
    ASSERT_EQ(prefix.state, State::kValid) << static_cast<std::uint32_t>(c);
    ASSERT_EQ(prefix.length, text.size());
    ASSERT_EQ(DecodeUtf8(text), c);
  }
}

TEST(Utf8, RefusesWhatUnicodeCallsIllFormed) {
  ExpectPrefix("\x80", State::kInvalid, 1);              // a continuation without a beginning
  ExpectPrefix("\xC0\xAF", State::kInvalid, 1);          // overlong '/'
  ExpectPrefix("\xE0\x9F\xBF", State::kInvalid, 1);      // overlong U+07FF
  ExpectPrefix("\xED\xA0\x80", State::kInvalid, 1);      // a surrogate
  ExpectPrefix("\xF0\x8F\xBF\xBF", State::kInvalid, 1);  // overlong U+FFFF
  ExpectPrefix("\xF4\x90\x80\x80", State::kInvalid, 1);  // above U+10FFFF
  ExpectPrefix("\xF5\x80\x80\x80", State::kInvalid, 1);
  ExpectPrefix(
      "\xE2\x82"
      "a",
      State::kInvalid, 2);  // the longest beginning counts as one
  ExpectPrefix(
      "\xF0\x9F\x98"
      "a",
      State::kInvalid, 3);
}

TEST(Utf8, TellsBeginningsOfCharactersFromErrors) {
  ExpectPrefix("\xC3", State::kCutShort, 1);
  ExpectPrefix("\xE2\x82", State::kCutShort, 2);
  ExpectPrefix("\xF0\x9F\x98", State::kCutShort, 3);
}

TEST(Utf8, FindsTheFirstByteThatIsWrong) {
  EXPECT_EQ(FindInvalidUtf8(""), std::nullopt);
  EXPECT_EQ(FindInvalidUtf8("héllo 😀"), std::nullopt);
  EXPECT_EQ(FindInvalidUtf8("ab\xFF"), 2u);
  EXPECT_EQ(FindInvalidUtf8("é\xE2\x82"), 2u);  // cut short
}

}  // namespace
}  // namespace troupe
