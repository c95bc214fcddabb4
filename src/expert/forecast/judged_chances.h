// What came of chances: of experts that would have to be loaded, how many were given each chance,
// and how many of these their layer asked for. So it is known what every threshold would have
// found, not only the one in use: the recall of misses at a precision. Pure, and of fixed size.
#pragma once

#include <troupe/foresight.h>

#include <array>
#include <cstddef>
#include <cstdint>

namespace troupe {

class ChanceHistogram {
 public:
  static constexpr std::size_t kBins = 100;

  struct Bin {
    std::uint64_t said = 0;   // experts that were given such a chance
    std::uint64_t asked = 0;  // of them: that the layer asked for

    bool operator==(const Bin&) const = default;
  };

  static std::size_t BinOf(double chance);

  void Count(std::size_t bin, bool asked);

  const std::array<Bin, kBins>& bins() const { return bins_; }
  // Experts that the layers asked for, whatever chance they were given.
  std::uint64_t misses() const;
  // Of the misses, the share whose chance reached a threshold of which at least `precision` of
  // those that reached it were asked for: the largest of any threshold, 0 where none is so precise.
  double RecallAt(double precision) const;

  bool operator==(const ChanceHistogram&) const = default;

 private:
  std::array<Bin, kBins> bins_ = {};
};

// By layers ahead, [0] from one. What lies past the token's end is another matter: the next token
// is not chosen yet.
struct JudgedChances {
  std::array<ChanceHistogram, kForesightLayers> same_token = {};
  std::array<ChanceHistogram, kForesightLayers> next_token = {};

  bool any() const;
  bool operator==(const JudgedChances&) const = default;
};

}  // namespace troupe
