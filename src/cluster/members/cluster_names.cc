#include "cluster/members/cluster_names.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <utility>

#include "cluster/members/cluster_keys.h"

namespace troupe {
namespace {

constexpr std::size_t kMostNamed = 8;  // of many clusters

// Letters that are to be put, taken away or exchanged.
std::size_t EditsBetween(std::string_view from, std::string_view to) {
  std::vector<std::size_t> edits(to.size() + 1);
  std::iota(edits.begin(), edits.end(), std::size_t{0});
  for (std::size_t i = 0; i < from.size(); ++i) {
    std::size_t before = std::exchange(edits[0], i + 1);
    for (std::size_t j = 0; j < to.size(); ++j) {
      const std::size_t exchanged = before + (from[i] == to[j] ? 0 : 1);
      before = edits[j + 1];
      edits[j + 1] = std::min({exchanged, edits[j] + 1, before + 1});
    }
  }
  return edits.back();
}

std::string ListOf(const std::vector<std::string>& names) {
  const std::size_t named = std::min(names.size(), kMostNamed);
  std::string list;
  for (std::size_t i = 0; i < named; ++i) {
    const bool is_last = i + 1 == names.size();
    list += fmt::format("{}'{}'", i == 0 ? "" : is_last ? " and " : ", ", names[i]);
  }
  return named < names.size() ? list + fmt::format(" and {} others", names.size() - named) : list;
}

}  // namespace

std::vector<std::string> ClustersOf(const std::vector<KvEntry>& entries) {
  std::vector<std::string> names;
  for (const KvEntry& entry : entries) {
    std::string name(ClusterKeys::ClusterOf(entry.key));
    if (!name.empty()) names.push_back(std::move(name));
  }
  std::ranges::sort(names);
  names.erase(std::unique(names.begin(), names.end()), names.end());
  return names;
}

std::string SayUnknownCluster(std::string_view cluster, const std::vector<std::string>& others) {
  const auto edits = [&](const std::string& name) { return EditsBetween(cluster, name); };
  const std::string& nearest = *std::ranges::min_element(others, {}, edits);
  return fmt::format(
      "etcd has no cluster '{}', but {}: did you mean '{}'? A new one begins with --new-cluster",
      cluster, ListOf(others), nearest);
}

std::string SayNewCluster(std::string_view cluster, const std::vector<std::string>& others) {
  if (others.empty()) return fmt::format("cluster '{}' begins: etcd has none yet", cluster);
  return fmt::format("cluster '{}' begins: etcd has {}", cluster, ListOf(others));
}

}  // namespace troupe
