// Policies one after the other: each sees the slots that those before it left open, and what is
// open at the end is waited for. A chain without links is exact. Which passes it has a say in is
// decided here, for all of them alike: large batches need nearly every expert anyway.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "expert/substitution/substitution_policy.h"

namespace troupe {

struct SubstitutionLimits {
  std::uint32_t most_tokens = 8;  // of a pass
};

// Sums over the passes that the chain had a say in, except for the first.
struct SubstitutionCounts {
  std::uint64_t passed_over = 0;  // layers of passes that it had none in
  std::uint64_t layers = 0;
  std::uint64_t tokens = 0;  // a token is counted in every layer
  std::uint64_t slots = 0;
  std::uint64_t missing = 0;  // slots whose expert was not there
  std::uint64_t waited = 0;   // of those: kept
  std::uint64_t substituted = 0;
  std::uint64_t low_bit = 0;
  std::uint64_t dropped = 0;
  std::uint64_t tokens_changed = 0;
  std::uint64_t loads_before = 0;  // missing experts that the router asked for, once a layer
  std::uint64_t loads_after = 0;   // of full precision, that the answers still ask for

  bool operator==(const SubstitutionCounts&) const = default;
};

// What a chain is and has done, as a value.
struct ChainReport {
  struct Link {
    std::string link;
    std::vector<NamedCount> counts;
  };
  std::string chain = "exact";
  SubstitutionLimits limits;
  SubstitutionCounts counts;
  std::vector<Link> links;

  bool exact() const { return links.empty(); }
  // Of all slots that the chain looked at, those that did not get the expert they chose in full.
  double ReplacedShare() const;
};

class SubstitutionChain {
 public:
  SubstitutionChain(std::vector<std::unique_ptr<SubstitutionPolicy>> links,
                    const SubstitutionLimits& limits = {});

  // An answer a slot, in the slots' order; good until the next call.
  std::span<const SlotAnswer> Answer(const RoutedLayer& routed);

  bool exact() const { return links_.empty(); }
  // Of the link that has the largest.
  double BorderShare() const;
  bool NeedsLowCopies() const;
  bool TakesOthers() const;
  const SubstitutionLimits& limits() const { return limits_; }
  const SubstitutionCounts& counts() const { return counts_; }
  std::span<const std::unique_ptr<SubstitutionPolicy>> links() const { return links_; }
  ChainReport Report() const;

 private:
  void Count(std::span<const SlotAnswer> answers);

  std::vector<std::unique_ptr<SubstitutionPolicy>> links_;
  SubstitutionLimits limits_;
  SubstitutionCounts counts_;
  LayerAnswers answers_;
  std::vector<std::uint8_t> wanted_;  // [expert]: bits, while counting
};

// "exact", or the links as ParseSubstitution reads them: "smoe:alpha=0.3+drop".
std::string ToString(const SubstitutionChain& chain);
// For people: the rule of every link with its counters, a line each.
std::string Explain(const ChainReport& report);

}  // namespace troupe
