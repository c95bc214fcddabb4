#include "kernels/delta_net.h"

#include "base/check.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/delta_net.cc"
#include "hwy/foreach_target.h"  // compiles this file once per target
#include "hwy/highway.h"
#include "kernels/lanes-inl.h"

HWY_BEFORE_NAMESPACE();
namespace troupe::HWY_NAMESPACE {

HWY_INLINE LaneVec SumChains(const LaneVec (&sums)[DeltaNetHead::kChains]) {
  LaneVec four[4];
  for (std::size_t i = 0; i < 4; ++i) four[i] = hn::Add(sums[i], sums[i + 4]);
  return hn::Add(hn::Add(four[0], four[2]), hn::Add(four[1], four[3]));
}

// One token and one vector of columns, whose rows are a tile apart.
HWY_INLINE LaneVec StepDeltaNet(std::size_t keys, const float* HWY_RESTRICT q,
                                const float* HWY_RESTRICT k, LaneVec v, float decay, float beta,
                                const float* from, float* to) {
  constexpr std::size_t kTile = DeltaNetHead::kTile, kChains = DeltaNetHead::kChains;
  const LaneTag d;
  const LaneVec kept = hn::Set(d, decay);
  LaneVec sums[kChains];
  for (LaneVec& sum : sums) sum = hn::Zero(d);
  for (std::size_t i = 0; i < keys; i += kChains) {
    for (std::size_t c = 0; c < kChains; ++c) {
      sums[c] = Fma(hn::LoadU(d, from + (i + c) * kTile), hn::Set(d, k[i + c]), sums[c]);
    }
  }
  const LaneVec delta = hn::Mul(hn::Sub(v, hn::Mul(kept, SumChains(sums))), hn::Set(d, beta));
  for (LaneVec& sum : sums) sum = hn::Zero(d);
  for (std::size_t i = 0; i < keys; i += kChains) {
    for (std::size_t c = 0; c < kChains; ++c) {
      const LaneVec before = hn::Mul(hn::LoadU(d, from + (i + c) * kTile), kept);
      const LaneVec after = Fma(hn::Set(d, k[i + c]), delta, before);
      hn::StoreU(after, d, to + (i + c) * kTile);
      sums[c] = Fma(after, hn::Set(d, q[i + c]), sums[c]);
    }
  }
  return SumChains(sums);
}

void DeltaNetTiles(const DeltaNetHead& head, std::size_t first, std::size_t count) {
  const LaneTag d;
  for (std::size_t tile = first; tile < first + count; ++tile) {
    for (std::size_t v = 0; v < kVectors; ++v) {
      const std::size_t column = v * kVectorLanes;
      const std::size_t at = tile * head.key_dim * DeltaNetHead::kTile + column;
      const std::size_t channel = tile * DeltaNetHead::kTile + column;
      const float* from = head.before + at;
      for (std::size_t t = 0; t < head.tokens; ++t) {
        const std::size_t row = t * head.stride, gate = t * head.gate_stride;
        const LaneVec out = StepDeltaNet(head.key_dim, head.q + row, head.k + row,
                                         hn::LoadU(d, head.v + row + channel), head.decay[gate],
                                         head.beta[gate], from, head.after + at);
        hn::StoreU(out, d, head.out + t * head.out_stride + channel);
        from = head.after + at;
      }
    }
  }
}

}  // namespace troupe::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace troupe {

HWY_EXPORT(DeltaNetTiles);
void RunDeltaNet(const DeltaNetHead& head, std::size_t first, std::size_t count) {
  TROUPE_DCHECK(head.key_dim % DeltaNetHead::kChains == 0 && first + count <= head.tiles());
  HWY_DYNAMIC_DISPATCH(DeltaNetTiles)(head, first, count);
}

}  // namespace troupe
#endif
