#include "troupe/bench_batch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace troupe {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::Gt;
using ::testing::SizeIs;

const std::string kModel = TROUPE_SOURCE_DIR "/models/tiny-qwen2moe-q8_0.gguf";

std::unique_ptr<Engine> Open(std::uint32_t sequences, std::optional<std::uint32_t> slots = {}) {
  EngineOptions options{.threads = 1, .context = 64, .sequences = sequences};
  options.offload = {.slots = slots, .container = "none", .predictor = "none", .profile = "none"};
  return Engine::Open(kModel, options).value();
}

std::uint32_t ExpertsOfAToken(const Engine& engine) {
  const ModelConfig& config = engine.config();
  return (config.layers - config.moe.leading_dense) * config.moe.routing.top_k;
}

const std::vector<TokenId> kText = {5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16};

TEST(TextWindow, BeginsAnewAfterTheEnd) {
  EXPECT_THAT(TextWindow(std::vector<TokenId>{1, 2, 3}, 2, 5), ElementsAre(3, 1, 2, 3, 1));
}

TEST(TimeBatch, ASequenceAloneUsesTheExpertsOfOneToken) {
  const auto engine = Open(1);
  int ticks = 0;
  const BatchSpeed speed =
      TimeBatch(*engine, kText, {.prompt = 4, .decode = 5, .reps = 3}, [&] { ++ticks; }).value();
  EXPECT_EQ(ticks, 3);
  EXPECT_EQ(speed.experts_a_pass, ExpertsOfAToken(*engine));
  EXPECT_EQ(speed.prompt_experts_a_pass, ExpertsOfAToken(*engine));
  EXPECT_NEAR(speed.weight_bytes, static_cast<double>(engine->bytes_touched_per_token().count()),
              1);
  EXPECT_THAT(speed.tokens_per_s, SizeIs(3));
  EXPECT_THAT(speed.tokens_per_s, Each(Gt(0)));
  EXPECT_THAT(speed.prompt_tokens_per_s, SizeIs(3));
  EXPECT_EQ(speed.read_bytes, 0);
  EXPECT_EQ(speed.disk_bytes_per_s, 0);
}

TEST(TimeBatch, AnExpertThatSeveralSequencesUseCountsOnce) {
  const auto engine = Open(4);
  const BatchSpeed speed =
      TimeBatch(*engine, kText, {.sequences = 4, .prompt = 4, .decode = 5}, [] {}).value();
  EXPECT_GT(speed.experts_a_pass, ExpertsOfAToken(*engine));
  EXPECT_LT(speed.experts_a_pass, 4 * ExpertsOfAToken(*engine));
  const auto all = static_cast<double>(engine->plan().memory.dense.count() +
                                       engine->plan().memory.experts.count());
  EXPECT_LE(speed.weight_bytes, all);
}

TEST(TimeBatch, CountsWhatAPassReadsFromTheDisk) {
  const auto resident = Open(2), offloaded = Open(2, 4);
  const BatchWork work{.sequences = 2, .prompt = 4, .decode = 6};
  const BatchSpeed speed = TimeBatch(*offloaded, kText, work, [] {}).value();
  const BatchSpeed in_memory = TimeBatch(*resident, kText, work, [] {}).value();
  EXPECT_GT(speed.read_bytes, 0);
  EXPECT_GT(speed.disk_bytes_per_s, 0);
  EXPECT_EQ(speed.experts_a_pass, in_memory.experts_a_pass);
  EXPECT_EQ(speed.weight_bytes, in_memory.weight_bytes);
}

TEST(TimeBatch, ReadsAPromptInChunksLongerThanTheDecode) {
  const auto engine = Open(8);
  const BatchWork work{.sequences = 8, .prompt = 4, .decode = 3};
  EXPECT_THAT(TimeBatch(*engine, kText, work, [] {}).value().prompt_tokens_per_s, Each(Gt(0)));
}

TEST(TimeBatch, LeavesNoSequenceAndNoObserverBehind) {
  const auto engine = Open(2);
  for (int i = 0; i < 2; ++i) {
    ASSERT_TRUE(TimeBatch(*engine, kText, {.sequences = 2, .decode = 2}, [] {}).ok());
  }
  EXPECT_EQ(engine->transformer().route_observer(), nullptr);
}

TEST(TimeBatch, RefusesMoreSequencesThanTheEngineHolds) {
  const auto engine = Open(2);
  EXPECT_EQ(TimeBatch(*engine, kText, {.sequences = 3}, [] {}).status().code(),
            Code::kResourceExhausted);
}

TEST(LimitTokensPerSecond, IsSetByTheSlowerOfMemoryAndDisk) {
  const BatchSpeed speed{
      .sequences = 4, .weight_bytes = 1000, .attended_bytes = 3000, .read_bytes = 100};
  EXPECT_DOUBLE_EQ(LimitTokensPerSecond(speed, 1000, 200, false), 4);  // a second a pass
  EXPECT_DOUBLE_EQ(LimitTokensPerSecond(speed, 1000, 50, false), 2);   // two
  EXPECT_DOUBLE_EQ(LimitTokensPerSecond(speed, 1000, 0, false), 4);    // nothing was read
  EXPECT_DOUBLE_EQ(LimitTokensPerSecond(speed, 1000, 50, true), 1);    // four
  EXPECT_DOUBLE_EQ(LimitTokensPerSecond(speed, 1000, 10, true), 0.4);  // ten
}

TEST(TimeBatch, CountsWhatAttentionReads) {
  const auto engine = Open(2);
  const KvPool& pool = engine->kv();
  const double position =
      static_cast<double>(pool.page_bytes()) / static_cast<double>(pool.page_positions());
  const BatchWork work{.sequences = 2, .prompt = 4, .decode = 5};  // 5 to 9 positions
  EXPECT_DOUBLE_EQ(TimeBatch(*engine, kText, work, [] {}).value().attended_bytes, 2 * 7 * position);
}

}  // namespace
}  // namespace troupe
