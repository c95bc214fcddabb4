#include "cluster/whole_expert.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <span>

#include "store/running_checksum.h"

namespace troupe {

bool HasChecksum(const ExpertLayout& layout, const Mlp& weights, std::uint64_t checksum) {
  std::array<std::byte, 16384> piece;
  RunningChecksum running;
  const std::uint64_t total = layout.SlotBytes();
  for (std::uint64_t at = 0; at < total; at += piece.size()) {
    const std::span<std::byte> some =
        std::span(piece).first(std::min<std::uint64_t>(piece.size(), total - at));
    layout.CopySlot(weights, at, some);
    running.Add(some);
  }
  return running.value() == checksum;
}

}  // namespace troupe
