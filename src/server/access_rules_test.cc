#include "server/access_rules.h"

#include <gtest/gtest.h>

namespace troupe {
namespace {

HttpRequest With(std::string name, std::string value) {
  return {.headers = {{std::move(name), std::move(value)}}};
}

TEST(AccessRules, WithoutKeysEverybodyMayAsk) {
  EXPECT_TRUE(MayAsk({}, {}));
  EXPECT_TRUE(MayAsk({}, With("Authorization", "Bearer anything")));
}

TEST(AccessRules, AKeyIsTakenAsBearerOrAsAnthropicsClientsSendIt) {
  const AccessRules rules{.keys = {"one", "two"}, .origins = {}};
  EXPECT_TRUE(MayAsk(rules, With("authorization", "Bearer one")));
  EXPECT_TRUE(MayAsk(rules, With("X-Api-Key", "two")));
  for (const char* wrong : {"Bearer", "Bearer ", "Bearer on", "Bearer onee", "one", "Basic one"}) {
    EXPECT_FALSE(MayAsk(rules, With("authorization", wrong))) << wrong;
  }
  EXPECT_FALSE(MayAsk(rules, {}));
}

TEST(AccessRules, SecretsAreTheSameOnlyIfEveryByteIs) {
  EXPECT_TRUE(SameSecret("abc", "abc"));
  EXPECT_FALSE(SameSecret("abc", "abd"));
  EXPECT_FALSE(SameSecret("abab", "ab"));
  EXPECT_FALSE(SameSecret("ab", "abab"));
  EXPECT_FALSE(SameSecret("a", ""));
  EXPECT_FALSE(SameSecret("", "a"));
}

TEST(AccessRules, APageOfAnotherOriginReadsNothingUnlessItMay) {
  const HttpRequest request = With("Origin", "https://a.example");
  EXPECT_TRUE(CrossOriginHeaders({}, request).empty());
  EXPECT_TRUE(CrossOriginHeaders({.keys = {}, .origins = {"https://b.example"}}, request).empty());
  const HttpHeaders headers =
      CrossOriginHeaders({.keys = {}, .origins = {"https://a.example"}}, request);
  EXPECT_EQ(HeaderOf(headers, "Access-Control-Allow-Origin"), "https://a.example");
  EXPECT_FALSE(CrossOriginHeaders({.keys = {}, .origins = {"*"}}, request).empty());
  EXPECT_TRUE(CrossOriginHeaders({.keys = {}, .origins = {"*"}}, {}).empty());
}

}  // namespace
}  // namespace troupe
