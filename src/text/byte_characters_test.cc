#include "text/byte_characters.h"

#include <gtest/gtest.h>

#include <set>

#include "text/utf8.h"

namespace troupe {
namespace {

TEST(ByteCharacters, AreGpt2sTable) {
  EXPECT_EQ(CharacterOfByte('!'), "!");
  EXPECT_EQ(CharacterOfByte('~'), "~");
  EXPECT_EQ(CharacterOfByte(0x00), "Ā");
  EXPECT_EQ(CharacterOfByte('\n'), "Ċ");
  EXPECT_EQ(CharacterOfByte(' '), "Ġ");
  EXPECT_EQ(CharacterOfByte(0x7F), "ġ");
  EXPECT_EQ(CharacterOfByte(0xA1), "¡");
  EXPECT_EQ(CharacterOfByte(0xAD), "Ń");  // the soft hyphen is the last that is not printable
  EXPECT_EQ(CharacterOfByte(0xFF), "ÿ");
}

TEST(ByteCharacters, StandForOneByteEach) {
  std::set<std::string_view> characters;
  for (int b = 0; b < 256; ++b) {
    const auto byte = static_cast<std::uint8_t>(b);
    characters.insert(CharacterOfByte(byte));
    EXPECT_EQ(ByteOfCharacter(DecodeUtf8(CharacterOfByte(byte))), byte);
  }
  EXPECT_EQ(characters.size(), 256u);
  EXPECT_EQ(ByteOfCharacter(0x144), std::nullopt);
  EXPECT_EQ(ByteOfCharacter(' '), std::nullopt);
}

TEST(ByteCharacters, AnyBytesComeBack) {
  std::string bytes;
  for (int b = 255; b >= 0; --b) bytes.push_back(static_cast<char>(b));
  EXPECT_EQ(CharactersToBytes(BytesToCharacters(bytes)), bytes);
}

TEST(ByteCharacters, ForeignCharactersStandForThemselves) {
  EXPECT_EQ(CharactersToBytes("Ġ▁\xFF"), " ▁\xFF");
}

}  // namespace
}  // namespace troupe
