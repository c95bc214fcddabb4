// Which experts every layer used, step by step, and which steps of the past resemble the present
// one. A step is one pass through the layers: a token while tokens are generated.
//
// Text comes back: words, phrases, forms. A token that was seen before, after the same tokens,
// takes nearly the same experts, so a past step whose experts were the same up to here says what
// comes next. Echo (echo.h) decides what to make of it.
//
// Likeness is kept by lag, the distance in steps. Each layer adds to it the share of its experts
// that it used at that lag too; with every new step what was added before loses five eighths. The
// same lag then stands for the next pair of steps, so that it measures how alike the two runs of
// steps are that end in the present and that many steps before. Whole numbers only.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/bytes.h"
#include "expert/cache/eviction_policy.h"

namespace troupe {

class RouteHistory {
 public:
  static constexpr std::uint32_t kSteps = 8192;
  // Steps that StepsToUse looks ahead.
  static constexpr std::uint32_t kAhead = 32;
  static constexpr std::uint32_t kNotSoon = ~0u;

  struct Match {
    std::uint32_t lag = 0;
    std::int16_t likeness = 0;

    bool operator==(const Match&) const = default;
  };

  static Bytes BytesFor(ExpertGrid grid, std::uint32_t steps = kSteps);

  // Remembers at least `steps` - 64 steps; a power of two, 128 or more.
  explicit RouteHistory(ExpertGrid grid, std::uint32_t steps = kSteps);

  void BeginStep();
  // The layer uses these in the present step, each once, besides those of earlier calls. The share
  // that counts towards likeness is of `of` experts; 0: they are remembered, but say nothing about
  // likeness, as when many tokens at once use most of a layer.
  void Use(std::uint32_t layer, std::span<const std::uint32_t> experts, std::size_t of);

  // The `count` likest steps of at least two steps ago, or all if there are fewer; of equally like
  // ones the latest. In the order of their lags; good until the next call.
  std::span<const Match> Closest(std::size_t count);

  // From the step that lies `lag` steps back to the first use of the expert, that step and the
  // present one included; kNotSoon if it was not used so far, or not within kAhead steps.
  std::uint32_t StepsToUse(ExpertId id, std::uint32_t lag) const;

 private:
  static constexpr std::uint32_t kWordBits = 64;
  static constexpr std::uint32_t kBlock = 32;  // lags that are looked at together

  // Backwards in time, so that lags grow with places.
  std::uint32_t Place(std::uint64_t step) const {
    return steps_ - 1 - static_cast<std::uint32_t>(step % steps_);
  }
  std::uint64_t* Row(ExpertId id) { return &used_[grid_.Index(id) * words_]; }
  std::uint32_t OldestLag() const;
  void CountShared(std::uint32_t layer, std::span<const std::uint32_t> experts);
  void AddShared(std::int16_t share);
  std::int16_t LikenessOfMost(std::size_t count);

  ExpertGrid grid_;
  std::uint32_t steps_;  // in the ring
  std::uint32_t words_;  // of an expert's ring
  std::int16_t same_layer_;
  std::uint64_t now_ = 0;
  std::vector<std::uint64_t> used_;         // by expert, a ring of bits by place
  std::vector<std::int16_t> likeness_;      // by lag
  std::vector<std::uint64_t> planes_;       // counts under way, by binary digit, by word
  std::vector<std::uint8_t> shared_;        // by place, how many of the layer's experts
  std::vector<std::int16_t> most_, order_;  // likeness by block of lags; sorting them
  std::vector<Match> closest_;
};

}  // namespace troupe
