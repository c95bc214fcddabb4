#include "split/codec/cut_basis.h"

#include <xxhash.h>

#include <algorithm>
#include <cmath>

namespace troupe {
namespace {

constexpr double kProductTolerance = 1e-3;  // of sums of floats of at most 2^20 channels

Status CheckKept(const CutBasis& basis) {
  if (basis.kept.size() >= basis.width) {
    return InvalidArgument("{} channels kept apart of {}, fewer expected", basis.kept.size(),
                           basis.width);
  }
  for (std::size_t i = 0; i < basis.kept.size(); ++i) {
    if (basis.kept[i] >= basis.width || (i > 0 && basis.kept[i] <= basis.kept[i - 1])) {
      return InvalidArgument("channel {} kept apart, rising ones below {} expected", basis.kept[i],
                             basis.width);
    }
  }
  return OkStatus();
}

bool IsZeroWhereKept(std::span<const float> row, const CutBasis& basis) {
  return std::ranges::all_of(basis.kept,
                             [row](std::uint32_t channel) { return row[channel] == 0; });
}

template <typename T>
std::uint64_t DigestOn(const std::vector<T>& numbers, std::uint64_t seed) {
  return XXH3_64bits_withSeed(numbers.data(), numbers.size() * sizeof(T), seed);
}

}  // namespace

CutBasis PlainBasis(std::uint32_t layer, std::uint32_t width) {
  CutBasis basis;
  basis.layer = layer;
  basis.width = width;
  return basis;
}

Status CheckBasis(const CutBasis& basis) {
  if (basis.width < 1 || basis.width > kMostStateWidth) {
    return InvalidArgument("rows of width {}, 1 to {} expected", basis.width, kMostStateWidth);
  }
  TROUPE_RETURN_IF_ERROR(CheckKept(basis));
  const std::size_t most = basis.width - basis.kept.size();
  if (basis.directions.size() % basis.width != 0 || basis.ranks() > most) {
    return InvalidArgument("{} numbers of directions, rows of {} expected, {} at most",
                           basis.directions.size(), basis.width, most);
  }
  if (basis.finders.size() != basis.directions.size()) {
    return InvalidArgument("{} numbers of finders, {} expected as of directions",
                           basis.finders.size(), basis.directions.size());
  }
  const std::size_t means = basis.directions.empty() ? 0 : basis.width;
  if (basis.mean.size() != means) {
    return InvalidArgument("a mean of {} channels, {} expected", basis.mean.size(), means);
  }
  const auto finite = [](float x) { return std::isfinite(x); };
  if (!std::ranges::all_of(basis.mean, finite) ||
      (means > 0 && !IsZeroWhereKept(basis.mean, basis))) {
    return InvalidArgument("a mean that is not finite, or not 0 where channels are kept apart");
  }
  for (std::uint32_t i = 0; i < basis.ranks(); ++i) {
    double product = 0;
    for (std::size_t c = 0; c < basis.width; ++c) {
      product += double{basis.Finder(i)[c]} * basis.Direction(i)[c];
    }
    if (!(std::abs(product - 1) <= kProductTolerance) || !IsZeroWhereKept(basis.Finder(i), basis) ||
        !IsZeroWhereKept(basis.Direction(i), basis)) {
      return InvalidArgument(
          "number {} is not found along its direction, or not 0 where channels are kept apart", i);
    }
  }
  return OkStatus();
}

Status CheckCode(const StateCode& code, const CutBasis& basis) {
  if (code.rans && code.form == StateForm::kFloat) {
    return InvalidArgument("floats by an entropy coder, codes of 8 or 4 bits expected");
  }
  if (code.rank <= basis.ranks()) return OkStatus();
  const std::size_t most = basis.width - basis.kept.size();
  if (code.rank > most) {
    return InvalidArgument("a rank of {} is larger than the {} channels of a state", code.rank,
                           most);
  }
  return InvalidArgument("a rank of {} for the cut before layer {}, for which {} were fitted",
                         code.rank, basis.layer, basis.ranks());
}

std::uint64_t DigestOf(const CutBasis& basis, const StateCode& code) {
  if (code.exact()) return 0;
  const std::vector<std::uint32_t> shape = {basis.layer, basis.width};
  std::uint64_t digest = DigestOn(basis.kept, DigestOn(shape, 0));
  if (code.rank > 0) {
    digest = DigestOn(basis.directions, DigestOn(basis.finders, DigestOn(basis.mean, digest)));
  }
  return digest;
}

}  // namespace troupe
