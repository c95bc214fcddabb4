// Looks at the residual stream on its way through the layers: for measurements of what it would
// have predicted. No observer, no cost; none may change anything.
#pragma once

#include <cstddef>
#include <cstdint>

namespace troupe {

enum class StreamPlace { kAttentionInput, kGateInput };

class StreamObserver {
 public:
  virtual ~StreamObserver() = default;
  // Rows of the pass' tokens, as long as the model is wide; good during the call. The gate input of
  // a layer without experts is that of its dense feed-forward.
  virtual void Saw(std::uint32_t layer, StreamPlace place, const float* rows,
                   std::size_t tokens) = 0;
};

}  // namespace troupe
