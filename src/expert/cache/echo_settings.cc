#include "expert/cache/echo_settings.h"

#include <fmt/core.h>

#include <array>
#include <charconv>
#include <cmath>

namespace troupe {
namespace {

constexpr double kMostMatches = 4096;

}  // namespace

Result<EchoSettings> ParseEchoSettings(std::string_view text) {
  const Status wrong = InvalidArgument(
      "'{}' found, expected four numbers as in {}: 1 to {} tokens, a share of at least 0, what is "
      "kept of a use between 0 and 1, and a number of steps above 0",
      text, ToString(EchoSettings()), kMostMatches);
  std::array<double, 4> numbers{};
  const char* at = text.data();
  const char* const last = at + text.size();
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    if (i > 0 && (at == last || *at++ != ',')) return wrong;
    const auto [end, error] = std::from_chars(at, last, numbers[i]);
    if (error != std::errc()) return wrong;
    at = end;
  }
  const auto [matches, share, kept, half_after] = numbers;
  const bool is_number = matches >= 1 && matches <= kMostMatches && std::floor(matches) == matches;
  const bool makes_sense = is_number && share >= 0 && share <= 1e6 && kept > 0 && kept < 1 &&
                           half_after > 0 && half_after <= 1e6;
  if (at != last || !makes_sense) return wrong;
  return EchoSettings{.matches = static_cast<std::size_t>(matches),
                      .recent_share = share,
                      .recent_kept = kept,
                      .half_after = half_after};
}

std::string ToString(const EchoSettings& settings) {
  return fmt::format("{},{},{},{}", settings.matches, settings.recent_share, settings.recent_kept,
                     settings.half_after);
}

}  // namespace troupe
