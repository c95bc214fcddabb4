// The printable stand-ins by which byte-level BPE vocabularies write bytes (GPT-2's table): bytes
// that are printable in Latin-1 stand for themselves, the others for U+0100 and up, in order.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace troupe {

std::string_view CharacterOfByte(std::uint8_t byte);  // in UTF-8
std::optional<std::uint8_t> ByteOfCharacter(char32_t character);

// A token's text as the vocabulary writes it, from its bytes, and back. A character that stands for
// no byte stands for itself: it can only come from a vocabulary that is not quite byte-level.
std::string BytesToCharacters(std::string_view bytes);
std::string CharactersToBytes(std::string_view text);

}  // namespace troupe
