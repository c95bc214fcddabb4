#include "kernels/read_sum.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/read_sum.cc"
#include "hwy/foreach_target.h"  // compiles this file once per target
#include "hwy/highway.h"
#include "kernels/simd.h"

HWY_BEFORE_NAMESPACE();
namespace troupe::HWY_NAMESPACE {

std::uint64_t ReadSum(const std::byte* data, std::size_t bytes) {
  const hn::ScalableTag<std::uint64_t> d;
  const std::size_t lanes = hn::Lanes(d), words = bytes / 8;
  const auto* p = reinterpret_cast<const std::uint64_t*>(data);
  auto a = hn::Zero(d), b = hn::Zero(d), c = hn::Zero(d), e = hn::Zero(d);
  std::size_t i = 0;
  for (; i + 4 * lanes <= words; i += 4 * lanes) {
    a = hn::Add(a, hn::LoadU(d, p + i));
    b = hn::Add(b, hn::LoadU(d, p + i + lanes));
    c = hn::Add(c, hn::LoadU(d, p + i + 2 * lanes));
    e = hn::Add(e, hn::LoadU(d, p + i + 3 * lanes));
  }
  // Lane by lane: compilers' own reductions add signed numbers, whose overflow is not defined.
  HWY_ALIGN std::uint64_t last[hn::MaxLanes(d)];
  hn::Store(hn::Add(hn::Add(a, b), hn::Add(c, e)), d, last);
  std::uint64_t sum = 0;
  for (std::size_t lane = 0; lane < lanes; ++lane) sum += last[lane];
  for (; i < words; ++i) sum += p[i];
  return sum;
}

}  // namespace troupe::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace troupe {

HWY_EXPORT(ReadSum);
std::uint64_t ReadSum(const std::byte* data, std::size_t bytes) {
  return HWY_DYNAMIC_DISPATCH(ReadSum)(data, bytes);
}

}  // namespace troupe
#endif
