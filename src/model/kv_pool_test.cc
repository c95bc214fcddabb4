#include "model/kv_pool.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "base/rng.h"
#include "testing/test_seed.h"

namespace troupe {
namespace {

using testing::HasSubstr;

ModelConfig ThreeLayers() {
  ModelConfig config;
  config.layers = 3;
  config.attention = {.heads = 4, .kv_heads = 2, .key_dim = 16, .value_dim = 16};
  return config;
}

std::unique_ptr<KvPool> Pool(std::uint32_t context, std::uint32_t sequences,
                             LayerRange layers = {0, 3}) {
  return KvPool::Create(ThreeLayers(), layers, {.context = context, .sequences = sequences})
      .value();
}

TEST(KvPool, LayersWithAWindowMayHaveHeadsOfTheirOwn) {
  ModelConfig config = ThreeLayers();
  AttentionConfig narrow = config.attention;
  narrow.kv_heads = 1;
  narrow.key_dim = narrow.value_dim = 32;
  config.window = {.positions = 8, .layers = {true, false, true}, .attention = narrow};
  const auto pool = KvPool::Create(config, {0, 3}, {.context = 64, .sequences = 1}).value();
  EXPECT_EQ(pool->LayoutOf(0).k_dim, 32u);
  EXPECT_EQ(pool->LayoutOf(1).kv_heads, 2u);
  // A position's keys and values are 32 halves each, in either kind.
  EXPECT_EQ(KvPool::BytesFor(config, {0, 3}, {.context = 64}), Bytes(64 * 3 * 2 * 32 * 2));
  KvSequence sequence = pool->NewSequence();
  ASSERT_TRUE(sequence.Reserve(64).ok());
  std::vector<float> row(32), back(32);
  for (std::uint32_t layer = 0; layer < 3; ++layer) {
    const KvLayout& layout = sequence.LayoutOf(layer);
    for (std::size_t i = 0; i < 32; ++i) row[i] = static_cast<float>(100 * layer + i);
    StoreKeys(layout, sequence.PageOf(layer, 63), layout.kv_heads - 1, 63, 1, row.data(), 32);
  }
  for (std::uint32_t layer = 0; layer < 3; ++layer) {
    const KvLayout& layout = sequence.LayoutOf(layer);
    LoadKey(layout, sequence.PageOf(layer, 63), layout.kv_heads - 1, 63, back.data());
    for (std::size_t i = 0; i < layout.k_dim; ++i) {
      ASSERT_EQ(back[i], static_cast<float>(100 * layer + i));
    }
  }
}

void ShareFirst(KvSequence& from, std::size_t pages, KvSequence& to) {
  for (std::size_t i = 0; i < pages; ++i) to.Share(from.Page(i));
}

void Fill(KvSequence& sequence, std::size_t from, std::size_t to, std::uint64_t seed) {
  for (std::size_t at = from; at < to; ++at) {
    for (std::uint32_t layer = 0; layer < 3; ++layer) {
      std::vector<float> row(16, static_cast<float>((seed + at * 7 + layer) % 1000));
      StoreKeys(sequence.LayoutOf(layer), sequence.PageOf(layer, at), 0, at % 256, 1, row.data(),
                16);
    }
  }
  sequence.Advance(to - from);
}

float KeyAt(KvSequence& sequence, std::uint32_t layer, std::size_t position) {
  std::vector<float> row(16);
  LoadKey(sequence.LayoutOf(layer), sequence.PageOf(layer, position), 0, position % 256,
          row.data());
  return row[0];
}

TEST(KvPool, APageHasTheBlockOfAttentionOrAShorterContext) {
  EXPECT_EQ(Pool(1024, 1)->page_positions(), Attention::kBlock);
  EXPECT_EQ(Pool(1024, 1)->pages(), 4u);
  EXPECT_EQ(Pool(257, 3)->pages(), 6u);
  EXPECT_EQ(Pool(20, 1)->page_positions(), 32u);
  EXPECT_EQ(Pool(20, 5)->pages(), 5u);
}

TEST(KvPool, TakesTheBytesThatItSaid) {
  const KvPoolShape shape{.context = 300, .sequences = 2};
  EXPECT_EQ(Pool(300, 2)->bytes(), KvPool::BytesFor(ThreeLayers(), {0, 3}, shape));
  // Keys and values of two heads in halves, for four pages.
  EXPECT_EQ(Pool(300, 2)->bytes(), Bytes(3 * 4 * 256 * 2 * (16 + 16) * 2));
  EXPECT_EQ(3 * Pool(300, 2, {1, 2})->bytes(), Pool(300, 2)->bytes());
}

TEST(KvPool, WhatIsReservedIsGivenBackAtTheEnd) {
  const auto pool = Pool(512, 2);
  {
    KvSequence a = pool->NewSequence(), b = pool->NewSequence();
    ASSERT_TRUE(a.Reserve(257).ok());
    EXPECT_EQ(a.capacity(), 512u);
    ASSERT_TRUE(b.Reserve(100).ok());
    EXPECT_EQ(pool->free_positions(), 256u);
    const KvSequence moved = std::move(a);
    EXPECT_EQ(a.capacity(), 0u);
    EXPECT_EQ(moved.capacity(), 512u);
    b = pool->NewSequence();
    EXPECT_EQ(pool->free_positions(), 512u);
  }
  EXPECT_EQ(pool->free_positions(), 1024u);
}

TEST(KvPool, AReservationThatDoesNotFitChangesNothingAndSaysWhatIsFree) {
  const auto pool = Pool(512, 1);
  KvSequence first = pool->NewSequence(), second = pool->NewSequence();
  ASSERT_TRUE(first.Reserve(256).ok());
  const Status refused = second.Reserve(300);
  EXPECT_EQ(refused.code(), Code::kResourceExhausted);
  EXPECT_THAT(refused.message(), HasSubstr("300 more positions"));
  EXPECT_THAT(refused.message(), HasSubstr("256 of 512 are free"));
  EXPECT_EQ(second.capacity(), 0u);
  EXPECT_TRUE(second.Reserve(200).ok());
  EXPECT_TRUE(first.Reserve(256).ok());  // what it has already
}

TEST(KvPool, TruncatingKeepsTheReservationAndShrinkingGivesItBack) {
  const auto pool = Pool(1024, 1);
  KvSequence sequence = pool->NewSequence();
  ASSERT_TRUE(sequence.Reserve(1024).ok());
  sequence.Advance(700);
  sequence.Truncate(300);
  EXPECT_EQ(sequence.length(), 300u);
  EXPECT_EQ(sequence.capacity(), 1024u);
  sequence.ShrinkTo(sequence.length());
  EXPECT_EQ(sequence.length(), 300u);
  EXPECT_EQ(sequence.capacity(), 512u);
  sequence.ShrinkTo(10);
  EXPECT_EQ(sequence.length(), 10u);
  EXPECT_EQ(pool->free_positions(), 768u);
}

TEST(KvPool, SharedPagesAreFreeOnceNobodyHasThem) {
  const auto pool = Pool(1024, 1);
  std::optional<KvSequence> first = pool->NewSequence();
  ASSERT_TRUE(first->Reserve(768).ok());
  first->Advance(600);
  KvSequence second = pool->NewSequence();
  ShareFirst(*first, 2, second);
  EXPECT_EQ(second.length(), 512u);
  EXPECT_EQ(pool->free_positions(), 256u);
  EXPECT_EQ(first->PageOf(2, 300), second.PageOf(2, 300));
  ASSERT_TRUE(second.Reserve(513).ok());
  EXPECT_NE(first->PageOf(2, 512), second.PageOf(2, 512));
  first.reset();
  EXPECT_EQ(pool->free_positions(), 256u);
  second.ShrinkTo(0);
  EXPECT_EQ(pool->free_positions(), 1024u);
}

TEST(KvPool, TruncatingBelowASharedPageLeavesItToTheOther) {
  const auto pool = Pool(1024, 1);
  KvSequence first = pool->NewSequence(), second = pool->NewSequence();
  ASSERT_TRUE(first.Reserve(768).ok());
  first.Advance(512);
  ShareFirst(first, 2, second);
  const std::byte* const shared = second.PageOf(0, 256);
  first.Truncate(256);  // goes on with a page of its own
  EXPECT_EQ(first.capacity(), 512u);
  EXPECT_NE(first.PageOf(0, 256), shared);
  EXPECT_EQ(second.PageOf(0, 256), shared);
  EXPECT_EQ(second.length(), 512u);
}

TEST(KvPoolDeathTest, ASharedPageCannotBeTruncatedWithin) {
  const auto pool = Pool(1024, 1);
  KvSequence first = pool->NewSequence(), second = pool->NewSequence();
  ASSERT_TRUE(first.Reserve(256).ok());
  first.Advance(256);
  ShareFirst(first, 1, second);
  EXPECT_DEATH(second.Truncate(100), "IsShared");
}

TEST(KvPool, AKeptPageOutlivesItsSequence) {
  const auto pool = Pool(1024, 1);
  std::optional<KvSequence> first = pool->NewSequence();
  ASSERT_TRUE(first->Reserve(256).ok());
  Fill(*first, 0, 256, 3);
  std::optional<KvPage> kept = first->Page(0);
  EXPECT_TRUE(kept->shared());
  first.reset();
  EXPECT_FALSE(kept->shared());
  EXPECT_EQ(pool->free_positions(), 768u);
  {
    KvSequence second = pool->NewSequence();
    second.Share(*kept);
    EXPECT_EQ(KeyAt(second, 2, 100), 705.0F);
  }
  kept.reset();
  EXPECT_EQ(pool->free_positions(), 1024u);
}

TEST(KvPool, APageIsTakenInPlaceOfOneThatIsReservedOrHalfFilled) {
  const auto pool = Pool(1024, 1);
  KvSequence first = pool->NewSequence(), second = pool->NewSequence();
  ASSERT_TRUE(first.Reserve(256).ok() && second.Reserve(512).ok());
  Fill(first, 0, 256, 3);
  Fill(second, 0, 100, 3);  // the same so far
  second.Share(first.Page(0));
  EXPECT_EQ(second.length(), 256u);
  EXPECT_EQ(second.capacity(), 512u);
  EXPECT_EQ(second.PageOf(1, 0), first.PageOf(1, 0));
  EXPECT_EQ(pool->free_positions(), 512u);  // its own is free again
}

TEST(KvPool, TheBeginningOfAPageIsCopied) {
  const auto pool = Pool(1024, 1);
  KvSequence first = pool->NewSequence(), second = pool->NewSequence();
  ASSERT_TRUE(first.Reserve(256).ok() && second.Reserve(256).ok());
  Fill(first, 0, 200, 3);
  second.Copy(first.Page(0), 130);
  EXPECT_EQ(second.length(), 130u);
  Fill(second, 130, 200, 50);
  for (std::size_t at = 0; at < 130; ++at) {
    EXPECT_EQ(KeyAt(second, 1, at), KeyAt(first, 1, at)) << at;
  }
  EXPECT_NE(KeyAt(second, 1, 130), KeyAt(first, 1, 130));
}

TEST(KvPool, ASequenceGoesOnInAPageThatAnotherHasLeft) {
  const auto pool = Pool(1024, 1);
  std::optional<KvSequence> first = pool->NewSequence();
  ASSERT_TRUE(first->Reserve(256).ok());
  Fill(*first, 0, 200, 3);
  KvPage kept = first->Page(0);
  const std::byte* const page = first->PageOf(0, 0);
  first.reset();
  {
    KvSequence second = pool->NewSequence();
    second.Take(std::move(kept), 120);
    EXPECT_EQ(second.length(), 120u);
    EXPECT_EQ(second.capacity(), 256u);
    EXPECT_EQ(second.PageOf(0, 0), page);
    EXPECT_EQ(pool->free_positions(), 768u);
  }
  EXPECT_EQ(pool->free_positions(), 1024u);
}

TEST(KvPool, WhoeverKeepsPagesIsAskedForThoseThatAreMissing) {
  const auto pool = Pool(1024, 1);
  KvSequence first = pool->NewSequence(), second = pool->NewSequence();
  ASSERT_TRUE(first.Reserve(768).ok());
  std::vector<std::size_t> asked;
  pool->OnShortage([&](std::size_t pages) {
    asked.push_back(pages);
    first.ShrinkTo(256);
  });
  ASSERT_TRUE(second.Reserve(256).ok());
  EXPECT_TRUE(asked.empty());
  ASSERT_TRUE(second.Reserve(768).ok());
  EXPECT_FALSE(second.Reserve(1024).ok());
  EXPECT_EQ(asked, (std::vector<std::size_t>{2, 1}));
}

TEST(KvPool, KeptPagesAreAskedForUntilNoneComes) {
  const auto pool = Pool(1024, 1);
  std::vector<KvPage> kept;
  while (auto page = pool->NewPage()) kept.push_back(*std::move(page));
  ASSERT_GT(kept.size(), 1u);
  pool->OnShortage([&](std::size_t) {
    if (!kept.empty()) kept.pop_back();
  });
  pool->GiveUpKept();
  EXPECT_TRUE(kept.empty());
}

TEST(KvPool, EveryPageHasOneOwnerWhateverComesAndGoes) {
  Rng rng(TestSeed());
  const auto pool = Pool(2048, 2);
  std::vector<KvSequence> sequences;
  for (int i = 0; i < 5; ++i) sequences.push_back(pool->NewSequence());
  for (int step = 0; step < 2000; ++step) {
    KvSequence& sequence = sequences[rng.Below(sequences.size())];
    const std::size_t asked = rng.Below(2048);
    if (rng.Below(2) == 0) {
      sequence.ShrinkTo(asked);
    } else {
      const std::size_t had = sequence.capacity();
      const std::size_t free = pool->free_positions();
      const bool fits = (asked + 255) / 256 * 256 <= had + free;
      ASSERT_EQ(sequence.Reserve(asked).ok(), fits) << asked << " beside " << had << ", " << free;
    }
    std::set<const std::byte*> pages;
    std::size_t reserved = 0;
    for (KvSequence& each : sequences) {
      for (std::size_t p = 0; p < each.capacity(); p += 256) pages.insert(each.PageOf(0, p));
      reserved += each.capacity();
    }
    ASSERT_EQ(pages.size() * 256, reserved);
    ASSERT_EQ(reserved + pool->free_positions(), 2u * 2048);
  }
}

}  // namespace
}  // namespace troupe
