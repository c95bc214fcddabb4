#include "cluster/first_contact.h"

#include <gtest/gtest.h>

namespace troupe {
namespace {

TEST(FirstContact, ANewcomerEndsAtWhoLeadsOrFollowsAPlan) {
  FirstContact first;
  EXPECT_FALSE(first.EndsAt(false)) << "which of the two is wrong nobody knows";
  EXPECT_TRUE(first.EndsAt(true));
}

TEST(FirstContact, WhoWasTakenInNeverEndsOnAccountOfAStranger) {
  FirstContact first;
  first.Settle();
  EXPECT_FALSE(first.EndsAt(true));
  EXPECT_FALSE(first.EndsAtCertificate("a:1", true, 1));
}

TEST(FirstContact, ACertificateOfAnotherAuthorityEndsItAtTheLeaderOrAtTheLastOfAll) {
  FirstContact first;
  EXPECT_FALSE(first.EndsAtCertificate("b:1", false, 2));
  EXPECT_FALSE(first.EndsAtCertificate("b:1", false, 2)) << "the same one again";
  EXPECT_TRUE(first.EndsAtCertificate("c:1", false, 2));
  EXPECT_TRUE(FirstContact().EndsAtCertificate("a:1", true, 2));
}

}  // namespace
}  // namespace troupe
