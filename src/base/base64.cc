#include "base/base64.h"

#include <algorithm>
#include <cstdint>

namespace troupe {
namespace {

constexpr std::string_view kBase64Digits =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

}  // namespace

std::string Base64(std::span<const std::byte> bytes) {
  std::string text;
  text.reserve((bytes.size() + 2) / 3 * 4);
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    const std::size_t count = std::min<std::size_t>(3, bytes.size() - i);
    std::uint32_t group = 0;
    for (std::size_t b = 0; b < 3; ++b) {
      group = group << 8 | (b < count ? std::to_integer<std::uint32_t>(bytes[i + b]) : 0U);
    }
    for (std::size_t digit = 0; digit < 4; ++digit) {
      text += digit <= count ? kBase64Digits[group >> (18 - 6 * digit) & 63] : '=';
    }
  }
  return text;
}

std::optional<std::vector<std::byte>> BytesOfBase64(std::string_view text) {
  if (text.size() % 4 != 0) return std::nullopt;
  std::size_t digits = text.size();
  for (int padding = 0; padding < 2 && digits > 0 && text[digits - 1] == '='; ++padding) --digits;
  std::vector<std::byte> bytes;
  bytes.reserve(digits * 3 / 4);
  std::uint32_t group = 0;
  int bits = 0;
  for (const char c : text.substr(0, digits)) {
    const std::size_t digit = kBase64Digits.find(c);
    if (digit == std::string_view::npos) return std::nullopt;
    group = (group << 6 | static_cast<std::uint32_t>(digit)) & 0xffff;
    bits += 6;
    if (bits < 8) continue;
    bits -= 8;
    bytes.push_back(static_cast<std::byte>(group >> bits & 0xff));
  }
  const bool rest_is_zero = (group & ((1U << bits) - 1)) == 0;
  if (!rest_is_zero) return std::nullopt;
  return bytes;
}

}  // namespace troupe
