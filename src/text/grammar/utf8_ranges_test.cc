#include "text/grammar/utf8_ranges.h"

#include <gtest/gtest.h>

#include <string>

#include "base/rng.h"
#include "testing/test_seed.h"
#include "text/utf8.h"

namespace troupe {
namespace {

bool Covers(const std::vector<Utf8Sequence>& sequences, const std::string& character) {
  int found = 0;
  for (const Utf8Sequence& sequence : sequences) {
    bool fits = sequence.length == character.size();
    for (std::size_t i = 0; fits && i < character.size(); ++i) {
      const auto byte = static_cast<std::uint8_t>(character[i]);
      fits = byte >= sequence.ranges[i].first && byte <= sequence.ranges[i].last;
    }
    found += fits ? 1 : 0;
  }
  EXPECT_LE(found, 1) << "two sequences cover one character";
  return found == 1;
}

TEST(Utf8Ranges, AllOfUnicodeIsTheTableOfWellFormedSequences) {
  const auto sequences = Utf8Sequences({{0, kLastCodePoint}});
  ASSERT_EQ(sequences.size(), 9U);  // Unicode 15, table 3-7
  EXPECT_EQ(sequences[2].ranges[0], (ByteRange{0xE0, 0xE0}));
  EXPECT_EQ(sequences[2].ranges[1], (ByteRange{0xA0, 0xBF}));
  EXPECT_EQ(sequences[4].ranges[1], (ByteRange{0x80, 0x9F}));
  EXPECT_EQ(sequences[8].ranges[1], (ByteRange{0x80, 0x8F}));
}

TEST(Utf8Ranges, ARandomSetCoversItsCharactersAndNoOthers) {
  Rng rng(TestSeed());
  for (int round = 0; round < 200; ++round) {
    CodePointSet set;
    for (std::uint64_t i = 1 + rng.Below(4); i > 0; --i) {
      const auto first = static_cast<char32_t>(rng.Below(std::uint64_t{1} << (4 + rng.Below(17))));
      const auto last = static_cast<char32_t>(first + rng.Below(1 + rng.Below(5000)));
      set.push_back({first, std::min(last, kLastCodePoint)});
    }
    set = Normalized(set);
    const auto sequences = Utf8Sequences(set);
    const auto expect = [&](char32_t c) {
      if (c > kLastCodePoint || (c >= 0xD800 && c <= 0xDFFF)) return;
      bool in_set = false;
      for (const CodePointRange& range : set) in_set |= c >= range.first && c <= range.last;
      std::string character;
      AppendUtf8(c, character);
      ASSERT_EQ(Covers(sequences, character), in_set) << static_cast<std::uint32_t>(c);
    };
    for (const CodePointRange& range : set) {
      for (const int off : {-1, 0, 1}) {
        expect(static_cast<char32_t>(range.first + off));
        expect(static_cast<char32_t>(range.last + off));
      }
    }
    for (int i = 0; i < 300; ++i) expect(static_cast<char32_t>(rng.Below(0x110000)));
  }
}

TEST(Utf8Ranges, SurrogatesAreNoCharacters) {
  EXPECT_TRUE(Utf8Sequences({{0xD800, 0xDFFF}}).empty());
  EXPECT_FALSE(HasCharacters({{0xD800, 0xDFFF}}));
  EXPECT_TRUE(HasCharacters({{0xD800, 0xE000}}));
  EXPECT_FALSE(HasCharacters({}));
}

}  // namespace
}  // namespace troupe
