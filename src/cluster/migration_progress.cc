#include "cluster/migration_progress.h"

#include <algorithm>
#include <utility>

namespace troupe {

void MigrationProgress::Look(const ClusterPlan& plan, std::span<const Node> here, Nanos now) {
  if (plan.epoch != epoch_) {
    epoch_ = plan.epoch;
    began_ = moved_at_ = now;
    ways_.clear();
  }
  for (auto& [name, way] : ways_) way.is_here = false;
  for (const Node& node : here) {
    const ClusterPlan::Node* const planned = plan.Find(node.name);
    if (planned == nullptr) continue;
    const auto [found, is_new] = ways_.try_emplace(node.name);
    Way& way = found->second;
    way.is_here = true;
    if (is_new) {
      for (std::uint32_t layer = 0; layer < planned->held.size(); ++layer) {
        for (const std::uint32_t expert : planned->held[layer]) {
          if (node.holds({layer, expert})) continue;
          way.to_come.push_back({layer, expert});
          way.bytes_left += bytes_of_(layer);
        }
      }
    }
    std::erase_if(way.to_come, [&](ExpertId id) {
      if (!node.holds(id)) return false;
      ++way.moved;
      way.bytes_moved += bytes_of_(id.layer);
      way.bytes_left -= bytes_of_(id.layer);
      moved_at_ = now;
      return true;
    });
    if (node.is_done) {
      way.to_come.clear();
      way.bytes_left = 0;
    }
  }
}

MigrationLook MigrationProgress::At(Nanos now) const {
  MigrationLook look{.epoch = epoch_, .nodes = {}};
  if (epoch_ == 0) return look;
  look.seconds = static_cast<double>(now - began_) * 1e-9;
  look.quiet_seconds = static_cast<double>(now - moved_at_) * 1e-9;
  double left = 0;
  bool all_have_begun = true;
  for (const auto& [name, way] : ways_) {
    const std::size_t experts = way.moved + way.to_come.size();
    if (!way.is_here || experts == 0) continue;
    look.nodes.push_back({.name = name, .experts = experts, .moved = way.moved});
    look.experts += experts;
    look.moved += way.moved;
    look.bytes += way.bytes_moved + way.bytes_left;
    look.bytes_moved += way.bytes_moved;
    if (way.to_come.empty()) continue;
    all_have_begun = all_have_begun && way.bytes_moved > 0;
    if (way.bytes_moved > 0) {
      left = std::max(left, look.seconds * static_cast<double>(way.bytes_left) /
                                static_cast<double>(way.bytes_moved));
    }
  }
  if (all_have_begun && look.moved < look.experts) look.seconds_left = left;
  return look;
}

}  // namespace troupe
