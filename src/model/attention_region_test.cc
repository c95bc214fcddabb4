#include "model/attention_region.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "base/rng.h"
#include "model/kv_pool.h"
#include "testing/test_seed.h"

namespace troupe {
namespace {

constexpr std::uint32_t kContext = 1024;

ModelConfig OneLayer() {
  ModelConfig config;
  config.layers = 1;
  config.width = 64;
  config.attention = {.heads = 4, .kv_heads = 2, .key_dim = 32, .value_dim = 32, .scale = 0.2f};
  config.rope.dims = 32;
  config.dense_ff = 32;
  return config;
}

// Sequences of given lengths, each with some queries at its end.
class Calls {
 public:
  struct Sequence {
    std::size_t length, queries;
  };

  Calls(Rng& rng, const std::vector<Sequence>& sequences)
      : pool_(KvPool::Create(
                  config_, {0, 1},
                  {.context = kContext, .sequences = static_cast<std::uint32_t>(sequences.size())})
                  .value()) {
    const KvLayout& kv = pool_->LayoutOf(0);
    for (const auto& [length, queries] : sequences) {
      KvSequence& sequence = sequences_.emplace_back(pool_->NewSequence());
      EXPECT_TRUE(sequence.Reserve(length).ok());
      for (std::size_t p = 0; p < length; ++p) {
        for (std::size_t head = 0; head < kv.kv_heads; ++head) {
          const std::size_t at = p % kv.capacity;
          StoreKeys(kv, sequence.PageOf(0, p), head, at, 1, Normal(rng, kv.k_dim).data(), 0);
          StoreValues(kv, sequence.PageOf(0, p), head, at, 1, Normal(rng, kv.v_dim).data(), 0);
        }
      }
      queries_.push_back(Normal(rng, queries * Row()));
      starts_.push_back(length - queries);
    }
  }

  // All calls in one region, or each in one of its own.
  std::vector<std::vector<float>> Run(std::size_t threads, bool together) const {
    ThreadPool pool(threads);
    const Workspace workspace = Workspace::Create(config_,
                                                  {.chunk = 32,
                                                   .threads = threads,
                                                   .kv = pool_->layouts(),
                                                   .context = kContext,
                                                   .layers = {0, 1}},
                                                  config_.rope)
                                    .value();
    AttentionRegion region;
    std::vector<std::vector<float>> out;
    for (const std::vector<float>& q : queries_) out.emplace_back(q.size());
    for (std::size_t i = 0; i < queries_.size(); ++i) {
      region.Add({.layout = pool_->LayoutOf(0),
                  .kv = sequences_[i].Layer(0),
                  .heads = config_.attention.heads,
                  .scale = config_.attention.scale,
                  .start = starts_[i],
                  .tokens = queries_[i].size() / Row(),
                  .q = queries_[i].data(),
                  .q_stride = Row(),
                  .out = out[i].data(),
                  .out_stride = Row()});
      if (!together) region.Run(pool, workspace);
    }
    if (together) region.Run(pool, workspace);
    return out;
  }

 private:
  std::size_t Row() const { return config_.attention.heads * config_.attention.key_dim; }
  static std::vector<float> Normal(Rng& rng, std::size_t count) {
    std::vector<float> values(count);
    for (float& value : values) value = static_cast<float>(rng.Normal());
    return values;
  }

  const ModelConfig config_ = OneLayer();
  std::unique_ptr<KvPool> pool_;
  std::vector<KvSequence> sequences_;
  std::vector<std::vector<float>> queries_;
  std::vector<std::size_t> starts_;
};

TEST(AttentionRegion, GroupsTogetherGetTheBytesThatEachGetsAlone) {
  Rng rng(TestSeed());
  // One long sequence, whose keys are split, beside short ones and a prompt.
  const Calls calls(rng, {{3, 1}, {1000, 1}, {40, 25}, {300, 1}, {1, 1}});
  const auto alone = calls.Run(1, false);
  for (const std::size_t threads : {1, 2, 3, 8}) {
    EXPECT_EQ(calls.Run(threads, true), alone) << threads << " threads";
    EXPECT_EQ(calls.Run(threads, false), alone) << threads << " threads";
  }
}

TEST(AttentionRegion, MoreSplitCallsThanPartialsHaveRoomForGetTheSameBytes) {
  Rng rng(TestSeed());
  const Calls calls(rng, {{1000, 1}, {999, 1}, {998, 1}, {1001, 1}, {700, 2}, {1002, 1}});
  EXPECT_EQ(calls.Run(4, true), calls.Run(1, false));
}

}  // namespace
}  // namespace troupe
