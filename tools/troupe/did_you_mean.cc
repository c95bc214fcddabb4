#include "troupe/did_you_mean.h"

#include <algorithm>
#include <vector>

namespace troupe {

std::size_t EditDistance(std::string_view a, std::string_view b) {
  // A row for each letter of `a`: the distances of its beginnings from those of `b`.
  std::vector<std::size_t> before_last, last(b.size() + 1), row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) last[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t changed = last[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      row[j] = std::min({changed, last[j] + 1, row[j - 1] + 1});
      const bool swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
      if (swapped) row[j] = std::min(row[j], before_last[j - 2] + 1);
    }
    before_last = last;
    last = row;
  }
  return last[b.size()];
}

std::optional<std::string> DidYouMean(std::string_view typed, std::span<const std::string> words) {
  constexpr std::size_t kShortestBeginning = 3;
  const std::size_t letters = typed.size() - std::min(typed.find_first_not_of('-'), typed.size());
  std::optional<std::string> best;
  std::size_t least = std::max<std::size_t>(1, letters / 3) + 1;
  for (const std::string& word : words) {
    const std::size_t distance = EditDistance(typed, word);
    if (distance >= least) continue;
    least = distance;
    best = word;
  }
  if (best || letters < kShortestBeginning) return best;
  const auto begun = std::ranges::find_if(
      words, [typed](const std::string& word) { return word.starts_with(typed); });
  return begun == words.end() ? std::nullopt : std::optional(*begun);
}

}  // namespace troupe
