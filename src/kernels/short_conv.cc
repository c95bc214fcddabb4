#include "kernels/short_conv.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/short_conv.cc"
#include "hwy/foreach_target.h"  // compiles this file once per target
#include "hwy/highway.h"
#include "kernels/fast_exp-inl.h"

HWY_BEFORE_NAMESPACE();
namespace troupe::HWY_NAMESPACE {

// From the last token to the first: an output overwrites an input that no earlier one needs.
void ShortConvChannels(const ShortConv& conv, std::size_t first, std::size_t count) {
  const hn::ScalableTag<float> d;
  for (std::size_t t = conv.tokens; t-- > 0;) {
    const auto input = [&](std::size_t tap) {
      const std::size_t behind = t + tap;  // counted from the oldest of the tail
      return behind < conv.taps - 1 ? conv.tail + behind * conv.channels
                                    : conv.rows + (behind - (conv.taps - 1)) * conv.stride;
    };
    float* const out = conv.rows + t * conv.stride;
    std::size_t c = first;
    for (; c + hn::Lanes(d) <= first + count; c += hn::Lanes(d)) {
      auto sum = hn::Zero(d);
      for (std::size_t tap = 0; tap < conv.taps; ++tap) {
        sum = Fma(hn::LoadU(d, input(tap) + c),
                  hn::LoadU(d, conv.weights + tap * conv.channels + c), sum);
      }
      if (conv.bias != nullptr) sum = hn::Add(sum, hn::LoadU(d, conv.bias + c));
      if (conv.silu) sum = hn::Mul(sum, FastSigmoid(d, sum));
      hn::StoreU(sum, d, out + c);
    }
    for (; c < first + count; ++c) {
      float sum = 0;
      for (std::size_t tap = 0; tap < conv.taps; ++tap) {
        sum = std::fma(input(tap)[c], conv.weights[tap * conv.channels + c], sum);
      }
      if (conv.bias != nullptr) sum += conv.bias[c];
      out[c] = conv.silu ? sum * SigmoidReference(sum) : sum;
    }
  }
}

}  // namespace troupe::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace troupe {

HWY_EXPORT(ShortConvChannels);
void RunShortConv(const ShortConv& conv, std::size_t first, std::size_t count) {
  TROUPE_DCHECK(conv.taps >= 2 && first + count <= conv.channels);
  HWY_DYNAMIC_DISPATCH(ShortConvChannels)(conv, first, count);
}

void CopyConvTail(const ShortConv& conv, float* tail, std::size_t first, std::size_t count) {
  TROUPE_DCHECK(tail != conv.tail);
  const std::size_t kept = conv.taps - 1;
  for (std::size_t i = 0; i < kept; ++i) {
    const std::size_t behind = conv.tokens + i;  // counted from the oldest of the tail before
    const float* const row = behind < kept ? conv.tail + behind * conv.channels
                                           : conv.rows + (behind - kept) * conv.stride;
    std::copy_n(row + first, count, tail + i * conv.channels + first);
  }
}

}  // namespace troupe
#endif
