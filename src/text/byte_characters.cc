#include "text/byte_characters.h"

#include <array>

#include "text/utf8.h"

namespace troupe {
namespace {

constexpr bool StandsForItself(int byte) {
  return (byte >= 0x21 && byte <= 0x7E) || (byte >= 0xA1 && byte <= 0xAC) || byte >= 0xAE;
}

struct Table {
  std::array<std::string, 256> character;
  std::array<std::optional<std::uint8_t>, 256 + 68> byte;  // 68 bytes are not printable

  Table() {
    char32_t next = 0x100;
    for (int b = 0; b < 256; ++b) {
      const char32_t c = StandsForItself(b) ? static_cast<char32_t>(b) : next++;
      AppendUtf8(c, character[static_cast<std::size_t>(b)]);
      byte[c] = static_cast<std::uint8_t>(b);
    }
  }
};

const Table& TheTable() {
  static const Table table;
  return table;
}

}  // namespace

std::string_view CharacterOfByte(std::uint8_t byte) { return TheTable().character[byte]; }

std::optional<std::uint8_t> ByteOfCharacter(char32_t character) {
  const auto& bytes = TheTable().byte;
  return character < bytes.size() ? bytes[character] : std::nullopt;
}

std::string BytesToCharacters(std::string_view bytes) {
  std::string text;
  for (const char b : bytes) text += CharacterOfByte(static_cast<std::uint8_t>(b));
  return text;
}

std::string CharactersToBytes(std::string_view text) {
  std::string bytes;
  while (!text.empty()) {
    const Utf8Prefix prefix = ReadUtf8(text);
    const std::string_view character = text.substr(0, prefix.length);
    text.remove_prefix(prefix.length);
    const std::optional<std::uint8_t> byte = prefix.state == Utf8Prefix::State::kValid
                                                 ? ByteOfCharacter(DecodeUtf8(character))
                                                 : std::nullopt;
    if (byte.has_value()) {
      bytes.push_back(static_cast<char>(*byte));
    } else {
      bytes += character;
    }
  }
  return bytes;
}

}  // namespace troupe
