#include "text/token_trie.h"

#include <gtest/gtest.h>

namespace troupe {
namespace {

constexpr auto kAny = [](TokenId, std::size_t) { return true; };

TEST(TokenTrie, FindsTheLongestTextAtThePlace) {
  TokenTrie trie;
  trie.Insert("<a>", 1);
  trie.Insert("<a><b>", 2);
  trie.Insert("<", 3);
  const auto match = trie.LongestPrefix("<a><b", kAny);
  ASSERT_TRUE(match.has_value());
  EXPECT_EQ(match->id, 1);
  EXPECT_EQ(match->length, 3u);
  EXPECT_EQ(trie.LongestPrefix("<a><b>x", kAny)->id, 2);
  EXPECT_EQ(trie.LongestPrefix("<b>", kAny)->id, 3);
  EXPECT_FALSE(trie.LongestPrefix("a<a>", kAny).has_value());
}

TEST(TokenTrie, FallsBackToAShorterTextIfTheLongerIsNotAccepted) {
  TokenTrie trie;
  trie.Insert("ab", 1);
  trie.Insert("abc", 2);
  const auto match = trie.LongestPrefix("abcd", [](TokenId id, std::size_t) { return id != 2; });
  ASSERT_TRUE(match.has_value());
  EXPECT_EQ(match->id, 1);
}

TEST(TokenTrie, IgnoresTheEmptyText) {
  TokenTrie trie;
  trie.Insert("", 1);
  EXPECT_TRUE(trie.empty());
  EXPECT_FALSE(trie.LongestPrefix("a", kAny).has_value());
}

}  // namespace
}  // namespace troupe
