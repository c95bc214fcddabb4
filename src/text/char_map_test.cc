// The map of characters of a unigram vocabulary: the longest beginning of a text that it knows, and
// any bytes in its place.
#include "text/char_map.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/rng.h"
#include "testing/test_seed.h"
#include "text/char_map_for_test.h"
#include "text/utf8.h"

namespace troupe {
namespace {

using testing::HasSubstr;

TEST(CharMap, FindsTheLongestBeginningThatIsInIt) {
  const CharMap map = CharMap::Make(CharMapCompiler::Compile({{"\n", " "},
                                                              {"ﬁ", "fi"},
                                                              {"a\u0301", "á"},
                                                              {"ab", "x"},
                                                              {"abcd", ""},
                                                              {"½", "1⁄2"}}))
                          .value();
  const auto expect = [&map](std::string_view text, std::size_t length, std::string_view to) {
    const CharMap::Match match = map.Longest(text);
    EXPECT_EQ(match.length, length) << text;
    EXPECT_EQ(match.to, to) << text;
  };
  expect("\nb", 1, " ");
  expect("ﬁn", 3, "fi");
  expect("a\u0301", 3, "á");
  expect("abc", 2, "x");
  expect("abcde", 4, "");
  expect("½", 2, "1⁄2");
  expect("a", 0, "");
  expect("b", 0, "");
  expect("", 0, "");
}

TEST(CharMap, WithoutAnyBytesItChangesNothing) {
  EXPECT_EQ(CharMap::Make("").value().Longest("a").length, 0u);
}

TEST(CharMap, NamesWhatIsWrongWithItsBytes) {
  const auto error = [](std::string_view bytes) { return CharMap::Make(bytes).status().message(); };
  EXPECT_THAT(error(std::string("\x04\0", 2)), HasSubstr("of 2 bytes"));
  EXPECT_THAT(error(std::string("\x09\0\0\0", 4) + std::string(9, 'x')), HasSubstr("has 9 bytes"));
  EXPECT_THAT(error(std::string("\x10\0\0\0", 4) + std::string(8, 'x')), HasSubstr("of 8"));
  const std::string whole = CharMapCompiler::Compile({{"a", "b"}});
  EXPECT_THAT(error(whole.substr(0, whole.size() - 1)), HasSubstr("no end"));
  std::string text = whole;
  text[text.size() - 2] = '\xFF';
  EXPECT_THAT(error(text), HasSubstr("UTF-8"));
}

TEST(CharMap, AnyTrieGivesWholeCharactersAndValidTexts) {
  Rng rng(TestSeed());
  const std::string sound =
      CharMapCompiler::Compile({{"é", "e"}, {"ab", "日本"}, {"本", ""}, {"b", "é"}});
  for (int round = 0; round < 2000; ++round) {
    std::string damaged = sound;
    for (int i = 0; i < 3; ++i) {
      damaged[4 + rng.Below(damaged.size() - 4)] = static_cast<char>(rng.Below(256));
    }
    const Result<CharMap> map = CharMap::Make(damaged);
    if (!map.ok()) continue;
    for (const std::string_view text : {"é", "ab本", "本é", "b", "日本ab"}) {
      const CharMap::Match match = map->Longest(text);
      ASSERT_LE(match.length, text.size());
      EXPECT_FALSE(FindInvalidUtf8(text.substr(match.length)).has_value());
      EXPECT_FALSE(FindInvalidUtf8(match.to).has_value());
    }
  }
}

}  // namespace
}  // namespace troupe
