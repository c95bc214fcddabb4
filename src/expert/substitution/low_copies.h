// Which experts are read in the smaller of their two copies, where a container has two: in a prompt
// the least popular ones of a layer, which matter to few tokens and take the link as long as the
// others; in decode, if asked for, all that are missing. Lossy, so off until asked for. Pure: how
// a slot holds either copy and what is read is runtime's.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "expert/expert_copy.h"
#include "expert/expert_id.h"

namespace troupe {

struct LowCopyOptions {
  double prefill_share = 0;  // of a prompt's assignments in a layer, at most, from 0 to 1
  bool decode = false;       // an expert that one token misses comes in its low copy

  bool any() const { return prefill_share > 0 || decode; }
  bool operator==(const LowCopyOptions&) const = default;
};

// "prefill=0.25", "decode", "prefill=0.25,decode" or "off".
Result<LowCopyOptions> ParseLowCopies(const std::string& text);
std::string ToString(const LowCopyOptions& options);

// The rows of a pass that need one expert, by what may answer them.
struct RowKinds {
  std::uint32_t prompt = 0;
  std::uint32_t decode = 0;
  std::uint32_t exact = 0;  // of either phase: the full copy alone
};

// For each expert that a layer needs, the least copy that may answer all its rows: a prompt's rows
// are content with the low copy of what few of them need, decode rows if the options say so.
std::vector<ExpertCopy> LeastCopies(std::span<const RowKinds> demands,
                                    const LowCopyOptions& options);

// True for the least popular ones: as many, from the least on, as together hold no more than
// `share` of the sum. Of equal ones the first stay. Popularities are not negative.
std::vector<bool> LeastPopular(std::span<const double> popularity, double share);

}  // namespace troupe
