#include "split/flow/known_prefixes.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "base/rng.h"
#include "testing/test_seed.h"

namespace troupe {
namespace {

constexpr std::size_t kTile = KnownPrefixes::kTile;

// Tokens from `first` on.
std::vector<TokenId> Text(TokenId first, std::size_t tokens) {
  std::vector<TokenId> text(tokens);
  for (std::size_t i = 0; i < tokens; ++i) text[i] = first + static_cast<TokenId>(i);
  return text;
}

TEST(KnownPrefixes, TheNextTurnOfAChatIsReadBehindWhatThePlaceHasAnswered) {
  KnownPrefixes known;
  const std::vector<TokenId> turn = Text(5, 10 * kTile + 3);
  EXPECT_EQ(known.Kept("", turn), 0u);
  known.Remember("", turn);
  std::vector<TokenId> next = turn;
  for (const TokenId token : Text(900, 40)) next.push_back(token);
  EXPECT_EQ(known.Kept("", next), 10 * kTile) << "whole tiles";
  known.Remember("", next);
  EXPECT_EQ(known.texts(), 1u) << "the first turn is in the second";
  EXPECT_EQ(known.tiles(), next.size() / kTile);
  known.Remember("", turn);
  EXPECT_EQ(known.texts(), 1u);
  next[3 * kTile] = 1;
  EXPECT_EQ(known.Kept("", next), 3 * kTile);
  next[0] = 1;
  EXPECT_EQ(known.Kept("", next), 0u);
}

TEST(KnownPrefixes, TheLastTokenIsAlwaysRead) {
  KnownPrefixes known;
  known.Remember("", Text(5, 4 * kTile));
  EXPECT_EQ(known.Kept("", Text(5, 4 * kTile)), 3 * kTile);
  EXPECT_EQ(known.Kept("", Text(5, 4 * kTile + 1)), 4 * kTile);
  EXPECT_EQ(known.Kept("", {}), 0u);
}

TEST(KnownPrefixes, TextsOfOtherSaltsFindNothing) {
  KnownPrefixes known;
  known.Remember("mine", Text(5, 100));
  EXPECT_EQ(known.Kept("mine", Text(5, 100)), 96u);
  EXPECT_EQ(known.Kept("", Text(5, 100)), 0u);
  EXPECT_EQ(known.Kept("yours", Text(5, 100)), 0u);
}

TEST(KnownPrefixes, APlaceThatHasBegunAnewKnowsNothing) {
  KnownPrefixes known;
  known.Remember("", Text(5, 100));
  known.Forget();
  EXPECT_EQ(known.Kept("", Text(5, 100)), 0u);
  EXPECT_EQ(known.tiles(), 0u);
}

TEST(KnownPrefixes, TheOldestGoFirstAndMemoryIsBounded) {
  KnownPrefixes known;
  const auto text = [](std::size_t i) { return Text(static_cast<TokenId>(1000 * i), 40); };
  for (std::size_t i = 0; i < KnownPrefixes::kMostTexts; ++i) known.Remember("", text(i));
  known.Remember("", text(0));  // the newest again
  known.Remember("", text(KnownPrefixes::kMostTexts));
  EXPECT_EQ(known.texts(), KnownPrefixes::kMostTexts);
  EXPECT_EQ(known.Kept("", text(0)), 32u);
  EXPECT_EQ(known.Kept("", text(1)), 0u);
  EXPECT_EQ(known.Kept("", text(2)), 32u);
  const std::size_t most = KnownPrefixes::kMostTiles * kTile;
  known.Remember("", Text(1 << 20, most + 100));
  EXPECT_EQ(known.texts(), 1u);
  EXPECT_EQ(known.tiles(), KnownPrefixes::kMostTiles);
  EXPECT_EQ(known.Kept("", Text(1 << 20, most + 100)), most);
}

TEST(KnownPrefixes, AreTheLongestThatAnyTextHas) {
  Rng rng(TestSeed());
  KnownPrefixes known;
  std::vector<std::vector<TokenId>> texts;
  for (int step = 0; step < 300; ++step) {
    // Of two tokens, so that many begin alike.
    std::vector<TokenId> text(rng.Below(6 * kTile));
    for (std::size_t i = 0; i < text.size(); ++i) {
      text[i] = i % kTile == 0 ? static_cast<TokenId>(rng.Below(2)) : 7;
    }
    std::size_t most = 0;
    for (const auto& other : texts) {
      const auto same = std::mismatch(text.begin(), text.end(), other.begin(), other.end()).first;
      const auto all = static_cast<std::size_t>(same - text.begin());
      const std::size_t whole = other.size() / kTile * kTile;  // as it is remembered
      const std::size_t last = text.empty() ? 0 : text.size() - 1;
      most = std::max(most, std::min({all, whole, last}) / kTile * kTile);
    }
    ASSERT_EQ(known.Kept("", text), most) << "step " << step;
    known.Remember("", text);
    ASSERT_LE(known.texts(), 32u) << "none begins as another one, so none was forgotten";
    texts.push_back(std::move(text));
  }
}

}  // namespace
}  // namespace troupe
