#include "text/utf8.h"

#include <cstdint>

#include "base/check.h"

namespace troupe {
namespace {

struct Lead {
  std::size_t length;                                 // of the character; 0: no character begins so
  std::uint8_t second_min = 0x80, second_max = 0xBF;  // later bytes are always 80..BF
};

Lead LeadOf(std::uint8_t byte) {
  if (byte < 0x80) return {1};
  if (byte < 0xC2) return {0};  // a continuation, or an overlong form of ASCII
  if (byte < 0xE0) return {2};
  if (byte == 0xE0) return {3, 0xA0, 0xBF};
  if (byte == 0xED) return {3, 0x80, 0x9F};  // beyond lie the surrogates
  if (byte < 0xF0) return {3};
  if (byte == 0xF0) return {4, 0x90, 0xBF};
  if (byte < 0xF4) return {4};
  if (byte == 0xF4) return {4, 0x80, 0x8F};
  return {0};
}

}  // namespace

Utf8Prefix ReadUtf8(std::string_view text) {
  TROUPE_CHECK(!text.empty());
  const Lead lead = LeadOf(static_cast<std::uint8_t>(text[0]));
  if (lead.length == 0) return {Utf8Prefix::State::kInvalid, 1};
  for (std::size_t i = 1; i < lead.length; ++i) {
    if (i == text.size()) return {Utf8Prefix::State::kCutShort, i};
    const auto byte = static_cast<std::uint8_t>(text[i]);
    const std::uint8_t min = i == 1 ? lead.second_min : 0x80;
    const std::uint8_t max = i == 1 ? lead.second_max : 0xBF;
    if (byte < min || byte > max) return {Utf8Prefix::State::kInvalid, i};
  }
  return {Utf8Prefix::State::kValid, lead.length};
}

std::optional<std::size_t> FindInvalidUtf8(std::string_view text) {
  for (std::size_t at = 0; at < text.size();) {
    if (static_cast<std::uint8_t>(text[at]) < 0x80) {
      ++at;
      continue;
    }
    const Utf8Prefix prefix = ReadUtf8(text.substr(at));
    if (prefix.state != Utf8Prefix::State::kValid) return at;
    at += prefix.length;
  }
  return std::nullopt;
}

char32_t DecodeUtf8(std::string_view character) {
  const auto first = static_cast<std::uint8_t>(character[0]);
  if (character.size() == 1) return first;
  char32_t value = first & (0xFFu >> (character.size() + 1));
  for (const char c : character.substr(1))
    value = value << 6 | (static_cast<std::uint8_t>(c) & 0x3F);
  return value;
}

void AppendUtf8(char32_t character, std::string& out) {
  const auto put = [&out](char32_t byte) { out.push_back(static_cast<char>(byte)); };
  if (character < 0x80) {
    put(character);
  } else if (character < 0x800) {
    put(0xC0 | character >> 6);
    put(0x80 | (character & 0x3F));
  } else if (character < 0x10000) {
    put(0xE0 | character >> 12);
    put(0x80 | (character >> 6 & 0x3F));
    put(0x80 | (character & 0x3F));
  } else {
    put(0xF0 | character >> 18);
    put(0x80 | (character >> 12 & 0x3F));
    put(0x80 | (character >> 6 & 0x3F));
    put(0x80 | (character & 0x3F));
  }
}

}  // namespace troupe
