#include "runtime/engine_runner.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <optional>

#include "testing/failing_reader.h"

namespace troupe {
namespace {

constexpr const char* kRunnerModel = TROUPE_SOURCE_DIR "/models/tiny-qwen2moe-q8_0.gguf";

std::optional<std::size_t> reads_left;      // before every read fails; absent: none does
std::atomic<bool>* set_by_reads = nullptr;  // by the next one; null: nothing is

bool ReadFails() {
  if (set_by_reads != nullptr) *set_by_reads = true;
  if (!reads_left) return false;
  if (*reads_left == 0) return true;
  --*reads_left;
  return false;
}

class EngineRunnerTest : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    EngineOptions options{.threads = 2, .context = 96};
    options.sequences = 4;  // two of them for those that are compared with
    options.offload.slots = 40;
    options.offload.predictor = "none";
    options.offload.wrap_reader = [](std::unique_ptr<AsyncReader> reader) {
      return std::make_unique<FailingReader>(std::move(reader), ReadFails, "broken");
    };
    engine_ = Engine::Open(kRunnerModel, options).value().release();
  }
  static void TearDownTestSuite() { delete engine_; }

  static std::vector<float> Copy(std::span<const float> logits) {
    return {logits.begin(), logits.end()};
  }
  // The logits after a text that has the engine to itself.
  static std::vector<float> Alone(const std::vector<TokenId>& tokens) {
    Session session = Session::Create(*engine_).value();
    EXPECT_TRUE(session.FeedPrompt(tokens).ok());
    return Copy(session.logits());
  }
  // Of a prompt that no other begins with.
  static SequenceId Reserve(EngineRunner& runner, std::size_t tokens = 20) {
    const std::vector<TokenId> prompt = {99};
    const auto reserved = runner.Reserve({prompt, tokens, false});
    EXPECT_TRUE(reserved.has_value());
    return reserved->id;
  }
  static PassRows Prompt(SequenceId sequence, std::span<const TokenId> tokens) {
    return {.sequence = sequence,
            .request = 100 + sequence,
            .tokens = tokens,
            .phase = Phase::kPrompt,
            .wants_logits = true};
  }

  // Some layers have been computed, and then an expert cannot be read.
  static void FailInTheMiddle(EngineRunner& runner, std::span<const PassRows> rows) {
    const std::uint64_t uses = engine_->transformer().expert_uses();
    reads_left = 100;
    const Status failed = runner.Run(rows);
    reads_left.reset();
    EXPECT_EQ(failed.code(), Code::kUnavailable);
    EXPECT_GT(engine_->transformer().expert_uses(), uses);
  }

  static Engine* engine_;
  const std::vector<TokenId> first_ = {11, 12, 13, 14};
  const std::vector<TokenId> second_ = {21, 22, 23};
};
Engine* EngineRunnerTest::engine_ = nullptr;

TEST_F(EngineRunnerTest, SequencesThatSharePassesGetTheLogitsTheyGetAlone) {
  EngineRunner runner(*engine_);
  const SequenceId a = Reserve(runner), b = Reserve(runner);
  ASSERT_TRUE(
      runner.Run(std::vector{Prompt(a, std::span(first_).first(2)), Prompt(b, second_)}).ok());
  EXPECT_EQ(Copy(runner.Logits(b)), Alone(second_));
  const std::vector<TokenId> next = {24};
  ASSERT_TRUE(runner
                  .Run(std::vector{PassRows{.sequence = b, .tokens = next, .wants_logits = true},
                                   Prompt(a, std::span(first_).last(2))})
                  .ok());
  EXPECT_EQ(Copy(runner.Logits(a)), Alone(first_));
  EXPECT_EQ(Copy(runner.Logits(b)), Alone({21, 22, 23, 24}));
}

TEST_F(EngineRunnerTest, AFailedPassLeavesEverySequenceAsItWas) {
  EngineRunner runner(*engine_);
  const SequenceId a = Reserve(runner), b = Reserve(runner);
  const std::vector<float> first_alone = Alone(first_), second_alone = Alone(second_);
  FailInTheMiddle(runner, std::vector{Prompt(a, first_), Prompt(b, second_)});
  ASSERT_TRUE(runner.Run(std::vector{Prompt(a, first_), Prompt(b, second_)}).ok());
  EXPECT_EQ(Copy(runner.Logits(a)), first_alone);
  EXPECT_EQ(Copy(runner.Logits(b)), second_alone);
}

TEST_F(EngineRunnerTest, APassThatNobodyWantsAnyMoreEndsAndLeavesEverySequenceAsItWas) {
  EngineRunner runner(*engine_);
  const SequenceId a = Reserve(runner), b = Reserve(runner);
  const std::vector<float> first_alone = Alone(first_), second_alone = Alone(second_);
  std::atomic<bool> unwanted = false;
  std::vector<PassRows> rows = {Prompt(a, first_), Prompt(b, second_)};
  for (PassRows& group : rows) group.unwanted = &unwanted;
  const std::uint64_t uses = engine_->transformer().expert_uses();
  set_by_reads = &unwanted;
  EXPECT_EQ(runner.Run(rows).code(), Code::kCancelled);
  set_by_reads = nullptr;
  const std::uint64_t layer = (first_.size() + second_.size()) * 4;  // experts a token
  EXPECT_LT(engine_->transformer().expert_uses(), uses + layer * engine_->config().layers);
  rows[0].unwanted = nullptr;  // whoever wants one group gets the pass
  ASSERT_TRUE(runner.Run(rows).ok());
  EXPECT_EQ(Copy(runner.Logits(a)), first_alone);
  EXPECT_EQ(Copy(runner.Logits(b)), second_alone);
}

TEST_F(EngineRunnerTest, ARequestPaysForItsFailedPassWhenItEndsAndNothingAfterwards) {
  EngineRunner runner(*engine_);
  const SequenceId a = Reserve(runner), b = Reserve(runner);
  const std::vector<PassRows> rows = {Prompt(a, first_), Prompt(b, second_)};
  engine_->SettleUsage();  // what other tests have spent
  const ExpertUsage before = engine_->expert_usage();
  FailInTheMiddle(runner, rows);
  const ExpertUsage failed = engine_->expert_usage().Since(before);
  ASSERT_GT(failed.reads, 0u);
  ExpertUsage sum;
  for (const PassRows& group : rows) sum += runner.EndRequest(group.request);
  EXPECT_EQ(sum.reads, failed.reads);
  EXPECT_EQ(sum.misses, failed.misses);
  EXPECT_NEAR(sum.stall_seconds, failed.stall_seconds, 2e-9);
  for (const PassRows& group : rows) EXPECT_EQ(runner.EndRequest(group.request).reads, 0u);
}

TEST_F(EngineRunnerTest, ShowsWhichExpertsAreInMemoryAndWhichWereUsed) {
  EngineRunner runner(*engine_);
  const SequenceId a = Reserve(runner);
  const ExpertMap before = runner.LookAtExperts();
  EXPECT_EQ(std::ranges::count(before.heat, 0.0f), 8 * 32);
  ASSERT_TRUE(runner.Run(std::vector{Prompt(a, first_)}).ok());
  runner.EndRequest(100 + a);
  const ExpertMap map = runner.LookAtExperts();
  EXPECT_EQ(map.layers, 8u);
  EXPECT_EQ(map.layer_numbers, (std::vector<std::uint32_t>{0, 1, 2, 3, 4, 5, 6, 7}));
  EXPECT_EQ(map.experts, 32u);
  ASSERT_EQ(map.places.size(), 8u * 32);
  EXPECT_EQ(std::ranges::count(map.places, ExpertPlace::kInMemory), 40) << "as there are slots";
  EXPECT_EQ(std::ranges::count(map.places, ExpertPlace::kLoading), 0);
  for (std::size_t layer = 0; layer < 8; ++layer) {
    const std::span<const float> heat(map.heat.data() + layer * 32, 32);
    float sum = 0;
    for (const float share : heat) sum += share;
    EXPECT_NEAR(sum, 4 * (1 - std::exp(-4 / RouteHeat::kMemory)), 1e-5) << "four experts a token";
  }
  // The first layer of the next pass finds what the map says, as nothing is evicted before it.
  const std::vector<LayerHits> hits = engine_->expert_usage().layers;
  const std::vector<TokenId> next = {24};
  ASSERT_TRUE(
      runner.Run(std::vector{PassRows{.sequence = a, .request = 100 + a, .tokens = next}}).ok());
  runner.EndRequest(100 + a);
  const ExpertMap after = runner.LookAtExperts();
  std::uint64_t asked = 0, found = 0;
  for (std::size_t expert = 0; expert < 32; ++expert) {
    if (after.heat[expert] < map.heat[expert] || after.heat[expert] == 0) continue;  // not chosen
    ++asked;
    found += map.places[expert] == ExpertPlace::kInMemory ? 1 : 0;
  }
  const LayerHits first = engine_->expert_usage().layers[0];
  EXPECT_EQ(asked, 4u);
  EXPECT_EQ(first.asks - hits[0].asks, asked);
  EXPECT_EQ(first.hits - hits[0].hits, found);
  runner.Release(a);
}

TEST_F(EngineRunnerTest, LeavesTheObserverOfOthersAlone) {
  RouteHeat others({.layers = 8, .experts = 32}, 4);
  engine_->transformer().set_route_observer(&others);
  {
    EngineRunner runner(*engine_);
    EXPECT_EQ(runner.LookAtExperts().heat.size(), 8u * 32);
  }
  EXPECT_EQ(engine_->transformer().route_observer(), &others);
  engine_->transformer().set_route_observer(nullptr);
  {
    EngineRunner runner(*engine_);
    runner.LookAtExperts();
    EXPECT_NE(engine_->transformer().route_observer(), nullptr);
  }
  EXPECT_EQ(engine_->transformer().route_observer(), nullptr);
}

TEST_F(EngineRunnerTest, GivesAsManySequencesAsWerePlannedAndGivesThemEmpty) {
  EngineRunner runner(*engine_);
  std::vector<SequenceId> taken;
  while (const auto reserved = runner.Reserve({first_, 96, false})) taken.push_back(reserved->id);
  ASSERT_EQ(taken.size(), engine_->plan().memory.sequences);
  ASSERT_TRUE(runner.Run(std::vector{Prompt(taken.front(), first_)}).ok());
  for (const SequenceId sequence : taken) runner.Release(sequence);
  const SequenceId again = Reserve(runner);
  ASSERT_TRUE(runner.Run(std::vector{Prompt(again, second_)}).ok());
  EXPECT_EQ(Copy(runner.Logits(again)), Alone(second_));
}

TEST_F(EngineRunnerTest, ASequenceBeginsWithWhatAnotherHasRead) {
  EngineRunner runner(*engine_);
  std::vector<TokenId> text;
  for (TokenId token = 0; token < 40; ++token) text.push_back(300 + token);
  const SequenceId first = runner.Reserve({text, 60, false})->id;
  ASSERT_TRUE(runner.Run(std::vector{Prompt(first, text)}).ok());
  const std::vector<float> alone = Copy(runner.Logits(first));
  runner.Release(first);

  const auto second = runner.Reserve({text, 60, true});  // the engine is exact in any case
  EXPECT_EQ(second->cached, 39u);
  ASSERT_TRUE(runner.Run(std::vector{Prompt(second->id, std::span(text).subspan(39))}).ok());
  EXPECT_EQ(Copy(runner.Logits(second->id)), alone);

  std::vector<TokenId> other(text.begin(), text.begin() + 25);
  other.insert(other.end(), {1, 2, 3});
  const auto third = runner.Reserve({other, 60, false});
  EXPECT_EQ(third->cached, 25u);
  ASSERT_TRUE(runner.Run(std::vector{Prompt(third->id, std::span(other).subspan(25))}).ok());
  EXPECT_EQ(Copy(runner.Logits(third->id)), Alone(other));
  EXPECT_EQ(runner.prefix_cache().kept, 96u);  // the page of the first; the others have theirs
  EXPECT_EQ(runner.prefix_cache().idle, 96u);
  EXPECT_EQ(runner.prefix_cache().free, 96u);  // of four
  runner.Release(second->id);
  runner.Release(third->id);
}

TEST_F(EngineRunnerTest, KeptPrefixesMakeRoomForSequencesThatNeedIt) {
  EngineRunner runner(*engine_);
  for (TokenId token = 0; token < 6; ++token) {  // more than there are pages
    const std::vector<TokenId> text(30, 400 + token);
    const auto sequence = runner.Reserve({text, 60, false});
    ASSERT_TRUE(sequence.has_value());
    EXPECT_EQ(sequence->cached, 0u);
    ASSERT_TRUE(runner.Run(std::vector{Prompt(sequence->id, text)}).ok());
    runner.Release(sequence->id);
  }
  EXPECT_EQ(runner.prefix_cache(),
            (PrefixCacheState{
                .kept = 4 * 96, .idle = 4 * 96, .page = 96, .most = 4 * 96, .given_up = 2 * 96}));
  EXPECT_EQ(runner.Reserve({std::vector<TokenId>(30, 405), 60, false})->cached, 29u);
}

TEST_F(EngineRunnerTest, KeepsWhatOthersHaveReadPageByPageAsFarAsThereIsRoom) {
  const auto engine =
      Engine::Open(kRunnerModel, {.threads = 1, .context = 1024, .sequences = 1}).value();
  const std::size_t page = engine->kv().page_positions();
  ASSERT_EQ(engine->kv().pages(), 4u);
  EngineRunner runner(*engine);
  const std::vector<TokenId> text(3 * page + 16, 7);
  std::vector<std::pair<std::size_t, std::size_t>> filled;
  const auto keep = [&](std::size_t most) {
    return runner.KeepPrefix(text, "salt", most, [&](KvSequence& sequence, std::size_t length) {
      filled.emplace_back(sequence.length(), length);
      sequence.Advance(length - sequence.length());
    });
  };
  EXPECT_EQ(keep(1), page) << "a page at least";
  EXPECT_EQ(keep(2 * page + 1), 3 * page);
  {
    KvSequence held = engine->kv().NewSequence();
    ASSERT_TRUE(held.Reserve(page).ok());
    EXPECT_EQ(keep(page), 3 * page) << "no room for more";
  }
  EXPECT_EQ(keep(page), text.size());
  EXPECT_EQ(filled, (std::vector<std::pair<std::size_t, std::size_t>>{
                        {0, page}, {page, 3 * page}, {3 * page, text.size()}}));
  const std::vector<TokenId> prompt(text.size() + 1, 7);
  const auto reserved = runner.Reserve({prompt, prompt.size(), false});
  EXPECT_EQ(runner.TakeCached(reserved->id, prompt), 0u) << "others know nothing of it";
}

TEST_F(EngineRunnerTest, WithoutAPrefixCacheNothingIsKept) {
  EngineRunner runner(*engine_, /*keeps_prefixes=*/false);
  for (int i = 0; i < 2; ++i) {
    const auto sequence = runner.Reserve({first_, 20, false});
    EXPECT_EQ(sequence->cached, 0u);
    ASSERT_TRUE(runner.Run(std::vector{Prompt(sequence->id, first_)}).ok());
    runner.Release(sequence->id);
  }
  EXPECT_EQ(runner.prefix_cache().kept, 0u);
}

TEST_F(EngineRunnerTest, HitsAndAsksOfLayersAddUpToThoseOfRequests) {
  EngineRunner runner(*engine_);
  const SequenceId a = Reserve(runner);
  const auto sum = [&] {
    LayerHits all;
    for (const LayerHits& layer : runner.layer_hits()) {
      all.hits += layer.hits;
      all.asks += layer.asks;
    }
    return all;
  };
  const LayerHits before = sum();
  ASSERT_TRUE(runner.Run(std::vector{Prompt(a, first_)}).ok());
  const ExpertUsage& cost = runner.costs()[0].experts;
  const LayerHits after = sum();
  EXPECT_EQ(runner.layer_hits().size(), 8u);
  EXPECT_GT(cost.misses, 0u);
  EXPECT_EQ(after.hits - before.hits, cost.hits);
  EXPECT_EQ(after.asks - before.asks, cost.hits + cost.misses);
  runner.Release(a);
}

TEST_F(EngineRunnerTest, WhatRequestsCostAddsUpToTheWhole) {
  EngineRunner runner(*engine_);
  const SequenceId a = Reserve(runner), b = Reserve(runner);
  const ExpertUsage before = engine_->expert_usage();
  ExpertUsage sum;
  FailInTheMiddle(runner, std::vector{Prompt(a, first_), Prompt(b, second_)});
  for (const auto& [first, second] : {std::pair(a, b), std::pair(b, a)}) {
    ASSERT_TRUE(runner.Run(std::vector{Prompt(first, first_), Prompt(second, second_)}).ok());
    for (const RowsCost& cost : runner.costs()) sum += cost.experts;
  }
  const ExpertUsage whole = engine_->expert_usage().Since(before);
  EXPECT_EQ(sum.hits, whole.hits);
  EXPECT_EQ(sum.use_hits, whole.use_hits);
  EXPECT_EQ(sum.misses, whole.misses);
  EXPECT_EQ(sum.use_misses, whole.use_misses);
  EXPECT_EQ(sum.reads, whole.reads);
  EXPECT_EQ(sum.bytes_read, whole.bytes_read);
  EXPECT_GT(whole.use_hits, whole.hits);
  EXPECT_GT(whole.misses, 0u);
}

TEST_F(EngineRunnerTest, CountsWhatEachGroupCost) {
  EngineRunner runner(*engine_);
  const SequenceId a = Reserve(runner), b = Reserve(runner);
  ASSERT_TRUE(runner.Run(std::vector{Prompt(a, first_), Prompt(b, second_)}).ok());
  ASSERT_EQ(runner.costs().size(), 2u);
  EXPECT_EQ(runner.costs()[0].expert_uses, 4u * 8 * 4);  // tokens, layers, experts
  EXPECT_EQ(runner.costs()[1].expert_uses, 3u * 8 * 4);
}

TEST_F(EngineRunnerTest, ARunnerWithoutACacheHasNothingToSave) {
  EngineRunner runner(*engine_, /*keeps_prefixes=*/false);
  EXPECT_EQ(runner.SavePrefixes("/none").code(), Code::kFailedPrecondition);
  EXPECT_EQ(runner.LoadPrefixes("/none").status().code(), Code::kFailedPrecondition);
}

}  // namespace
}  // namespace troupe
