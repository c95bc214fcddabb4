#include "text/grammar/id_sets.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <vector>

#include "base/rng.h"
#include "testing/test_seed.h"

namespace troupe {
namespace {

TEST(IdSets, TheSameSetHasTheSameIdAndOthersHaveOthers) {
  Rng rng(TestSeed());
  IdSets sets;
  std::map<std::vector<std::uint32_t>, SetId> expected;
  for (int round = 0; round < 5000; ++round) {
    std::vector<std::uint32_t> ids;
    for (std::uint32_t id = 0; id < 12; ++id) {
      if (rng.Below(2) == 0) ids.push_back(id * 1000);
    }
    const auto [known, is_new] = expected.emplace(ids, static_cast<SetId>(expected.size()));
    ASSERT_EQ(sets.Intern(ids), known->second);
  }
  ASSERT_EQ(sets.size(), expected.size());
  for (const auto& [ids, set] : expected) ASSERT_TRUE(std::ranges::equal(sets.Get(set), ids));
}

}  // namespace
}  // namespace troupe
