// The virtual cluster itself: it is replayed from its seed, and it is well where nothing fails.
#include "cluster/virtual_cluster_for_test.h"

#include <gtest/gtest.h>

#include "cluster/virtual_seeds_for_test.h"

namespace troupe {
namespace {

TEST(VirtualCluster, TheSameSeedIsTheSameTimelineToTheByte) {
  for (const bool has_store : {false, true}) {
    for (const std::uint64_t seed : {1, 2, 3, 4, 5, 6, 7, 8}) {
      const VirtualShape shape = VirtualShapeOf(seed, has_store);
      const std::string timeline = TimelineOf(shape);
      EXPECT_GT(timeline.size(), 1'000u);
      EXPECT_EQ(timeline, TimelineOf(shape)) << seed;
    }
  }
}

TEST(VirtualCluster, WhereNothingFailsAllAreSoonWellAndPeersAnswer) {
  for (const bool has_store : {false, true}) {
    VirtualCluster cluster({.has_store = has_store});
    cluster.Run(20 * VirtualCluster::kSecond);
    EXPECT_EQ(cluster.rules().WhyNotWell().value_or(""), "");
    for (int i = 0; i < 20; ++i) {
      cluster.node(0)->users().AskLayer(true);
      cluster.Run(2 * VirtualCluster::kSecond);
    }
    EXPECT_EQ(cluster.rules().broken(), "");
    EXPECT_GT(cluster.node(0)->users().given_by_peers(), 50u);
    EXPECT_EQ(cluster.node(0)->calls().counters().lost, 0u);
  }
}

}  // namespace
}  // namespace troupe
