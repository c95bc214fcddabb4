// What was fitted for a cut between two layers of a model: which channels of the residual stream
// are so large that they cross apart, and which numbers say the most of the others. A value;
// lab/cut_fit.h finds it, both sides of a cut have the same.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/status.h"
#include "split/codec/state_code.h"

namespace troupe {

inline constexpr std::uint32_t kMostStateWidth = 1 << 20;

// Of a model, or of a cut, for which nothing was fitted: all but layer and width is empty, and rows
// cross whole.
struct CutBasis {
  std::uint32_t layer = 0;  // the first one behind the cut
  std::uint32_t width = 0;
  std::vector<std::uint32_t> kept;  // massive channels, rising
  // Of a row's other channels over their root mean square (its size); 0 where kept.
  std::vector<float> mean;
  // Of each number that crosses, what serves best first: the row of `width` by whose products with
  // sized rows less the mean it is found, and the direction that it then stands for. 0 where kept.
  // The product of a number's two rows is 1; of the fit, that of any others is 0.
  std::vector<float> finders, directions;

  std::uint32_t ranks() const {
    return width == 0 ? 0 : static_cast<std::uint32_t>(directions.size() / width);
  }
  std::span<const float> Finder(std::size_t i) const {
    return std::span(finders).subspan(i * width, width);
  }
  std::span<const float> Direction(std::size_t i) const {
    return std::span(directions).subspan(i * width, width);
  }
  bool operator==(const CutBasis&) const = default;
};

// Where nothing was fitted.
CutBasis PlainBasis(std::uint32_t layer, std::uint32_t width);

// Whether it can be one: channels within the width, finite numbers, products of 1.
Status CheckBasis(const CutBasis& basis);

// Refuses a rank that the basis does not have, as one larger than the width, and floats by an
// entropy coder.
Status CheckCode(const StateCode& code, const CutBasis& basis);

// Of what a code uses of a basis, by which two sides know that they mean the same; 0 if that is
// nothing.
std::uint64_t DigestOf(const CutBasis& basis, const StateCode& code);

}  // namespace troupe
