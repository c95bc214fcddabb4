// Virtual clusters whose nodes, leader and plan a store says (--etcd).
#include "cluster/virtual_seeds_for_test.h"

namespace troupe {
namespace {

TEST(VirtualStoreSeeds, NoRequestIsLostAndNoRuleBrokenAndAllIsWellInTheEnd) {
  LiveThroughSeeds(
      /*has_store=*/true,
      {"calls answered", "calls lost", "experts fetched", "experts let go",
       "links without a sign of life", "wrong answers found", "plans that the store refused"});
}

}  // namespace
}  // namespace troupe
