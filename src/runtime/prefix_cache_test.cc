#include "runtime/prefix_cache.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <optional>

#include "base/rng.h"
#include "testing/test_seed.h"

namespace troupe {
namespace {

using CachedText = std::vector<std::int32_t>;
constexpr std::size_t kPage = Attention::kBlock;
constexpr std::size_t kPages = 16;

CachedText Counting(std::size_t count, std::int32_t first = 0) {
  CachedText tokens(count);
  std::iota(tokens.begin(), tokens.end(), first);
  return tokens;
}

CachedText operator+(CachedText a, const CachedText& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

// What is stored of a token is the sum of all up to it: a page of another text is told from its
// own.
class PrefixCacheTest : public testing::Test {
 protected:
  static ModelConfig OneLayer() {
    ModelConfig config;
    config.layers = 1;
    config.attention = {.heads = 1, .kv_heads = 1, .key_dim = 16, .value_dim = 16};
    return config;
  }

  static float Expected(const CachedText& tokens, std::size_t position) {
    std::uint32_t sum = 7;
    for (std::size_t i = 0; i <= position; ++i)
      sum = sum * 31 + static_cast<std::uint32_t>(tokens[i]) + 1;
    return static_cast<float>(sum % 1999);
  }
  static void Fill(KvSequence& sequence, const CachedText& tokens) {
    for (std::size_t at = sequence.length(); at < tokens.size(); ++at) {
      const std::vector<float> row(16, Expected(tokens, at));
      StoreKeys(sequence.LayoutOf(0), sequence.PageOf(0, at), 0, at % kPage, 1, row.data(), 16);
    }
    sequence.Advance(tokens.size() - sequence.length());
  }
  static bool Holds(KvSequence& sequence, const CachedText& tokens) {
    for (std::size_t at = 0; at < sequence.length(); ++at) {
      std::vector<float> row(16);
      LoadKey(sequence.LayoutOf(0), sequence.PageOf(0, at), 0, at % kPage, row.data());
      if (row[0] != Expected(tokens, at)) return false;
    }
    return true;
  }

  // A sequence that has read these tokens and ended.
  void Leave(const CachedText& tokens) {
    KvSequence sequence = pool_->NewSequence();
    cache_.Extend(sequence, tokens);
    ASSERT_TRUE(sequence.Reserve(tokens.size()).ok());
    Fill(sequence, tokens);
    cache_.Keep(sequence, tokens, PrefixCache::Keeping::kAll);
  }
  // How much of these tokens a new sequence begins with, that has room for all.
  std::size_t Found(const CachedText& tokens) {
    KvSequence sequence = pool_->NewSequence();
    std::size_t found = cache_.Extend(sequence, tokens);
    EXPECT_EQ(found % kPage, 0u);
    EXPECT_TRUE(sequence.Reserve(tokens.size()).ok());
    found += cache_.Extend(sequence, tokens);
    EXPECT_EQ(found, sequence.length());
    EXPECT_TRUE(Holds(sequence, tokens));
    return found;
  }

  std::unique_ptr<KvPool> pool_ =
      KvPool::Create(OneLayer(), {0, 1}, {.context = kPages * kPage}).value();
  PrefixCache cache_{*pool_};
};

TEST_F(PrefixCacheTest, ATextIsFoundToItsLastToken) {
  Leave(Counting(600));
  EXPECT_EQ(cache_.pages(), 3u);
  EXPECT_EQ(Found(Counting(600)), 600u);
  EXPECT_EQ(Found(Counting(900)), 600u);
  EXPECT_EQ(Found(Counting(599)), 599u);
  EXPECT_EQ(Found(Counting(256)), 256u);
  EXPECT_EQ(Found(Counting(600, 1)), 0u);
}

TEST_F(PrefixCacheTest, TextsWithDifferentSaltsHaveNothingInCommon) {
  const auto leave = [&](std::size_t length, std::string_view salt) {
    KvSequence sequence = pool_->NewSequence();
    ASSERT_TRUE(sequence.Reserve(length).ok());
    Fill(sequence, Counting(length));
    cache_.Keep(sequence, Counting(length), PrefixCache::Keeping::kAll, salt);
  };
  const auto found = [&](std::string_view salt) {
    KvSequence sequence = pool_->NewSequence();
    EXPECT_TRUE(sequence.Reserve(900).ok());
    const std::size_t tokens = cache_.Extend(sequence, Counting(900), salt);
    EXPECT_EQ(tokens, cache_.KnownOf(Counting(900), salt));
    EXPECT_TRUE(Holds(sequence, Counting(900)));
    return tokens;
  };
  leave(600, "a");
  EXPECT_EQ(found("a"), 600u);
  EXPECT_EQ(found("b"), 0u);
  EXPECT_EQ(found(""), 0u);
  EXPECT_TRUE(cache_.All().empty());  // what has a salt is not written down
  leave(300, "b");
  leave(100, "");
  EXPECT_EQ(cache_.pages(), 6u);
  EXPECT_EQ(cache_.Idle(), 6u);
  EXPECT_EQ(found("a"), 600u);
  EXPECT_EQ(found("b"), 300u);
  EXPECT_EQ(found(""), 100u);
  EXPECT_EQ(cache_.All().size(), 1u);
  EXPECT_EQ(cache_.GiveUp(9), 6u);
  for (const std::string_view salt : {"a", "b", ""}) EXPECT_EQ(found(salt), 0u);
}

TEST_F(PrefixCacheTest, TextsThatPartShareWhatTheyHaveInCommon) {
  Leave(Counting(600));
  Leave(Counting(300) + Counting(300, 5000));
  EXPECT_EQ(cache_.pages(), 5u);  // a page in common, two of each
  EXPECT_EQ(Found(Counting(600)), 600u);
  EXPECT_EQ(Found(Counting(300) + Counting(300, 5000)), 600u);
  EXPECT_EQ(Found(Counting(280) + Counting(10, 9000)), 280u);
}

TEST_F(PrefixCacheTest, ATextThatGoesOnTakesThePlaceOfItsBeginning) {
  Leave(Counting(100));
  Leave(Counting(200));
  EXPECT_EQ(cache_.pages(), 1u);
  EXPECT_EQ(Found(Counting(300)), 200u);
  Leave(Counting(150));
  EXPECT_EQ(cache_.pages(), 1u);
  EXPECT_EQ(Found(Counting(300)), 200u);
}

TEST_F(PrefixCacheTest, OfASequenceThatGoesOnOnlyFullPagesAreKept) {
  KvSequence sequence = pool_->NewSequence();
  ASSERT_TRUE(sequence.Reserve(600).ok());
  Fill(sequence, Counting(300));
  cache_.Keep(sequence, Counting(300), PrefixCache::Keeping::kFullPages);
  EXPECT_EQ(Found(Counting(600)), 256u);
  Fill(sequence, Counting(600));
  cache_.Keep(sequence, Counting(600), PrefixCache::Keeping::kFullPages);
  EXPECT_EQ(Found(Counting(600)), 512u);
}

TEST_F(PrefixCacheTest, ASequenceTakesOverWhatAnotherHasReadMeanwhile) {
  KvSequence sequence = pool_->NewSequence();
  ASSERT_TRUE(sequence.Reserve(700).ok());
  Fill(sequence, Counting(100));
  EXPECT_EQ(cache_.Extend(sequence, Counting(700)), 0u);
  Leave(Counting(650));
  const std::size_t free = pool_->free_positions();
  EXPECT_EQ(cache_.Extend(sequence, Counting(700)), 550u);
  EXPECT_EQ(pool_->free_positions(), free + 2 * kPage);  // its own pages, which it shares now
  EXPECT_TRUE(Holds(sequence, Counting(700)));
}

TEST_F(PrefixCacheTest, ASequenceMayGoOnInTheLastPageItself) {
  Leave(Counting(600));
  {
    KvSequence sequence = pool_->NewSequence();
    EXPECT_EQ(cache_.ExtendByTaking(sequence, Counting(590)), 590u);
    EXPECT_TRUE(Holds(sequence, Counting(590)));
    EXPECT_EQ(cache_.pages(), 2u);
    EXPECT_EQ(cache_.counters().taken, 1u);
    EXPECT_EQ(Found(Counting(600)), 512u);
    cache_.Keep(sequence, Counting(590), PrefixCache::Keeping::kAll);
  }
  EXPECT_EQ(Found(Counting(600)), 590u);
}

TEST_F(PrefixCacheTest, APageThatOthersHaveOrGoOnBehindIsNotTaken) {
  Leave(Counting(600));
  KvSequence holds = pool_->NewSequence(), sequence = pool_->NewSequence();
  EXPECT_EQ(cache_.ExtendByTaking(sequence, Counting(300)),
            256u);  // the second has a third behind it
  EXPECT_EQ(cache_.Extend(holds, Counting(512)), 512u);
  EXPECT_EQ(cache_.ExtendByTaking(sequence, Counting(300)), 0u);
  EXPECT_EQ(cache_.pages(), 3u);
}

TEST_F(PrefixCacheTest, WhatWasNotUsedForLongestMakesRoomFirstAndEndsBeforeBeginnings) {
  Leave(Counting(512));
  Leave(Counting(512, 5000));
  EXPECT_EQ(Found(Counting(256)), 256u);  // the beginning alone
  EXPECT_EQ(cache_.GiveUp(1), 1u);
  EXPECT_EQ(Found(Counting(512)), 256u);
  EXPECT_EQ(cache_.GiveUp(2), 2u);
  EXPECT_EQ(Found(Counting(512, 5000)), 0u);
  EXPECT_EQ(Found(Counting(512)), 256u);
  EXPECT_EQ(cache_.counters().given_up, 3u);
}

TEST_F(PrefixCacheTest, ChangesAreCountedAndUsesAreNot) {
  EXPECT_EQ(cache_.changes(), 0u);
  Leave(Counting(kPage + 40));
  const std::uint64_t kept = cache_.changes();
  EXPECT_GT(kept, 0u);
  EXPECT_EQ(Found(Counting(kPage + 40)), kPage + 40);
  Leave(Counting(kPage + 40));
  Leave(Counting(kPage + 10));  // the beginning of what it has
  EXPECT_EQ(cache_.changes(), kept);
  Leave(Counting(kPage + 50));
  const std::uint64_t longer = cache_.changes();
  EXPECT_GT(longer, kept);
  EXPECT_EQ(cache_.GiveUp(1), 1u);
  EXPECT_GT(cache_.changes(), longer);
}

TEST_F(PrefixCacheTest, WhatASequenceHasIsNotGivenUp) {
  Leave(Counting(512));
  KvSequence sequence = pool_->NewSequence();
  EXPECT_EQ(cache_.Extend(sequence, Counting(256)), 256u);
  EXPECT_EQ(cache_.Idle(), 1u);
  EXPECT_EQ(cache_.GiveUp(5), 1u);
  EXPECT_EQ(Found(Counting(512)), 256u);
  EXPECT_TRUE(Holds(sequence, Counting(512)));
}

// Whatever comes, ends, goes on and is given up: what is found is what would have been computed,
// and no page is lost.
TEST_F(PrefixCacheTest, WhatIsFoundIsWhatWouldBeComputedInAnyOrderOfEvents) {
  Rng rng(TestSeed());
  const auto random_text = [&] {
    const std::int32_t stem = 1000 * static_cast<std::int32_t>(rng.Below(3));
    CachedText text = Counting(1 + rng.Below(700), stem);
    if (rng.Below(2) == 0) {
      text = text + Counting(1 + rng.Below(400), 100 * static_cast<std::int32_t>(rng.Below(4)));
    }
    return text;
  };
  pool_->OnShortage([&](std::size_t pages) { cache_.GiveUp(pages); });
  struct Live {
    KvSequence sequence;
    CachedText text;
  };
  std::vector<Live> live;
  std::size_t found = 0;
  for (int step = 0; step < 3000; ++step) {
    if (live.size() < 4 && rng.Below(2) == 0) {
      Live one{pool_->NewSequence(), random_text()};
      found += cache_.Extend(one.sequence, one.text);
      if (!one.sequence.Reserve(one.text.size()).ok()) continue;
      found += cache_.Extend(one.sequence, one.text);
      live.push_back(std::move(one));
    } else if (!live.empty()) {
      Live& one = live[rng.Below(live.size())];
      found += cache_.Extend(one.sequence, one.text);
      const std::size_t read = one.sequence.length();
      const CachedText held(one.text.begin(),
                            one.text.begin() + static_cast<std::ptrdiff_t>(
                                                   read + rng.Below(one.text.size() - read + 1)));
      Fill(one.sequence, held);
      ASSERT_TRUE(Holds(one.sequence, one.text)) << step;
      const bool ends = rng.Below(3) == 0;
      cache_.Keep(one.sequence, held,
                  ends ? PrefixCache::Keeping::kAll : PrefixCache::Keeping::kFullPages);
      if (ends) live.erase(live.begin() + (&one - live.data()));
    }
    ASSERT_LE(cache_.pages() * kPage + pool_->free_positions(), kPages * kPage);
  }
  EXPECT_GT(found, 50'000u);
  EXPECT_GT(cache_.counters().given_up, 100u);
  live.clear();
  EXPECT_EQ(cache_.Idle(), cache_.pages());
  cache_.GiveUp(kPages);
  EXPECT_EQ(pool_->free_positions(), kPages * kPage);
}

}  // namespace
}  // namespace troupe
