#include "kernels/state_space.h"

#include "base/check.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/state_space.cc"
#include "hwy/foreach_target.h"  // compiles this file once per target
#include "hwy/highway.h"
#include "kernels/recurrent_head-inl.h"

HWY_BEFORE_NAMESPACE();
namespace troupe::HWY_NAMESPACE {

// One token and one vector of columns, whose rows are a tile apart.
HWY_INLINE LaneVec StepStateSpace(std::size_t keys, const float* HWY_RESTRICT q,
                                  const float* HWY_RESTRICT k, LaneVec v, float decay, float beta,
                                  float skip, const float* from, float* to) {
  constexpr std::size_t kTile = RecurrentHead::kTile, kChains = RecurrentHead::kChains;
  const LaneTag d;
  const LaneVec kept = hn::Set(d, decay);
  const LaneVec learned = hn::Mul(v, hn::Set(d, beta));
  LaneVec sums[kChains];
  for (LaneVec& sum : sums) sum = hn::Zero(d);
  for (std::size_t i = 0; i < keys; i += kChains) {
    for (std::size_t c = 0; c < kChains; ++c) {
      const LaneVec before = hn::Mul(hn::LoadU(d, from + (i + c) * kTile), kept);
      const LaneVec after = Fma(hn::Set(d, k[i + c]), learned, before);
      hn::StoreU(after, d, to + (i + c) * kTile);
      sums[c] = Fma(after, hn::Set(d, q[i + c]), sums[c]);
    }
  }
  return Fma(v, hn::Set(d, skip), SumChains(sums));
}

void StateSpaceTiles(const RecurrentHead& head, float skip, std::size_t first, std::size_t count) {
  ForTiles(head, first, count,
           [&head, skip](const float* q, const float* k, LaneVec v, float decay, float beta,
                         const float* from, float* to) HWY_ATTR {
             return StepStateSpace(head.key_dim, q, k, v, decay, beta, skip, from, to);
           });
}

}  // namespace troupe::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace troupe {

HWY_EXPORT(StateSpaceTiles);
void RunStateSpace(const RecurrentHead& head, float skip, std::size_t first, std::size_t count) {
  TROUPE_DCHECK(head.key_dim % RecurrentHead::kChains == 0 && first + count <= head.tiles());
  HWY_DYNAMIC_DISPATCH(StateSpaceTiles)(head, skip, first, count);
}

}  // namespace troupe
#endif
