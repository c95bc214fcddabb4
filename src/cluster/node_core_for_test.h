// What is asked of the nodes of simulated_nodes_for_test.h: whether all is well with them, and who
// of them leads.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "cluster/simulated_nodes_for_test.h"

namespace troupe {

// How many experts a node holds.
inline std::size_t CountOf(const std::vector<std::uint8_t>& held) {
  return static_cast<std::size_t>(std::ranges::count(held, 1));
}

inline ExpertBits BitsOf(const std::vector<std::uint8_t>& held) {
  const ExpertGrid grid = SimulatedNodes::kGrid;
  ExpertBits bits(grid);
  for (std::uint32_t layer = 0; layer < grid.layers; ++layer) {
    for (std::uint32_t expert = 0; expert < grid.experts; ++expert) {
      if (held[grid.Index({layer, expert})] != 0) bits.Add({layer, expert});
    }
  }
  return bits;
}

// Everybody knows everybody, all carry out one plan, and each knows what the others hold.
inline void ExpectWell(SimulatedNodes& nodes) {
  std::set<std::uint64_t> epochs;
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    ASSERT_NE(nodes.core(i), nullptr);
    EXPECT_EQ(nodes.core(i)->Peers().size(), nodes.size() - 1) << "node " << i;
    ASSERT_TRUE(nodes.core(i)->plan()) << "node " << i;
    epochs.insert(nodes.core(i)->plan()->epoch);
    EXPECT_TRUE(nodes.core(i)->settled()) << "node " << i;
    for (std::size_t other = 0; other < nodes.size(); ++other) {
      if (other == i) continue;
      const auto known = nodes.known(i).find("n" + std::to_string(other));
      ASSERT_NE(known, nodes.known(i).end()) << i << " of " << other;
      EXPECT_EQ(known->second, BitsOf(nodes.held(other))) << i << " of " << other;
    }
  }
  EXPECT_EQ(epochs.size(), 1u);
}

// The one that leads, where all agree on it.
inline std::size_t LeaderOf(SimulatedNodes& nodes) {
  std::set<std::size_t> leaders;
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    if (nodes.core(i) && nodes.core(i)->leads()) leaders.insert(i);
  }
  EXPECT_EQ(leaders.size(), 1u);
  return leaders.empty() ? 0 : *leaders.begin();
}

}  // namespace troupe
