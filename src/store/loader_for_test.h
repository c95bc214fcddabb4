// What tests of the loader share.
#pragma once

#include <utility>
#include <vector>

#include "store/expert_loader.h"

namespace troupe {

// Waits until nothing is under way; how each load ended, in that order.
inline std::vector<LoadEnd> RunToTheEnd(ExpertLoader& loader) {
  std::vector<LoadEnd> all;
  while (loader.under_way() > 0) {
    loader.Wait();
    for (LoadEnd& end : loader.TakeEnded()) all.push_back(std::move(end));
  }
  return all;
}

}  // namespace troupe
