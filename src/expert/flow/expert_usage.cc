#include "expert/flow/expert_usage.h"

#include <algorithm>

namespace troupe {
namespace {

template <typename Change>
void ForEachLayer(ExpertUsage& usage, const ExpertUsage& other, Change change) {
  usage.layers.resize(std::max(usage.layers.size(), other.layers.size()));
  for (std::size_t i = 0; i < other.layers.size(); ++i) {
    change(usage.layers[i].hits, other.layers[i].hits);
    change(usage.layers[i].asks, other.layers[i].asks);
  }
}

}  // namespace

ExpertUsage& ExpertUsage::operator+=(const ExpertUsage& part) {
  ForEachSum(*this, part, [](ShareBy, auto& sum, const auto& more) { sum += more; });
  ForEachLayer(*this, part, [](auto& sum, auto more) { sum += more; });
  return *this;
}

ExpertUsage& ExpertUsage::operator-=(const ExpertUsage& part) {
  ForEachSum(*this, part, [](ShareBy, auto& sum, const auto& less) { sum -= less; });
  ForEachLayer(*this, part, [](auto& sum, auto less) { sum -= less; });
  return *this;
}

ExpertUsage ExpertUsage::Since(const ExpertUsage& before) const {
  ExpertUsage since = *this;
  since -= before;
  return since;
}

}  // namespace troupe
