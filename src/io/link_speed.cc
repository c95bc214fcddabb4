#include "io/link_speed.h"

#include <array>
#include <charconv>
#include <cmath>
#include <optional>
#include <utility>

#include "base/bytes.h"

namespace troupe {
namespace {

constexpr std::string_view kUnlimited = "unlimited";
constexpr std::array<std::pair<std::string_view, double>, 4> kTimeUnits = {
    {{"ns", 1e-9}, {"us", 1e-6}, {"ms", 1e-3}, {"s", 1.0}}};

std::optional<double> ParseSeconds(std::string_view text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || !std::isfinite(value) || value < 0) return std::nullopt;
  const std::string_view unit = text.substr(static_cast<std::size_t>(end - text.data()));
  for (const auto& [name, seconds] : kTimeUnits) {
    if (unit == name) return value * seconds;
  }
  return std::nullopt;
}

}  // namespace

Result<LinkSpeed> ParseLinkSpeed(std::string_view text) {
  const auto bad = [&] {
    return InvalidArgument(
        "'{}' is not the speed of a link; expected bytes a second and maybe a latency, as "
        "500MiB/s, 2GiB/100us, unlimited/1ms",
        text);
  };
  std::string_view rate = text.substr(0, text.find('/'));
  std::string_view rest = text.substr(rate.size());
  LinkSpeed link;
  if (rate != kUnlimited) {
    const auto bytes = ParseBytes(rate);
    if (!bytes.ok() || *bytes == 0_B) return bad();
    link.bytes_per_second = static_cast<double>(bytes->count());
    if (rest == "/s" || rest.starts_with("/s/")) rest.remove_prefix(2);
  }
  if (rest.empty()) return link;
  const auto latency = ParseSeconds(rest.substr(1));
  if (!latency.has_value()) return bad();
  link.latency_seconds = *latency;
  return link;
}

std::string ToString(const LinkSpeed& link) {
  std::string text(kUnlimited);
  if (link.bytes_per_second > 0) {
    text = ToString(Bytes(static_cast<std::uint64_t>(link.bytes_per_second))) + "/s";
  }
  if (link.latency_seconds <= 0) return text;
  auto unit = kTimeUnits.begin();
  while (unit + 1 != kTimeUnits.end() && link.latency_seconds >= (unit + 1)->second) ++unit;
  return text + fmt::format("/{:.4g}{}", link.latency_seconds / unit->second, unit->first);
}

}  // namespace troupe
