#include "base/bytes.h"

#include <cctype>
#include <charconv>
#include <cmath>

namespace troupe {

std::string ToString(Bytes bytes) {
  constexpr std::string_view kUnits[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
  if (bytes.count() < 1024) return fmt::format("{} B", bytes.count());
  double value = static_cast<double>(bytes.count());
  std::size_t unit = 0;
  while (value >= 1024 && unit + 1 < std::size(kUnits)) {
    value /= 1024;
    ++unit;
  }
  return fmt::format("{:.1f} {}", value, kUnits[unit]);
}

Result<Bytes> ParseBytes(std::string_view text) {
  const auto bad = [&] {
    return InvalidArgument("'{}' is not a size; expected a number and a unit, as 512MiB, 6GiB, 6G",
                           text);
  };
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || !std::isfinite(value) || value < 0) return bad();
  std::string unit;
  for (const char c : text.substr(static_cast<std::size_t>(end - text.data()))) {
    if (c != ' ') unit += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  }
  double factor = 1;
  if (unit.empty() || unit == "b") {
    factor = 1;
  } else {
    constexpr std::string_view kLetters = "kmgt";
    const std::size_t power = kLetters.find(unit[0]);
    const std::string_view rest = std::string_view(unit).substr(1);
    if (power == std::string_view::npos) return bad();
    if (rest.empty() || rest == "ib") {
      factor = std::pow(1024.0, static_cast<double>(power + 1));
    } else if (rest == "b") {
      factor = std::pow(1000.0, static_cast<double>(power + 1));
    } else {
      return bad();
    }
  }
  value *= factor;
  if (value >= 9.2e18) return bad();
  return Bytes(static_cast<std::uint64_t>(value));
}

}  // namespace troupe
