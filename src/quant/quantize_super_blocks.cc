// K-quants: 256 elements in groups whose scales (and mins) are themselves small integers. Found in
// three steps: the best real scale for each group alone, a block scale that suits them all, then
// alternately the best integers for each group near there and the best block scale for those
// integers, by the true error after every rounding, as long as it falls.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

#include "quant/block_codes.h"
#include "quant/fit.h"
#include "quant/normalize.h"
#include "quant/quantize_blocks.h"

namespace troupe::internal {
namespace {

template <typename Block>
class SuperBlockSearch {
 public:
  explicit SuperBlockSearch(const NormalizedBlock<Block::kElems>& block) : block_(block) {}

  Block Run() {
    Choice best = StartFromGroupFits();
    for (int round = 0; round < kMaxRounds; ++round) {
      const Choice next = ChooseIntegers(Refit(best), best.groups);
      if (!(next.error < best.error)) break;
      best = next;
    }
    return Store(best);
  }

 private:
  static constexpr CodeRange kCodes = {-Block::kOffset, Block::kMaxCode - Block::kOffset};
  static constexpr CodeRange kScales = {Block::kMinScale, Block::kMaxScale};
  static constexpr CodeRange kMins = {0, Block::kHasMin ? Block::kMaxScale : 0};
  static constexpr int kMaxRounds = 2;

  struct Steps {  // units of the integer scales and mins; exactly halves times 2^-exponent
    float d = 0;
    float dmin = 0;
  };
  struct Choice {
    Steps steps;
    GroupScales<Block> groups;
    float error = 0;
  };

  WeightedValues Group(std::size_t g) const { return block_.Group(g, Block::kGroupElems); }

  static Line LineOf(Steps steps, int scale, int min) {
    return {steps.d * static_cast<float>(scale), -(steps.dmin * static_cast<float>(min))};
  }

  static Line FitGroup(WeightedValues values) {
    if constexpr (Block::kHasMin) {
      return FitScaleAndMin(Block::kMaxCode, MinSign::kNotPositive, values);
    } else {
      return FitScale(kCodes, values);
    }
  }

  // Fits each group alone, then a block step to the group scales, each weighted by what an error in
  // it costs, and one to the mins.
  Choice StartFromGroupFits() const {
    std::array<float, Block::kGroups> scale, min, scale_weight, min_weight;
    for (std::size_t g = 0; g < Block::kGroups; ++g) {
      const Line line = FitGroup(Group(g));
      const Moments m = MomentsAt(line, kCodes, Group(g));
      scale[g] = line.scale;
      min[g] = -line.min;
      scale_weight[g] = m.wcc;  // an error e in the scale adds e * e * wcc
      min_weight[g] = m.w;
    }
    Steps steps;
    steps.d = block_.Rounded(FitScale(kScales, {scale, scale_weight}).scale);
    if constexpr (Block::kHasMin) {
      steps.dmin = block_.Rounded(FitScale(kMins, {min, min_weight}).scale);
    }
    GroupScales<Block> near;
    for (std::size_t g = 0; g < Block::kGroups; ++g) {
      near.scale[g] = static_cast<std::int8_t>(Nearest(scale[g], steps.d, kScales));
      near.min[g] = static_cast<std::uint8_t>(Nearest(min[g], steps.dmin, kMins));
    }
    return ChooseIntegers(steps, near);
  }

  static int Nearest(float value, float step, CodeRange range) {
    if (step == 0) return 0;
    const float count = std::nearbyint(value / step);
    return static_cast<int>(
        std::clamp(count, static_cast<float>(range.lowest), static_cast<float>(range.highest)));
  }

  // The best integers for each group among the neighbours of `near`: rounding scale and min apart
  // would miss pairs whose errors cancel.
  Choice ChooseIntegers(Steps steps, const GroupScales<Block>& near) const {
    Choice choice = {steps, near, 0};
    for (std::size_t g = 0; g < Block::kGroups; ++g) {
      float least = INFINITY;
      for (int scale = near.scale[g] - 1; scale <= near.scale[g] + 1; ++scale) {
        if (scale < kScales.lowest || scale > kScales.highest) continue;
        for (int min = near.min[g] - 1; min <= near.min[g] + 1; ++min) {
          if (min < kMins.lowest || min > kMins.highest) continue;
          const float error = ErrorAt(LineOf(steps, scale, min), kCodes, Group(g));
          if (error < least) {
            least = error;
            choice.groups.scale[g] = static_cast<std::int8_t>(scale);
            choice.groups.min[g] = static_cast<std::uint8_t>(min);
          }
        }
      }
      choice.error += least;
    }
    return choice;
  }

  // Least squares over the whole block for fixed codes and integers: the 2 x 2 normal equations.
  Steps Refit(const Choice& choice) const {
    double aa = 0, ab = 0, bb = 0, ax = 0, bx = 0;  // x ~ d * a - dmin * b
    for (std::size_t g = 0; g < Block::kGroups; ++g) {
      const double scale = choice.groups.scale[g];
      const double min = choice.groups.min[g];
      const Line line = LineOf(choice.steps, choice.groups.scale[g], choice.groups.min[g]);
      const Moments m = MomentsAt(line, kCodes, Group(g));
      aa += scale * scale * m.wcc;
      ab += scale * min * m.wc;
      bb += min * min * m.w;
      ax += scale * m.wcx;
      bx += min * m.wx;
    }
    const double det = aa * bb - ab * ab;
    Steps steps = choice.steps;
    if (det > 0) {
      steps.d = block_.Rounded(static_cast<float>((ax * bb - ab * bx) / det));
      steps.dmin = block_.Rounded(static_cast<float>((ab * ax - aa * bx) / det));
    } else if (aa > 0) {
      steps.d = block_.Rounded(static_cast<float>(ax / aa));
    }
    return steps;
  }

  Block Store(const Choice& choice) const {
    Block b;
    b.d = block_.ToHalf(choice.steps.d);
    if constexpr (Block::kHasMin) b.dmin = block_.ToHalf(choice.steps.dmin);
    Codes<Block> codes;
    for (std::size_t g = 0; g < Block::kGroups; ++g) {
      CodesAt(LineOf(choice.steps, choice.groups.scale[g], choice.groups.min[g]), kCodes,
              Group(g).x, std::span(codes).subspan(g * Block::kGroupElems, Block::kGroupElems));
    }
    PackScales(choice.groups, b);
    PackCodes(codes, b);
    return b;
  }

  const NormalizedBlock<Block::kElems>& block_;
};

}  // namespace

void QuantizeSuperBlocks(TensorType type, std::span<const float> src, std::span<std::byte> dst,
                         std::span<const float> importance) {
  WithBlockType(type, [&]<typename Block>() {
    if constexpr (Block::kElems == 256 && !kHasLevels<Block>) {
      ForEachBlock<Block>(src, dst, importance, [](auto values, auto weights) {
        const auto block = NormalizedBlock<Block::kElems>::From(values, weights);
        return block ? SuperBlockSearch<Block>(*block).Run() : Block{};
      });
    }
  });
}

}  // namespace troupe::internal
