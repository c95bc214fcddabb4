#include "server/cache_salt.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <set>
#include <string>

namespace troupe {
namespace {

using testing::HasSubstr;
using testing::Not;

TEST(CacheSalt, SaysNothingOfTheKeyAndOfTheRequestsOwnSalt) {
  const std::string salt = CacheSalt("SECRETKEY", "OWNSALT");
  EXPECT_THAT(salt, Not(HasSubstr("SECRETKEY")));
  EXPECT_THAT(salt, Not(HasSubstr("OWNSALT")));
  EXPECT_THAT(CacheSalt(std::nullopt, "OWNSALT"), Not(HasSubstr("OWNSALT")));
  EXPECT_EQ(salt.size(), 64u);  // however long the key is
  EXPECT_EQ(CacheSalt(std::string(5000, 'k'), "").size(), 64u);
}

TEST(CacheSalt, IsTheSameForTheSamePairAlone) {
  EXPECT_EQ(CacheSalt("a", "b"), CacheSalt("a", "b"));
  const std::set<std::string> different = {
      CacheSalt("a", "b"), CacheSalt("ab", ""),           CacheSalt("", "ab"),
      CacheSalt("", ""),   CacheSalt(std::nullopt, "ab"), CacheSalt(std::nullopt, "2 ab")};
  EXPECT_EQ(different.size(), 6u);
}

TEST(CacheSalt, IsNoneWithoutAKeyThatCountsAndASalt) { EXPECT_EQ(CacheSalt(std::nullopt, ""), ""); }

}  // namespace
}  // namespace troupe
