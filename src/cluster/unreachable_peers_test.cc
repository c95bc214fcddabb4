#include "cluster/unreachable_peers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace troupe {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::Pair;

TEST(UnreachablePeers, EachNewReasonIsSaidOnceUntilThereIsALink) {
  UnreachablePeers peers;
  EXPECT_TRUE(peers.Add("a:1", "refused"));
  EXPECT_FALSE(peers.Add("a:1", "refused"));
  EXPECT_TRUE(peers.Add("a:1", "no route"));
  EXPECT_FALSE(peers.Add("a:1", "refused")) << "it was said";
  EXPECT_TRUE(peers.Add("b:1", "refused"));
  EXPECT_THAT(peers.reasons(), ElementsAre(Pair("a:1", "refused"), Pair("b:1", "refused")));
  peers.Forget("a:1");
  peers.Forget("b:1");
  EXPECT_THAT(peers.reasons(), IsEmpty());
  EXPECT_TRUE(peers.Add("a:1", "refused"));
}

TEST(UnreachablePeers, ReasonsThatAreNeverTheSameAreNotSaidForEver) {
  UnreachablePeers peers;
  int said = 0;
  for (int i = 0; i < 100; ++i) said += peers.Add("a:1", std::to_string(i)) ? 1 : 0;
  EXPECT_LT(said, 20);
}

}  // namespace
}  // namespace troupe
