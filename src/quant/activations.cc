// The scalar truth of quantized activations. See activations.h.
#include "quant/activations.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/check.h"

namespace troupe {
namespace {

void QuantizeGroup(const float* x, ActivationGroup& group) {
  group = {};
  float max = 0.0f;
  for (std::size_t i = 0; i < kGroupCols; ++i) {
    if (!std::isfinite(x[i])) {
      group.scale = std::numeric_limits<float>::quiet_NaN();
      return;
    }
    max = std::max(max, std::fabs(x[i]));
  }
  if (max < kTinyActivation) return;
  const float inverse = 127.0f / max;
  group.scale = max / 127.0f;
  for (std::size_t i = 0; i < kGroupCols; ++i) {
    group.codes[i] = static_cast<std::int8_t>(std::nearbyint(x[i] * inverse));
    group.half_sum[i / 16] += group.codes[i];
  }
  group.sum = group.half_sum[0] + group.half_sum[1];
}

}  // namespace

Activations MakeActivations(const float* values, std::size_t stride, std::size_t tokens,
                            std::size_t cols, std::span<std::byte> storage) {
  Activations x{.tokens = tokens, .cols = cols, .values = values, .stride = stride};
  if (storage.empty()) return x;
  TROUPE_CHECK(cols % kGroupCols == 0);
  TROUPE_CHECK(storage.size() >= ActivationBytes(tokens, cols));
  TROUPE_CHECK(reinterpret_cast<std::uintptr_t>(storage.data()) % alignof(ActivationGroup) == 0);
  x.groups = reinterpret_cast<ActivationGroup*>(storage.data());
  return x;
}

void QuantizeActivationsReference(const Activations& x, std::size_t token) {
  TROUPE_CHECK(x.groups != nullptr && token < x.tokens);
  for (std::size_t g = 0; g < x.cols / kGroupCols; ++g) {
    QuantizeGroup(x.Values(token) + g * kGroupCols, x.Groups(token)[g]);
  }
}

}  // namespace troupe
