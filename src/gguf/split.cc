#include "gguf/split.h"

#include <fmt/core.h>

#include <charconv>

namespace troupe {
namespace {

constexpr std::string_view kExtension = ".gguf";
constexpr std::size_t kDigits = 5;

// Takes `expected` off the end of `text`; whether it was there.
bool TakeSuffix(std::string_view& text, std::string_view expected) {
  if (!text.ends_with(expected)) return false;
  text.remove_suffix(expected.size());
  return true;
}

std::optional<std::uint32_t> TakeNumber(std::string_view& text) {
  if (text.size() < kDigits) return std::nullopt;
  const std::string_view digits = text.substr(text.size() - kDigits);
  std::uint32_t number = 0;
  const auto [end, error] = std::from_chars(digits.begin(), digits.end(), number);
  if (error != std::errc() || end != digits.end()) return std::nullopt;
  text.remove_suffix(kDigits);
  return number;
}

}  // namespace

std::optional<SplitName> ParseSplitName(std::string_view path) {
  if (!TakeSuffix(path, kExtension)) return std::nullopt;
  const auto count = TakeNumber(path);
  if (!count.has_value() || !TakeSuffix(path, "-of-")) return std::nullopt;
  const auto part = TakeNumber(path);
  if (!part.has_value() || !TakeSuffix(path, "-")) return std::nullopt;
  if (*part < 1 || *part > *count) return std::nullopt;
  return SplitName{.prefix = std::string(path), .part = *part, .count = *count};
}

std::string FormatSplitName(const SplitName& name) {
  return fmt::format("{}-{:05}-of-{:05}{}", name.prefix, name.part, name.count, kExtension);
}

}  // namespace troupe
