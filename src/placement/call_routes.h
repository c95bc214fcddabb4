// Which server answers for an expert that the calling server lacks: the holder over the best link;
// among equals callers are spread in proportion to the holders' speed. Fixed by placement, caller
// and expert alone, so that objective, simulator and cluster agree on it. An expert that nobody
// holds has no host: no placement is so, but a cluster that has lost a server may be.
#pragma once

#include <cstdint>
#include <vector>

#include "placement/placement.h"
#include "placement/problem.h"

namespace troupe {

class CallRoutes {
 public:
  static constexpr std::uint32_t kNobody = ~std::uint32_t{0};

  CallRoutes(const PlacementProblem& problem, const HolderTable& holders);

  std::uint32_t HostOf(std::uint32_t caller, ExpertIndex e) const {
    return hosts_[static_cast<std::size_t>(caller) * experts_ + e];
  }
  // After holders of `e` changed.
  void Renew(ExpertIndex e, const HolderTable& holders);

 private:
  std::uint32_t Choose(std::uint32_t caller, ExpertIndex e) const;

  const PlacementProblem* problem_;
  std::size_t experts_;
  std::vector<double> speeds_;        // by server
  std::vector<std::uint32_t> hosts_;  // [caller][expert]
  std::vector<std::uint32_t> among_;  // scratch: holders of the current expert
};

}  // namespace troupe
