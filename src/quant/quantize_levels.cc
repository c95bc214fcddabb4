// The types whose codes are places in a table of unequal steps: MXFP4, whose scale is a power of
// two, IQ4_NL and IQ4_XS. A scale is found by trying some: those that put the largest magnitude at
// or near an end of the table, the best of them made better by least squares.
#include <algorithm>
#include <array>
#include <cmath>

#include "base/half.h"
#include "quant/block_codes.h"
#include "quant/fit.h"
#include "quant/normalize.h"
#include "quant/quantize_blocks.h"

namespace troupe::internal {
namespace {

// A type's levels in ascending order, each with a code for it, and the places half-way between.
template <typename Block>
struct LevelGrid {
  std::array<float, 16> level{};
  std::array<std::uint8_t, 16> code{};
  std::array<float, 15> half_way{};
  std::size_t count = 0;

  constexpr LevelGrid() {
    std::array<std::uint8_t, 16> order{};
    for (std::uint8_t q = 0; q < 16; ++q) order[q] = q;
    std::ranges::sort(order, [](std::uint8_t a, std::uint8_t b) {
      return Block::kLevels[a] != Block::kLevels[b] ? Block::kLevels[a] < Block::kLevels[b] : a < b;
    });
    for (const std::uint8_t q : order) {
      const auto value = static_cast<float>(Block::kLevels[q]);
      if (count > 0 && value == level[count - 1]) continue;  // MXFP4 has two zeros
      level[count] = value;
      code[count++] = q;
    }
    for (std::size_t i = 0; i + 1 < count; ++i) half_way[i] = (level[i] + level[i + 1]) / 2;
  }

  float lowest() const { return level[0]; }
  float highest() const { return level[count - 1]; }
};

template <typename Block>
constexpr LevelGrid<Block> kGrid;

// The place of the level nearest to each value times `inverse`; of two as near the one nearer to 0.
template <typename Block, std::size_t N>
std::array<std::uint8_t, N> PlacesOf(std::span<const float, N> x, float inverse) {
  const LevelGrid<Block>& grid = kGrid<Block>;
  std::array<std::uint8_t, N> places{};
  for (std::size_t k = 0; k + 1 < grid.count; ++k) {
    const float bound = grid.half_way[k];
    for (std::size_t i = 0; i < N; ++i) {
      const float y = x[i] * inverse;
      places[i] += bound < 0 ? y >= bound : y > bound;
    }
  }
  return places;
}

float InverseOf(float scale) {
  const float inverse = 1 / scale;
  return std::isfinite(inverse) ? inverse : 0;
}

float Extreme(std::span<const float> x) {
  float extreme = 0;
  for (const float v : x) {
    if (std::fabs(v) > std::fabs(extreme)) extreme = v;
  }
  return extreme;
}

using Run = std::span<const float, 32>;  // values that share a scale

struct WeightedRun {
  Run x, w;
  explicit WeightedRun(WeightedValues values) : x(values.x.first<32>()), w(values.w.first<32>()) {}
};

// Of the values' levels at a scale: w l l and w l x, which least squares needs.
struct LevelMoments {
  double wll = 0, wlx = 0;
  double Explained() const { return wll > 0 ? wlx * wlx / wll : 0; }
};

template <typename Block>
LevelMoments LevelMomentsAt(float scale, const WeightedRun& run) {
  const auto places = PlacesOf<Block>(run.x, InverseOf(scale));
  LevelMoments m;
  for (std::size_t i = 0; i < run.x.size(); ++i) {
    const double level = kGrid<Block>.level[places[i]], w = run.w[i];
    m.wll += w * level * level;
    m.wlx += w * level * run.x[i];
  }
  return m;
}

template <typename Block>
double LevelErrorAt(float scale, const WeightedRun& run) {
  const auto places = PlacesOf<Block>(run.x, InverseOf(scale));
  double error = 0;
  for (std::size_t i = 0; i < run.x.size(); ++i) {
    const double miss = run.x[i] - scale * kGrid<Block>.level[places[i]];
    error += run.w[i] * miss * miss;
  }
  return error;
}

// The best of the scales that put the largest magnitude near an end of the table.
template <typename Block>
float FitLevels(const WeightedRun& run) {
  const float extreme = Extreme(run.x);
  if (extreme == 0) return 0;
  LevelMoments best;
  for (const float end : {kGrid<Block>.lowest(), kGrid<Block>.highest()}) {
    for (int step = -8; step <= 8; ++step) {
      const float scale = extreme / end * (1 + 0.03f * static_cast<float>(step));
      const LevelMoments m = LevelMomentsAt<Block>(scale, run);
      if (m.Explained() > best.Explained()) best = m;
    }
  }
  constexpr int kMaxPolish = 3;
  for (int round = 0; round < kMaxPolish && best.wll > 0; ++round) {
    const auto m = LevelMomentsAt<Block>(static_cast<float>(best.wlx / best.wll), run);
    if (!(m.Explained() > best.Explained())) break;
    best = m;
  }
  return best.wll > 0 ? static_cast<float>(best.wlx / best.wll) : 0;
}

template <typename Block>
void StoreLevels(Run x, float scale, std::size_t first, Codes<Block>& codes) {
  const auto places = PlacesOf<Block>(x, InverseOf(scale));
  for (std::size_t i = 0; i < x.size(); ++i) codes[first + i] = kGrid<Block>.code[places[i]];
}

// The exponent with which the largest magnitude lies within the highest binade of 4-bit floats; it
// may be cut off there.
int PlainExponent(Run x) {
  const float extreme = Extreme(x);
  return extreme == 0 ? 0 : std::clamp(std::ilogb(extreme) - 2 + 127, 0, 254);
}

BlockMXFP4 QuantizeMxfp4(Run x, std::span<const float> importance, Rounding rounding) {
  int exponent = PlainExponent(x);
  const bool search =
      rounding == Rounding::kBest || (rounding == Rounding::kReference && !importance.empty());
  const auto block = NormalizedBlock<32>::From(x, importance);
  if (search && block) {
    // Normalized values have another exponent; the weights are what is needed of them.
    const WeightedRun run({x, block->Group(0, 32).w});
    double least = INFINITY;
    const int plain = exponent;
    for (int e = std::max(0, plain - 1); e <= std::min(254, plain + 1); ++e) {
      const auto scale = HalvedExponentToFloat(static_cast<std::uint8_t>(e));
      const double error = LevelErrorAt<BlockMXFP4>(scale, run);
      if (error < least) {
        least = error;
        exponent = e;
      }
    }
  }
  BlockMXFP4 b{};
  b.d = static_cast<std::uint8_t>(exponent);
  Codes<BlockMXFP4> codes{};
  StoreLevels<BlockMXFP4>(x, ScaleOf(b), 0, codes);
  PackCodes(codes, b);
  return b;
}

BlockIQ4_NL QuantizeIq4Nl(Run x, std::span<const float> importance, Rounding rounding) {
  BlockIQ4_NL b{};
  Codes<BlockIQ4_NL> codes{};
  if (rounding == Rounding::kPlain) {
    b.d = FloatToHalf(Extreme(x) / kGrid<BlockIQ4_NL>.lowest());
    StoreLevels<BlockIQ4_NL>(x, ScaleOf(b), 0, codes);
  } else {
    const auto block = NormalizedBlock<32>::From(x, importance);
    if (!block) return b;
    const WeightedRun run(block->Group(0, 32));
    const float scale = FitLevels<BlockIQ4_NL>(run);
    b.d = block->ToHalf(scale);
    StoreLevels<BlockIQ4_NL>(run.x, block->Rounded(scale), 0, codes);
  }
  PackCodes(codes, b);
  return b;
}

using RunScales = std::array<float, BlockIQ4_XS::kGroups>;

int NearestScale(float value, float step) {
  if (step == 0) return 0;
  return std::clamp(static_cast<int>(std::nearbyint(value / step)), BlockIQ4_XS::kMinScale,
                    BlockIQ4_XS::kMaxScale);
}

// The step with which the scale of largest magnitude is the integer of largest magnitude.
float StepOf(const RunScales& scales) {
  return Extreme(scales) / static_cast<float>(BlockIQ4_XS::kMinScale);
}

BlockIQ4_XS RoundIq4Xs(std::span<const float> x) {
  RunScales scales;
  const auto run = [x](std::size_t g) { return x.subspan(g * 32).first<32>(); };
  for (std::size_t g = 0; g < scales.size(); ++g) {
    scales[g] = Extreme(run(g)) / kGrid<BlockIQ4_XS>.lowest();
  }
  BlockIQ4_XS b{};
  b.d = FloatToHalf(StepOf(scales));
  GroupScales<BlockIQ4_XS> groups;
  Codes<BlockIQ4_XS> codes{};
  for (std::size_t g = 0; g < scales.size(); ++g) {
    groups.scale[g] = static_cast<std::int8_t>(NearestScale(scales[g], ScaleOf(b)));
    StoreLevels<BlockIQ4_XS>(run(g), ScaleOf(b) * static_cast<float>(groups.scale[g]), g * 32,
                             codes);
  }
  PackScales(groups, b);
  PackCodes(codes, b);
  return b;
}

// As the K-quants: each run's scale alone, a step that suits all, then alternately the best
// integers near there and the step that least squares gives for those.
class Iq4XsSearch {
 public:
  explicit Iq4XsSearch(const NormalizedBlock<256>& block) : block_(block) {}

  BlockIQ4_XS Find() const {
    RunScales scales;
    for (std::size_t g = 0; g < scales.size(); ++g) scales[g] = FitLevels<BlockIQ4_XS>(RunOf(g));
    Choice best = ChooseNear(block_.Rounded(StepOf(scales)), scales);
    for (int round = 0; round < kMaxRounds; ++round) {
      for (std::size_t g = 0; g < scales.size(); ++g) scales[g] = best.ScaleOfRun(g);
      const Choice next = ChooseNear(Refit(best), scales);
      if (!(next.error < best.error)) break;
      best = next;
    }
    return Store(best);
  }

 private:
  static constexpr int kMaxRounds = 2;

  struct Choice {
    float step = 0;
    GroupScales<BlockIQ4_XS> groups;
    double error = 0;
    float ScaleOfRun(std::size_t g) const { return step * static_cast<float>(groups.scale[g]); }
  };

  WeightedRun RunOf(std::size_t g) const { return WeightedRun(block_.Group(g, 32)); }

  Choice ChooseNear(float step, const RunScales& scales) const {
    Choice choice{.step = step};
    for (std::size_t g = 0; g < scales.size(); ++g) {
      const int near = NearestScale(scales[g], step);
      double least = INFINITY;
      for (int n = near - 1; n <= near + 1; ++n) {
        if (n < BlockIQ4_XS::kMinScale || n > BlockIQ4_XS::kMaxScale) continue;
        const double error = LevelErrorAt<BlockIQ4_XS>(step * static_cast<float>(n), RunOf(g));
        if (error < least) {
          least = error;
          choice.groups.scale[g] = static_cast<std::int8_t>(n);
        }
      }
      choice.error += least;
    }
    return choice;
  }

  float Refit(const Choice& choice) const {
    double ll = 0, lx = 0;
    for (std::size_t g = 0; g < BlockIQ4_XS::kGroups; ++g) {
      const auto m = LevelMomentsAt<BlockIQ4_XS>(choice.ScaleOfRun(g), RunOf(g));
      const double scale = choice.groups.scale[g];
      ll += scale * scale * m.wll;
      lx += scale * m.wlx;
    }
    return ll > 0 ? block_.Rounded(static_cast<float>(lx / ll)) : choice.step;
  }

  BlockIQ4_XS Store(const Choice& choice) const {
    BlockIQ4_XS b{};
    b.d = block_.ToHalf(choice.step);
    Codes<BlockIQ4_XS> codes{};
    for (std::size_t g = 0; g < BlockIQ4_XS::kGroups; ++g) {
      StoreLevels<BlockIQ4_XS>(RunOf(g).x, choice.ScaleOfRun(g), g * 32, codes);
    }
    PackScales(choice.groups, b);
    PackCodes(codes, b);
    return b;
  }

  const NormalizedBlock<256>& block_;
};

BlockIQ4_XS QuantizeIq4Xs(std::span<const float> x, std::span<const float> importance,
                          Rounding rounding) {
  if (rounding == Rounding::kPlain) return RoundIq4Xs(x);
  const auto block = NormalizedBlock<256>::From(x, importance);
  return block ? Iq4XsSearch(*block).Find() : BlockIQ4_XS{};
}

}  // namespace

void QuantizeLevels(TensorType type, std::span<const float> src, std::span<std::byte> dst,
                    std::span<const float> importance, Rounding rounding) {
  const auto each = [&]<typename Block>(auto&& quantize) {
    ForEachBlock<Block>(src, dst, importance, [&](auto values, auto weights) {
      return quantize(values, weights, rounding);
    });
  };
  if (type == TensorType::kMXFP4) {
    each.template operator()<BlockMXFP4>([](auto x, auto weights, Rounding how) {
      return QuantizeMxfp4(x.template first<32>(), weights, how);
    });
  } else if (type == TensorType::kIQ4_NL) {
    each.template operator()<BlockIQ4_NL>([](auto x, auto weights, Rounding how) {
      return QuantizeIq4Nl(x.template first<32>(), weights, how);
    });
  } else {
    each.template operator()<BlockIQ4_XS>(QuantizeIq4Xs);
  }
}

}  // namespace troupe::internal
