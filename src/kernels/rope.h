// Rotary position embedding: rotates pairs of elements of a head by an angle that grows with the
// token's position. RopeTable computes the cosines and sines of a batch once for all layers and
// heads; ApplyRope rotates one head. Knows linear scaling, per-dimension frequency factors (the
// rope_freqs tensor of Llama 3) and YaRN, with the meaning that ggml gives them.
//
// Bits: angles in double, cosine and sine rounded to float once; then, for a pair (a, b),
// a' = fma(-b, sin, a * cos) and b' = fma(a, sin, b * cos). Truth: rope_test.cc.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/bytes.h"

namespace troupe {

// Which elements make a pair: (2i, 2i + 1) as Llama's GGUF files, or (i, i + dims / 2) as NEOX.
enum class RopePairs { kAdjacent, kHalves };

struct RopeParams {
  RopePairs pairs = RopePairs::kHalves;
  std::uint32_t dims = 0;  // leading elements of a head that rotate; even
  float freq_base = 10000.0f;
  float freq_scale = 1.0f;               // 1 / the context extension factor
  std::vector<float> freq_factors = {};  // empty, or dims / 2 divisors of the frequencies
  float ext_factor = 0.0f;               // 0: linear scaling; 1: YaRN's mix; between: a blend
  float attn_factor = 1.0f;              // multiplies cosine and sine
  float beta_fast = 32.0f;               // YaRN: dimensions that turn more often than this within
  float beta_slow = 1.0f;                // original_context extrapolate; less than this interpolate
  std::uint32_t original_context = 0;    // YaRN: as trained; needed if ext_factor is not 0
};

// Not thread-safe while Fill runs; afterwards any thread may read.
class RopeTable {
 public:
  RopeTable(RopeParams params, std::size_t max_tokens);

  static Bytes BytesFor(const RopeParams& params, std::size_t max_tokens);

  // Row t is for positions[t]; at most max_tokens of them. About 1 microsecond a row of 64 pairs.
  void Fill(std::span<const std::int32_t> positions);

  const RopeParams& params() const { return params_; }
  // dims / 2 values each.
  const float* Cos(std::size_t token) const { return table_.data() + token * params_.dims; }
  const float* Sin(std::size_t token) const { return Cos(token) + params_.dims / 2; }

 private:
  RopeParams params_;
  std::size_t max_tokens_;
  std::vector<double> freqs_;  // angle per position, one a pair
  double magnitude_ = 1.0;     // on cosine and sine
  std::vector<float> table_;
};

// Rotates the first params().dims elements of one head of the batch's token `token`, in place.
void ApplyRope(const RopeTable& table, std::size_t token, float* head);

}  // namespace troupe
