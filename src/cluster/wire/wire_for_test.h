// For tests of messages: frames as hexadecimal digits. Random messages: random_messages_for_test.h.
#pragma once

#include <cctype>
#include <cstddef>
#include <ostream>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "base/status.h"

namespace troupe {

// What GoogleTest prints where two differ.
inline void PrintTo(const Status& status, std::ostream* out) { *out << status.ToString(); }

using WireFrame = std::vector<std::byte>;

// Digits in pairs; spaces between them mean nothing.
inline WireFrame FrameOfHex(std::string_view text) {
  WireFrame frame;
  unsigned value = 0;
  bool half = false;
  for (const char c : text) {
    if (c == ' ') continue;
    TROUPE_CHECK(std::isxdigit(static_cast<unsigned char>(c)));
    value = value * 16 + static_cast<unsigned>(c <= '9' ? c - '0' : c - 'a' + 10);
    half = !half;
    if (half) continue;
    frame.push_back(static_cast<std::byte>(value));
    value = 0;
  }
  TROUPE_CHECK(!half);
  return frame;
}

inline std::string HexOfFrame(std::span<const std::byte> frame) {
  std::string text;
  for (const std::byte b : frame) text += fmt::format("{:02x}", std::to_integer<unsigned>(b));
  return text;
}

}  // namespace troupe
