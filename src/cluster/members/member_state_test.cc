#include "cluster/members/member_state.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace troupe {
namespace {

using ::testing::HasSubstr;

MembershipOptions GoodOptions() {
  return {.cluster = "lab", .node = "a", .address = "10.0.0.3:7400", .model = "9f", .start = "7d"};
}

void ExpectRefused(const MembershipOptions& options, const char* words) {
  const Status status = Validate(options);
  ASSERT_FALSE(status.ok());
  EXPECT_THAT(status.message(), HasSubstr(words));
}

TEST(MembershipOptions, EveryFaultIsSaid) {
  EXPECT_TRUE(Validate(GoodOptions()).ok());
  MembershipOptions options = GoodOptions();
  options.cluster = "lab/2";
  ExpectRefused(options, "cluster 'lab/2'");
  options = GoodOptions();
  options.node = "";
  ExpectRefused(options, "node ''");
  options = GoodOptions();
  options.address = "";
  ExpectRefused(options, "no address");
  options = GoodOptions();
  options.start = "";
  ExpectRefused(options, "no start id");
  options = GoodOptions();
  options.ttl = 500'000'000;
  ExpectRefused(options, "a lease of 0.5 s");
  options = GoodOptions();
  options.retry = 0;
  ExpectRefused(options, "without a pause");
}

}  // namespace
}  // namespace troupe
