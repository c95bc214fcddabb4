#include "expert/substitution/buddy_lists.h"

#include <algorithm>
#include <numeric>

#include "base/check.h"

namespace troupe {
namespace {

// Shares are quotients of sums: a coverage of one is reached up to rounding.
constexpr double kRounding = 1e-9;

std::vector<Buddy> ListOf(const Coactivations& counts, ExpertId pivot,
                          const BuddyOptions& options) {
  if (!(counts.Activations(pivot) > 0)) return {};
  struct Peer {
    double count = 0;
    std::uint32_t expert = 0;
  };
  std::vector<Peer> peers;
  for (std::uint32_t e = 0; e < counts.grid().experts; ++e) {
    if (e == pivot.expert) continue;
    const double met = options.weighted ? counts.TogetherWeighted(pivot.layer, pivot.expert, e)
                                        : counts.Together(pivot.layer, pivot.expert, e);
    if (met + options.smoothing > 0) peers.push_back({met + options.smoothing, e});
  }
  std::ranges::stable_sort(peers, std::greater<>(), &Peer::count);
  const double all = std::accumulate(peers.begin(), peers.end(), 0.0,
                                     [](double sum, const Peer& peer) { return sum + peer.count; });
  std::vector<Buddy> list;
  double covered = 0;
  for (const Peer& peer : peers) {
    if (list.size() >= options.most || (!list.empty() && covered >= options.coverage - kRounding))
      break;
    covered += peer.count / all;
    list.push_back({peer.expert, static_cast<float>(peer.count / all)});
  }
  return list;
}

}  // namespace

double BuddyLists::MeanLength() const {
  std::size_t some = 0, length = 0;
  for (const auto& list : lists) {
    some += list.empty() ? 0 : 1;
    length += list.size();
  }
  return some == 0 ? 0 : static_cast<double>(length) / static_cast<double>(some);
}

BuddyLists MakeBuddyLists(const Coactivations& counts, const BuddyOptions& options) {
  const ExpertGrid grid = counts.grid();
  BuddyLists made{.grid = grid, .lists = {}};
  made.lists.reserve(grid.Count());
  for (std::uint32_t layer = 0; layer < grid.layers; ++layer) {
    for (std::uint32_t e = 0; e < grid.experts; ++e) {
      made.lists.push_back(ListOf(counts, {layer, e}, options));
    }
  }
  return made;
}

Status Validate(const BuddyLists& lists) {
  const ExpertGrid grid = lists.grid;
  if (lists.lists.size() != grid.Count()) {
    return DataLoss("{} buddy lists, {} expected: one for each of {} experts of {} layers",
                    lists.lists.size(), grid.Count(), grid.experts, grid.layers);
  }
  std::vector<bool> seen(grid.experts);
  for (std::size_t i = 0; i < lists.lists.size(); ++i) {
    const ExpertId pivot{static_cast<std::uint32_t>(i / grid.experts),
                         static_cast<std::uint32_t>(i % grid.experts)};
    seen.assign(grid.experts, false);
    float before = 1;
    for (const Buddy& buddy : lists.lists[i]) {
      if (buddy.expert >= grid.experts || buddy.expert == pivot.expert || seen[buddy.expert]) {
        return DataLoss("buddies of {}: expert {}, another of the layer's {} expected, each once",
                        ToString(pivot), buddy.expert, grid.experts);
      }
      if (!(buddy.share > 0) || buddy.share > before) {
        return DataLoss("buddies of {}: expert {} has share {}, above 0 and at most {} expected",
                        ToString(pivot), buddy.expert, buddy.share, before);
      }
      seen[buddy.expert] = true;
      before = buddy.share;
    }
  }
  return OkStatus();
}

}  // namespace troupe
