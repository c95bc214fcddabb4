#include "runtime/part_keys.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <limits>

#include "base/rng.h"
#include "runtime/engine.h"
#include "runtime/part_runner.h"
#include "runtime/session.h"
#include "testing/test_seed.h"

namespace troupe {
namespace {

using testing::HasSubstr;

constexpr LayerRange kAllLayers{0, 4};

class PartKeysTest : public testing::Test {
 protected:
  std::unique_ptr<KvPool> NewPool(KvType type) {
    ModelConfig config;
    config.layers = kAllLayers.end;
    config.attention.heads = config.attention.kv_heads = 2;
    config.attention.key_dim = 64;
    config.attention.value_dim = type == KvType::kF16 ? 24 : 32;
    return KvPool::Create(config, kAllLayers, {.type = type, .context = 96, .sequences = 1})
        .value();
  }
  // With any numbers at the first positions.
  KvSequence Filled(KvPool& pool, std::size_t positions) {
    KvSequence sequence = pool.NewSequence();
    EXPECT_TRUE(sequence.Reserve(positions).ok());
    std::vector<float> row(64);
    for (std::uint32_t layer = 0; layer < kAllLayers.end; ++layer) {
      for (std::size_t at = 0; at < positions; ++at) {
        for (std::uint32_t head = 0; head < 2; ++head) {
          for (float& x : row) x = static_cast<float>(rng_.Uniform()) - 0.5f;
          std::byte* const page = sequence.PageOf(layer, at);
          StoreKeys(pool.LayoutOf(layer), page, head, at, 1, row.data(), row.size());
          StoreValues(pool.LayoutOf(layer), page, head, at, 1, row.data(), row.size());
        }
      }
    }
    sequence.Advance(positions);
    return sequence;
  }

  Rng rng_{TestSeed()};
};

TEST_F(PartKeysTest, ComeOutOfAnotherPoolAsTheyWentIn) {
  for (const KvType type : {KvType::kF16, KvType::kQ8_0}) {
    const std::unique_ptr<KvPool> here = NewPool(type), there = NewPool(type);
    const KvSequence sequence = Filled(*here, 70);
    KvSequence other = there->NewSequence();
    ASSERT_TRUE(other.Reserve(70).ok());
    const KeysRange range{.layers = {0, 3}, .first = 16, .positions = 48};
    const std::size_t of_layer = KeysBytes(*here, {.layers = {0, 1}, .positions = 48});
    EXPECT_EQ(of_layer, 48 * KeysBytes(here->LayoutOf(0)));
    const std::vector<KeysPart> parts = CopyKeys(*here, sequence, range, 2 * of_layer);
    ASSERT_EQ(parts.size(), 2u) << "two layers, and one";
    EXPECT_EQ(CopyKeys(*here, sequence, range, 1).size(), 3u) << "a layer at least";
    for (const KeysPart& part : parts) {
      EXPECT_TRUE(CheckKeys(*there, part.range, part.bytes).ok());
      PutKeys(*there, part.range, part.bytes, other);
    }
    other.Advance(70);
    const std::vector<KeysPart> again = CopyKeys(*there, other, range, 2 * of_layer);
    ASSERT_EQ(again.size(), parts.size());
    for (std::size_t i = 0; i < parts.size(); ++i) EXPECT_EQ(again[i].bytes, parts[i].bytes);
  }
}

TEST_F(PartKeysTest, AreRefusedWhereTheyAreTooFewOrNoNumbers) {
  for (const KvType type : {KvType::kF16, KvType::kQ8_0}) {
    const std::unique_ptr<KvPool> pool = NewPool(type);
    const KvSequence sequence = Filled(*pool, 32);
    const KeysRange range{.layers = {1, 3}, .first = 0, .positions = 32};
    const std::vector<std::byte> good = CopyKeys(*pool, sequence, range, 1 << 20).front().bytes;
    EXPECT_TRUE(CheckKeys(*pool, range, good).ok());
    EXPECT_THAT(CheckKeys(*pool, range, std::span(good).first(good.size() - 2)).message(),
                HasSubstr("bytes of layers 1 to 3"));
    const std::uint16_t infinite = 0x7c00;
    const KvLayout& layout = pool->LayoutOf(2);
    for (const std::size_t at : {std::size_t{0}, layout.KeyTileBytes()}) {  // a key, and a value
      std::vector<std::byte> bad = good;
      std::memcpy(bad.data() + good.size() / 2 + at, &infinite, sizeof infinite);
      EXPECT_THAT(CheckKeys(*pool, range, bad).message(),
                  HasSubstr("of layer 2 a number is not finite"));
    }
  }
}

TEST_F(PartKeysTest, WhatLiesBehindAValueStaysHere) {
  const std::unique_ptr<KvPool> pool = NewPool(KvType::kF16);
  KvSequence sequence = pool->NewSequence();
  ASSERT_TRUE(sequence.Reserve(16).ok());
  std::memset(sequence.PageOf(0, 0), 0x11, pool->LayoutOf(0).TotalBytes().count());
  sequence.Advance(16);
  const KvLayout& layout = pool->LayoutOf(0);
  const std::vector<std::byte> bytes =
      CopyKeys(*pool, sequence, {.layers = {0, 1}, .positions = 16}, 1 << 20).front().bytes;
  const std::size_t row = layout.KeyTileBytes();
  EXPECT_EQ(bytes[row + 2 * layout.v_dim - 1], std::byte{0x11});
  EXPECT_EQ(bytes[row + 2 * layout.v_dim], std::byte{0});
}

TEST_F(PartKeysTest, WholeTilesLeaveAToken) {
  EXPECT_EQ(WholeTilesBefore(0), 0u);
  EXPECT_EQ(WholeTilesBefore(16), 0u);
  EXPECT_EQ(WholeTilesBefore(17), 16u);
  EXPECT_EQ(WholeTilesBefore(64), 48u);
}

// As a cloud has it: the layers before the cut from elsewhere, the others computed here, and all of
// it for a sequence of the engine.
TEST_F(PartKeysTest, ASequenceGoesOnBehindLayersThatWereComputedElsewhere) {
  constexpr const char* kModel = TROUPE_SOURCE_DIR "/models/tiny-qwen2moe-q8_0.gguf";
  constexpr std::uint32_t kCut = 3, kLayers = 8;
  for (const KvType type : {KvType::kF16, KvType::kQ8_0}) {
    EngineOptions options{.threads = 2, .context = 96, .sequences = 3, .chunk = 64};
    options.kv_type = type;
    Result<std::unique_ptr<Engine>> opened = Engine::Open(kModel, options);
    if (!opened.ok()) continue;  // heads that the type cannot have
    Engine& engine = **opened;
    PartRunner end = PartRunner::Create(engine, {.layers = {0, kCut}, .positions = 96}).value();
    PartRunner cloud =
        PartRunner::Create(engine, {.layers = {0, kLayers}, .positions = 96}).value();
    std::vector<TokenId> text(41);
    for (TokenId& token : text) token = static_cast<TokenId>(rng_.Below(200));
    const std::size_t prefix = WholeTilesBefore(text.size());
    const TokenIds first = std::span(text).first(prefix);

    std::unique_ptr<PartRunner::Sequence> lower = end.Open(prefix), upper = cloud.Open(prefix);
    const PartRunner::Rows of_end{.sequence = lower.get(), .tokens = first};
    ASSERT_TRUE(end.Run({0, kCut}, {&of_end, 1}).ok());
    const std::vector<float> stream(end.Stream().begin(), end.Stream().end());
    const KeysRange range{.layers = {0, kCut}, .first = 0, .positions = prefix};
    for (const KeysPart& part : end.Keys(*lower, range, 1000)) {
      cloud.Store(*upper, part.range, part.bytes);
    }
    const PartRunner::Rows of_cloud{.sequence = upper.get(), .stream = stream};
    ASSERT_TRUE(cloud.Run({kCut, kLayers}, {&of_cloud, 1}).ok());

    std::vector<float> logits;
    {
      PrefixCache prefixes(engine.kv());
      {
        KvSequence kept = engine.kv().NewSequence();
        ASSERT_TRUE(kept.Reserve(prefix).ok());
        cloud.CopyTo(*upper, prefix, kept);
        prefixes.Keep(kept, first, PrefixCache::Keeping::kAll);
      }
      Session session = Session::Create(engine, 60).value();
      EXPECT_EQ(session.TakeFrom(prefixes, first), prefix);
      ASSERT_TRUE(session.FeedPrompt(std::span(text).subspan(prefix)).ok());
      logits.assign(session.logits().begin(), session.logits().end());
      prefixes.GiveUp(prefixes.pages());
    }
    Session alone = Session::Create(engine, 60).value();
    ASSERT_TRUE(alone.FeedPrompt(text).ok());
    EXPECT_EQ(logits, std::vector<float>(alone.logits().begin(), alone.logits().end()));
    end.Close(std::move(lower));
    cloud.Close(std::move(upper));
  }
}

}  // namespace
}  // namespace troupe
