// A plan as its maker wrote it (JSON), with its epoch: the wire carries it and does not read it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"

namespace troupe {

struct PeerPlanNotice {
  std::uint64_t epoch = 0;
  std::string plan;

  bool operator==(const PeerPlanNotice&) const = default;
};

std::string ToString(const PeerPlanNotice& notice);
std::vector<std::byte> Encode(const PeerPlanNotice& notice);
Result<PeerPlanNotice> DecodePeerPlanNotice(std::span<const std::byte> frame);

}  // namespace troupe
