// A figure that /metrics tells of something that the server knows nothing about, as a cluster's.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace troupe {

struct ExtraMetric {
  std::string name, help;
  bool is_counter = false;
  double value = 0;
  std::vector<std::pair<std::string, std::string>> labels = {};
};

}  // namespace troupe
