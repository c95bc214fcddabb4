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

HttpRequest From(std::string origin, std::string host = "localhost:8080") {
  return {.headers = {{"Origin", std::move(origin)}, {"Host", std::move(host)}}};
}

TEST(AccessRules, APageOfAFileMayAskWhereItsOriginThatIsNoneIsAllowed) {
  const AccessRules closed{.keys = {}, .origins = {"https://a.example"}, .local_only = true};
  EXPECT_NE(WhyForeign(closed, From("null")).find("--cors null,"), std::string::npos);
  EXPECT_TRUE(CrossOriginHeaders(closed, From("null")).empty());
  const AccessRules open{.keys = {}, .origins = {"null"}, .local_only = true};
  EXPECT_EQ(WhyForeign(open, From("null")), "");
  EXPECT_EQ(HeaderOf(CrossOriginHeaders(open, From("null")), "Access-Control-Allow-Origin"),
            "null");
  EXPECT_NE(WhyForeign(open, From("https://evil.example")), "");
  EXPECT_NE(WhyForeign(open, From("null", "evil.example")), "");
}

TEST(AccessRules, ProgramsOfThisMachineMayAskAndReadAndNoSiteMay) {
  const AccessRules rules{.keys = {}, .origins = {}, .local_only = true};
  for (const char* origin :
       {"app://obsidian.md", "file://", "tauri://localhost", "vscode-webview://0a1b",
        "vscode-file://vscode-app", "http://tauri.localhost"}) {
    EXPECT_EQ(WhyForeign(rules, From(origin)), "") << origin;
    EXPECT_EQ(HeaderOf(CrossOriginHeaders(rules, From(origin)), "Access-Control-Allow-Origin"),
              origin);
    EXPECT_NE(WhyForeign(rules, From(origin, "evil.example")), "") << origin;
  }
  for (const char* origin :
       {"https://evil.example", "null", "http://app", "http://tauri.localhost.evil.example",
        "https://app.example", "http://localhost:3000", "app", "https://a.example/app://b"}) {
    EXPECT_NE(WhyForeign(rules, From(origin)), "") << origin;
    EXPECT_TRUE(CrossOriginHeaders(rules, From(origin)).empty()) << origin;
  }
}

TEST(AccessRules, WhoIsRefusedLearnsWhichOptionWouldLetItIn) {
  const AccessRules rules{.keys = {}, .origins = {}, .local_only = true};
  EXPECT_NE(WhyForeign(rules, From("https://a.example:1")).find("--cors https://a.example:1,"),
            std::string::npos);
  EXPECT_NE(WhyForeign(rules, From("http://a", "box.lan:80")).find("--allow-host box.lan,"),
            std::string::npos);
  EXPECT_NE(WhyForeign(rules, From("https://a;rm -rf x")).find("--cors ORIGIN,"),
            std::string::npos);
  EXPECT_EQ(WhyForeign({.keys = {"k"}, .origins = {}}, From("https://a.example")), "");
}

}  // namespace
}  // namespace troupe
