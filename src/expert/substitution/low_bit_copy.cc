#include "expert/substitution/low_bit_copy.h"

#include <fmt/core.h>

#include "expert/substitution/drop_slots.h"

namespace troupe {

std::string LowBitCopy::ToString() const {
  return options_.most_share < 1 ? fmt::format("low-bit:most-share={}", options_.most_share)
                                 : "low-bit";
}

std::vector<NamedCount> LowBitCopy::counts() const {
  return {{"no_copy", counts_.no_copy}, {"too_heavy", counts_.too_heavy}, {"taken", counts_.taken}};
}

void LowBitCopy::Answer(LayerAnswers& layer) {
  const RoutedLayer& routed = layer.routed();
  for (std::size_t token = 0; token < layer.tokens(); ++token) {
    for (std::uint32_t slot = 0; slot < routed.top_k; ++slot) {
      if (!layer.Open(token, slot)) continue;
      const std::uint32_t expert = routed.Chosen(token)[slot].expert;
      if (routed.low_bit.empty() || routed.low_bit[expert] == 0) {
        ++counts_.no_copy;
      } else if (WeightShare(routed.Chosen(token), slot) > options_.most_share) {
        ++counts_.too_heavy;
      } else {
        ++counts_.taken;
        layer.TakeLowBit(token, slot);
      }
    }
  }
}

}  // namespace troupe
