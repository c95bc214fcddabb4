#include "expert/substitution/low_copies.h"

#include <algorithm>
#include <charconv>
#include <limits>
#include <numeric>
#include <string_view>

namespace troupe {
namespace {

Result<double> ParseShare(std::string_view text) {
  double share = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), share);
  if (error != std::errc() || end != text.data() + text.size() || !(share >= 0 && share <= 1)) {
    return InvalidArgument("prefill={}: expected a share from 0 to 1, as in prefill=0.25", text);
  }
  return share;
}

}  // namespace

Result<LowCopyOptions> ParseLowCopies(const std::string& text) {
  constexpr std::string_view kPrefill = "prefill=";
  LowCopyOptions options;
  if (text == "off") return options;
  for (std::string_view rest = text;;) {
    const std::size_t comma = rest.find(',');
    const std::string_view part = rest.substr(0, comma);
    if (part == "decode") {
      options.decode = true;
    } else if (part.starts_with(kPrefill)) {
      TROUPE_ASSIGN_OR_RETURN(options.prefill_share, ParseShare(part.substr(kPrefill.size())));
    } else {
      return InvalidArgument(
          "'{}' found, expected off, prefill=SHARE, decode, or the last two "
          "with a comma between",
          part);
    }
    if (comma == std::string_view::npos) return options;
    rest.remove_prefix(comma + 1);
  }
}

std::string ToString(const LowCopyOptions& options) {
  if (!options.any()) return "off";
  std::string text;
  if (options.prefill_share > 0) text = fmt::format("prefill={}", options.prefill_share);
  if (options.decode) text += text.empty() ? "decode" : ",decode";
  return text;
}

std::vector<bool> LeastPopular(std::span<const double> popularity, double share) {
  std::vector<std::size_t> order(popularity.size());
  std::iota(order.rbegin(), order.rend(), std::size_t{0});
  std::ranges::stable_sort(order, {}, [popularity](std::size_t i) { return popularity[i]; });
  // A share of all holds all, whatever the sums' rounding.
  const double most = share >= 1 ? std::numeric_limits<double>::infinity()
                                 : share * std::reduce(popularity.begin(), popularity.end(), 0.0);
  std::vector<bool> low(popularity.size());
  double sum = 0;
  if (share <= 0) return low;
  for (const std::size_t i : order) {
    sum += popularity[i];
    if (sum > most) break;
    low[i] = true;
  }
  return low;
}

std::vector<ExpertCopy> LeastCopies(std::span<const RowKinds> demands,
                                    const LowCopyOptions& options) {
  std::vector<double> popularity;  // among rows of prompts
  for (const RowKinds& rows : demands) popularity.push_back(rows.prompt);
  const std::vector<bool> tail = LeastPopular(popularity, options.prefill_share);
  std::vector<ExpertCopy> copies;
  for (std::size_t i = 0; i < demands.size(); ++i) {
    const RowKinds& rows = demands[i];
    const bool low =
        rows.exact == 0 && (rows.prompt == 0 || tail[i]) && (rows.decode == 0 || options.decode);
    copies.push_back(low ? ExpertCopy::kLow : ExpertCopy::kFull);
  }
  return copies;
}

}  // namespace troupe
