#include "cluster/members/cluster_names.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace troupe {
namespace {

using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;

TEST(ClusterNames, AreThoseOfAllKeys) {
  EXPECT_THAT(ClustersOf({{.key = "/troupe/prod/plan"},
                          {.key = "/troupe/lab/nodes/a"},
                          {.key = "/troupe/lab/leader"},
                          {.key = "/troupe/"},
                          {.key = "/troupe/none"},
                          {.key = "/other/x/plan"}}),
              ElementsAre("lab", "prod"));
}

TEST(ClusterNames, TheNearestIsWhatWasMeant) {
  EXPECT_EQ(SayUnknownCluster("lap", {"lab", "prod"}),
            "etcd has no cluster 'lap', but 'lab' and 'prod': did you mean 'lab'? A new one begins "
            "with --new-cluster");
  EXPECT_THAT(SayUnknownCluster("prd", {"lab", "prod"}), HasSubstr("did you mean 'prod'?"));
  EXPECT_THAT(SayUnknownCluster("labor", {"lab-old", "labour", "x"}), HasSubstr("mean 'labour'?"));
}

TEST(ClusterNames, OfManySomeAreNamed) {
  std::vector<std::string> many;
  for (int i = 10; i < 30; ++i) many.push_back("c" + std::to_string(i));
  EXPECT_THAT(SayNewCluster("lab", many), EndsWith("'c17' and 12 others"));
  EXPECT_EQ(SayNewCluster("lab", {"a"}), "cluster 'lab' begins: etcd has 'a'");
  EXPECT_EQ(SayNewCluster("lab", {}), "cluster 'lab' begins: etcd has none yet");
}

}  // namespace
}  // namespace troupe
