// Virtual clusters whose nodes are a list (--peers).
#include "cluster/virtual_seeds_for_test.h"

namespace troupe {
namespace {

TEST(VirtualListSeeds, NoRequestIsLostAndNoRuleBrokenAndAllIsWellInTheEnd) {
  LiveThroughSeeds(
      /*has_store=*/false,
      {"calls answered", "calls hedged", "calls refused", "calls lost", "calls cancelled",
       "loads overtaken", "loads that fail", "experts fetched", "experts resumed from another peer",
       "experts left to the disk", "experts let go", "links without a sign of life",
       "links where too much waited", "peers refused", "wrong answers found"});
}

}  // namespace
}  // namespace troupe
