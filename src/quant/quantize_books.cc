// The types with a code book (code_books.h). Whatever the scale, the nearest of all its words is
// found. Scales of runs are found by trying some, from the one that puts the largest magnitude at
// the end of the levels downwards, the best of them made better by least squares; then they are
// rounded to odd multiples of a common step.
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "quant/book_codes.h"
#include "quant/code_books.h"
#include "quant/normalize.h"
#include "quant/quantize_blocks.h"

namespace troupe::internal {
namespace {

// Columns with a scale of their own, and their weights.
template <typename Block>
using RunOf = std::span<const float, Block::kGroupElems>;

template <typename Block>
struct BookRun {
  RunOf<Block> x, w;
};

// Words and signs for a run, and sums over its elements' levels l: all that least squares needs.
template <typename Block>
struct RunFit {
  std::array<std::uint16_t, Block::kGroupElems / Block::kWordElems> words{};
  std::uint32_t signs = 0;
  double error = 0, wll = 0, wlx = 0;
};

// The highest level that a digit stands for, and the lowest of those with a sign.
template <typename Block>
constexpr float kTop = std::ranges::max(Block::kLevels);
template <typename Block>
constexpr float kBottom = Block::kLevels[0];

// The elements of one word: `x` in the direction of the sign that they will be stored with.
template <typename Block>
struct WordTarget {
  std::array<float, Block::kWordElems> x, w;
};

// Errors of all that half of a word's elements can be, and the least of them.
template <typename Block>
struct HalfErrors {
  static constexpr std::size_t kElems = Block::kWordElems / 2;
  static constexpr unsigned kBits = Block::kDigitBits * kElems;

  HalfErrors(const WordTarget<Block>& target, std::size_t first, const std::int8_t* levels,
             float scale) {
    of_half[0] = 0;
    for (std::size_t i = 0; i < kElems; ++i) {
      const std::size_t known = std::size_t{1} << (Block::kDigitBits * i);
      float least_of_digits = std::numeric_limits<float>::infinity();
      for (std::size_t digit = std::size_t{1} << Block::kDigitBits; digit-- > 0;) {
        const float miss = target.x[first + i] - scale * static_cast<float>(levels[digit]);
        const float error = target.w[first + i] * miss * miss;
        const bool is_digit = levels[digit] != 0;
        if (is_digit) least_of_digits = std::min(least_of_digits, error);
        for (std::size_t n = 0; n < known; ++n) of_half[digit * known + n] = of_half[n] + error;
      }
      least += least_of_digits;
    }
  }

  std::array<float, 1u << kBits> of_half;
  float least = 0;
};

// The words of the book, which ascends, that have the same upper half.
struct UpperHalf {
  std::uint16_t half, first, end;
};
template <typename Block>
constexpr auto kUpperHalves = [] {
  constexpr auto half = [](std::size_t place) {
    return BookOf<Block>()[place] >> HalfErrors<Block>::kBits;
  };
  constexpr std::size_t kCount = [half] {
    std::size_t count = 1;
    for (std::size_t i = 1; i < BookOf<Block>().size(); ++i) count += half(i) != half(i - 1);
    return count;
  }();
  std::array<UpperHalf, kCount> halves{};
  std::size_t last = 0;
  for (std::size_t i = 0; i < BookOf<Block>().size(); ++i) {
    if (i > 0 && half(i) != half(i - 1)) ++last, halves[last].first = static_cast<std::uint16_t>(i);
    halves[last].half = static_cast<std::uint16_t>(half(i));
    halves[last].end = static_cast<std::uint16_t>(i + 1);
  }
  return halves;
}();

// The word nearest to the target, with levels from `levels` on: `guess` if none is nearer. A word's
// error is the sum of those of its two halves; an upper half that is too far off whatever is below
// it is passed over.
template <typename Block>
std::uint16_t NearestWord(const WordTarget<Block>& target, const std::int8_t* levels, float scale,
                          std::uint16_t guess, double& error) {
  const HalfErrors<Block> lower(target, 0, levels, scale);
  const HalfErrors<Block> upper(target, HalfErrors<Block>::kElems, levels, scale);
  const auto error_of = [&](std::size_t place) {
    const std::size_t word = BookOf<Block>()[place];
    return lower.of_half[word % lower.of_half.size()] + upper.of_half[word / lower.of_half.size()];
  };
  std::size_t best = guess;
  float least = error_of(guess);
  for (const UpperHalf& words : kUpperHalves<Block>) {
    if (upper.of_half[words.half] + lower.least >= least) continue;
    for (std::size_t place = words.first; place < words.end; ++place) {
      const float here = error_of(place);
      if (here < least) least = here, best = place;
    }
  }
  error += static_cast<double>(least);
  return static_cast<std::uint16_t>(best);
}

// The sign bits of a run's elements where they are the values' own.
template <typename Block>
std::uint32_t ChooseSigns(const BookRun<Block>& run) {
  std::uint32_t signs = 0;
  for (std::size_t first = 0; first < Block::kGroupElems; first += 8) {
    std::size_t negative = 0, cheapest = first;
    for (std::size_t i = first; i < first + 8; ++i) {
      if (run.x[i] < 0) signs |= 1u << i, ++negative;
      const auto cost = [&](std::size_t k) { return run.w[k] * run.x[k] * run.x[k]; };
      if (cost(i) < cost(cheapest)) cheapest = i;
    }
    if (SignsOf<Block>() == SignForm::kSevens && negative % 2 != 0) signs ^= 1u << cheapest;
  }
  return signs;
}

// The word nearest to elements n * kWordElems and on of the run, with these of the run's signs. The
// guess is the word of `before`, what was found at another scale.
template <typename Block>
void FitWord(float scale, const BookRun<Block>& run, std::size_t n, std::uint32_t signs,
             const RunFit<Block>& before, RunFit<Block>& fit) {
  constexpr bool kShift = SignsOf<Block>() == SignForm::kShift;
  const std::size_t first = n * Block::kWordElems;
  WordTarget<Block> target;
  for (std::size_t i = 0; i < Block::kWordElems; ++i) {
    const bool turned = !kShift && (signs >> (first + i) & 1) != 0;
    target.x[i] = turned ? -run.x[first + i] : run.x[first + i];
    target.w[i] = run.w[first + i];
  }
  const bool shifted = kShift && (signs >> first & 1) != 0;
  const std::int8_t* const levels =
      Block::kLevels.data() + (shifted ? 1u << Block::kDigitBits : 0u);
  fit.words[n] = NearestWord<Block>(target, levels, scale, before.words[n], fit.error);
  for (std::size_t i = 0; i < Block::kWordElems; ++i) {
    const double level = levels[DigitOf<Block>(BookOf<Block>()[fit.words[n]], i)];
    fit.wll += static_cast<double>(target.w[i]) * level * level;
    fit.wlx += static_cast<double>(target.w[i]) * level * static_cast<double>(target.x[i]);
  }
  fit.signs |= signs & ((1u << Block::kWordElems) - 1) << first;
}

template <typename Block>
RunFit<Block> FitAt(float scale, const BookRun<Block>& run, std::uint32_t signs,
                    const RunFit<Block>& before) {
  RunFit<Block> fit;
  for (std::size_t n = 0; n < fit.words.size(); ++n) FitWord(scale, run, n, signs, before, fit);
  return fit;
}

// The best words and signs at a scale. IQ1's shift is of the whole run, or of each word.
template <typename Block>
RunFit<Block> FitAt(float scale, const BookRun<Block>& run, const RunFit<Block>& before) {
  if constexpr (SignsOf<Block>() != SignForm::kShift) {
    return FitAt(scale, run, ChooseSigns<Block>(run), before);
  } else if constexpr (Block::kType == TensorType::kIQ1_S) {
    const RunFit<Block> up = FitAt(scale, run, 0, before), down = FitAt(scale, run, ~0u, before);
    return up.error <= down.error ? up : down;
  } else {
    RunFit<Block> fit;
    for (std::size_t n = 0; n < fit.words.size(); ++n) {
      RunFit<Block> up = fit, down = fit;
      FitWord(scale, run, n, 0, before, up);
      FitWord(scale, run, n, ~0u, before, down);
      fit = up.error <= down.error ? up : down;
    }
    return fit;
  }
}

// A scale for a run of its own, and what is best with it.
template <typename Block>
struct ScaledRun {
  float scale = 0;
  RunFit<Block> fit;
};

template <typename Block>
ScaledRun<Block> FitRun(const BookRun<Block>& run, Rounding rounding) {
  float most = 0, squares = 0;
  for (const float v : run.x) most = std::max(most, std::fabs(v)), squares += v * v;
  const float to_the_top = most / kTop<Block>;
  if (rounding == Rounding::kPlain || most == 0) return {to_the_top, {}};
  ScaledRun<Block> best;
  best.fit.error = std::numeric_limits<double>::infinity();
  const auto consider = [&](float scale) {
    const RunFit<Block> fit = FitAt(scale, run, best.fit);
    if (fit.error < best.fit.error) best = {scale, fit};
  };
  // The fewer the levels, the more of the largest values the best scale cuts off.
  constexpr bool kShift = SignsOf<Block>() == SignForm::kShift;
  const bool thorough = rounding == Rounding::kBest;
  const int tries = (kShift ? 8 : 6) / (thorough ? 1 : 2);
  float scale = to_the_top * (thorough ? 1.15f : 1.0f);
  for (int i = 0; i < tries; ++i, scale *= thorough ? 0.88f : 0.77f) consider(scale);
  // Few words have all elements high, but each book has one with all of them low: what a run of
  // nearly one magnitude needs.
  if (!kShift && squares > 0.75f * most * most * static_cast<float>(run.x.size())) {
    consider(most / kBottom<Block>);
  }
  if (best.fit.wll > 0 && best.fit.wlx > 0) {
    consider(static_cast<float>(best.fit.wlx / best.fit.wll));
  }
  return best;
}

template <typename Block>
class BookQuantizer {
 public:
  BookQuantizer(const NormalizedBlock<Block::kElems>& block, Rounding rounding) : block_(block) {
    for (std::size_t run = 0; run < Block::kGroups; ++run) {
      const WeightedValues values = block.Group(run, Block::kGroupElems);
      weights_[run].fill(1);
      if (rounding != Rounding::kPlain) std::ranges::copy(values.w, weights_[run].begin());
      const ScaledRun<Block> found = FitRun<Block>(Run(run), rounding);
      scales_[run] = found.scale, fits_[run] = found.fit;
    }
    Choose(std::ranges::max(scales_) / Block::kMaxScale);
    if (rounding == Rounding::kPlain) return;
    // The step that is best for what was chosen.
    double wll = 0, wlx = 0;
    for (std::size_t run = 0; run < Block::kGroups; ++run) {
      const double odd = 2 * stored_[run] + 1;
      wll += odd * odd * fits_[run].wll;
      wlx += odd * fits_[run].wlx;
    }
    if (wll > 0 && wlx > 0) {
      const BookQuantizer before = *this;
      Choose(static_cast<float>(wlx / wll));
      if (Error() >= before.Error()) Take(before);
    }
    // No level is 0: of values near the least half, zeros may be the better copy.
    if (Error() >= ErrorOfZeros()) half_ = 0;
  }

  Block Store() const {
    constexpr std::size_t kRuns = 32 / Block::kGroupElems;  // in a group
    Block b{};
    for (std::size_t g = 0; g < Block::kElems / 32; ++g) {
      WordsAndSigns<Block> decoded;
      for (std::size_t run = 0; run < kRuns; ++run) {
        const RunFit<Block>& fit = fits_[g * kRuns + run];
        std::ranges::copy(fit.words, decoded.words.begin() + run * fit.words.size());
        constexpr std::uint32_t kMask = kRuns == 1 ? ~0u : 0xffffu;
        decoded.signs |= (fit.signs & kMask) << (run * Block::kGroupElems % 32);
      }
      WriteGroup(Encode<Block>(decoded, stored_[g * kRuns]), g, b);
    }
    for (std::size_t run = 0; run < Block::kGroups; ++run) StoreScale(stored_[run], run, b);
    SetHalf(half_, b);
    return b;
  }

 private:
  BookRun<Block> Run(std::size_t run) const {
    const WeightedValues values = block_.Group(run, Block::kGroupElems);
    return {values.x.template first<Block::kGroupElems>(), RunOf<Block>(weights_[run])};
  }

  // Rounds the runs' scales to odd multiples of a step, and all else to them.
  void Choose(float step) {
    half_ = block_.ToHalf(step / Block::kUnit);
    const float rounded = block_.Rounded(step / Block::kUnit) * Block::kUnit;
    for (std::size_t run = 0; run < Block::kGroups; ++run) {
      constexpr float kMost = (Block::kMaxScale - 1) / 2;
      const float nearest = std::nearbyint((scales_[run] / rounded - 1) / 2);
      stored_[run] = static_cast<unsigned>(std::clamp(nearest, 0.0f, kMost));
      fits_[run] = FitAt(rounded * static_cast<float>(2 * stored_[run] + 1), Run(run), fits_[run]);
    }
  }

  double Error() const {
    double error = 0;
    for (const RunFit<Block>& fit : fits_) error += fit.error;
    return error;
  }

  double ErrorOfZeros() const {
    double error = 0;
    for (std::size_t run = 0; run < Block::kGroups; ++run) {
      const BookRun<Block> values = Run(run);
      for (std::size_t i = 0; i < values.x.size(); ++i) {
        error += static_cast<double>(values.w[i] * values.x[i] * values.x[i]);
      }
    }
    return error;
  }

  void Take(const BookQuantizer& other) {
    half_ = other.half_;
    stored_ = other.stored_;
    fits_ = other.fits_;
  }

  const NormalizedBlock<Block::kElems>& block_;
  std::array<std::array<float, Block::kGroupElems>, Block::kGroups> weights_;
  std::array<float, Block::kGroups> scales_;
  std::uint16_t half_ = 0;
  std::array<unsigned, Block::kGroups> stored_;
  std::array<RunFit<Block>, Block::kGroups> fits_;
};

}  // namespace

void QuantizeBooks(TensorType type, std::span<const float> src, std::span<std::byte> dst,
                   std::span<const float> importance, Rounding rounding) {
  WithBlockType(type, [&]<typename Block>() {
    if constexpr (kHasBook<Block>) {
      ForEachBlock<Block>(src, dst, importance, [rounding](auto values, auto weights) {
        const auto block = NormalizedBlock<Block::kElems>::From(values, weights);
        return block ? BookQuantizer<Block>(*block, rounding).Store() : Block{};
      });
    }
  });
}

}  // namespace troupe::internal
