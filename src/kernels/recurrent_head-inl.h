// The loops over tiles and tokens that all kinds of recurrent heads have in common, and their sums
// along the keys. Included once a target; simd.h says why the toggle.
#if defined(TROUPE_KERNELS_RECURRENT_HEAD_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef TROUPE_KERNELS_RECURRENT_HEAD_INL_H_
#undef TROUPE_KERNELS_RECURRENT_HEAD_INL_H_
#else
#define TROUPE_KERNELS_RECURRENT_HEAD_INL_H_
#endif

#include "kernels/lanes-inl.h"
#include "kernels/recurrent_head.h"

HWY_BEFORE_NAMESPACE();
namespace troupe::HWY_NAMESPACE {

HWY_INLINE LaneVec SumChains(const LaneVec (&sums)[RecurrentHead::kChains]) {
  LaneVec four[4];
  for (std::size_t i = 0; i < 4; ++i) four[i] = hn::Add(sums[i], sums[i + 4]);
  return hn::Add(hn::Add(four[0], four[2]), hn::Add(four[1], four[3]));
}

// step(q, k, v, decay, beta, from, to) for each token of each vector of columns, whose rows in the
// state are a tile apart; it gives what the head says there.
template <class Step>
HWY_INLINE void ForTiles(const RecurrentHead& head, std::size_t first, std::size_t count,
                         Step&& step) {
  const LaneTag d;
  for (std::size_t tile = first; tile < first + count; ++tile) {
    for (std::size_t v = 0; v < kVectors; ++v) {
      const std::size_t column = v * kVectorLanes;
      const std::size_t at = tile * head.key_dim * RecurrentHead::kTile + column;
      const std::size_t channel = tile * RecurrentHead::kTile + column;
      const float* from = head.before + at;
      for (std::size_t t = 0; t < head.tokens; ++t) {
        const std::size_t row = t * head.stride, gate = t * head.gate_stride;
        const LaneVec out = step(head.q + row, head.k + row, hn::LoadU(d, head.v + row + channel),
                                 head.decay[gate], head.beta[gate], from, head.after + at);
        hn::StoreU(out, d, head.out + t * head.out_stride + channel);
        from = head.after + at;
      }
    }
  }
}

}  // namespace troupe::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
