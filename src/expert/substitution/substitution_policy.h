// One way to answer slots whose experts are not in memory without waiting for them. Policies are
// links of a chain (substitution_chain.h): each looks at the slots that are still open and answers
// those that it has an answer for. Every one of them costs quality; exact answers need no policy.
// One file a policy.
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "expert/substitution/layer_answers.h"

namespace troupe {

inline constexpr double kAnyScore = std::numeric_limits<double>::infinity();
inline constexpr std::uint32_t kNoLimit = std::numeric_limits<std::uint32_t>::max();

struct NamedCount {
  std::string_view name;  // of a gate or a kind of answer
  std::uint64_t count = 0;

  bool operator==(const NamedCount&) const = default;
};

class SubstitutionPolicy {
 public:
  virtual ~SubstitutionPolicy() = default;
  virtual std::string_view name() const = 0;
  // Name and options, as ParseSubstitution (substitution_spec.h) reads them.
  virtual std::string ToString() const = 0;

  virtual void Answer(LayerAnswers& layer) = 0;

  // A missing expert whose score is within this share of the boundary's may be replaced or left
  // out: reading it ahead buys little. kAnyScore: any may be.
  virtual double BorderShare() const { return 0; }
  // It answers with low copies, so that a model without them has no use for it.
  virtual bool NeedsLowCopies() const { return false; }
  // It gives slots to experts that the router did not choose, without a word on which it might
  // have.
  virtual bool TakesOthers() const { return false; }

  // How often each of its gates closed and each of its answers was given.
  virtual std::vector<NamedCount> counts() const = 0;
};

}  // namespace troupe
