// Percentages of command lines.
#pragma once

#include <charconv>
#include <optional>
#include <string_view>
#include <system_error>

namespace troupe {

// Of "25%"; nothing if it is no such thing.
inline std::optional<double> PercentOf(std::string_view text) {
  if (!text.ends_with('%')) return std::nullopt;
  double percent = 0;
  const char* end = text.data() + text.size() - 1;
  const auto [stop, error] = std::from_chars(text.data(), end, percent);
  if (error != std::errc() || stop != end) return std::nullopt;
  return percent;
}

}  // namespace troupe
