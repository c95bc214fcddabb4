// Which experts may stand in for which: for each expert of a layer its buddies, best first, found
// from which experts tokens choose together (Wang et al., BuddyMoE, Eq. 4 to 6). A value; how it
// gets into files and out of them is others' business.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/status.h"
#include "expert/substitution/coactivations.h"

namespace troupe {

struct Buddy {
  std::uint32_t expert = 0;
  float share = 0;  // of the pivot's co-activations that are with this one: q(j|i)

  bool operator==(const Buddy&) const = default;
};

struct BuddyOptions {
  double coverage = 0.95;   // of a pivot's co-activations, by its list: alpha
  std::uint32_t most = 16;  // a list: K_max
  double smoothing = 0;     // added to every pair's count: epsilon
  bool weighted = false;    // by how much the two weigh, not by how often they meet

  bool operator==(const BuddyOptions&) const = default;
};

struct BuddyLists {
  ExpertGrid grid;
  std::vector<std::vector<Buddy>> lists;  // [layer][expert], flat like ExpertGrid::Index

  std::span<const Buddy> Of(ExpertId pivot) const { return lists[grid.Index(pivot)]; }
  // The mean length of those that are not empty; 0 if all are.
  double MeanLength() const;

  bool operator==(const BuddyLists& other) const {
    return grid.layers == other.grid.layers && grid.experts == other.grid.experts &&
           lists == other.lists;
  }
};

// An expert that nobody chose has no buddies, whatever the smoothing.
BuddyLists MakeBuddyLists(const Coactivations& counts, const BuddyOptions& options = {});

// A list for each expert, of other experts of the layer, each once, shares in (0, 1] that fall.
Status Validate(const BuddyLists& lists);

}  // namespace troupe
