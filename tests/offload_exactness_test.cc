// Quality `exact` with experts on a slow tier: the same bytes as with all of them in memory,
// whatever the cache's size, its policy, the reader, the container and the cut of the prompt.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "base/rng.h"
#include "expert/cache/belady.h"
#include "expert/cache/lru.h"
#include "expert/forecast/gate_guesses.h"
#include "expert/forecast/predictor.h"
#include "forge/pack_model.h"
#include "forge/synth.h"
#include "gguf/reader.h"
#include "runtime/container_path.h"
#include "runtime/session.h"
#include "testing/temp_folder.h"
#include "testing/test_seed.h"

namespace troupe {
namespace {

constexpr std::size_t kOffloadTokens = 48;

using OffloadLogits = std::vector<std::vector<float>>;

testing::AssertionResult SameBytes(const OffloadLogits& a, const OffloadLogits& b) {
  if (a.size() != b.size()) {
    return testing::AssertionFailure() << a.size() << " rows against " << b.size();
  }
  for (std::size_t row = 0; row < a.size(); ++row) {
    if (std::memcmp(a[row].data(), b[row].data(), a[row].size() * sizeof(float)) != 0) {
      return testing::AssertionFailure() << "row " << row << " differs";
    }
  }
  return testing::AssertionSuccess();
}

// Remembers what was asked for, so that the optimum can be told on the next run.
class Recording final : public EvictionPolicy {
 public:
  Recording(ExpertGrid grid, std::vector<ExpertId>& asks) : lru_(grid), asks_(asks) {}
  std::string_view name() const override { return "recording"; }
  void OnAsked(ExpertId id, std::span<const Asker> askers) override {
    asks_.push_back(id);
    lru_.OnAsked(id, askers);
  }
  std::size_t Choose(std::span<const ExpertId> candidates) override {
    return lru_.Choose(candidates);
  }

 private:
  Lru lru_;
  std::vector<ExpertId>& asks_;
};

struct Answer {
  OffloadLogits logits;
  ExpertUsage usage;
  CacheStats cache;
  std::string reader = {};
};

class OffloadExactness : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    const ModelShape* shape = FindShape(GetParam());
    ASSERT_NE(shape, nullptr);
    SynthOptions options;
    options.layout.mix.type = TensorType::kQ4_0;
    ASSERT_TRUE(Synthesize(*shape, options, path()).ok());
    Rng rng(9);
    for (std::size_t i = 0; i < kOffloadTokens; ++i) {
      tokens_.push_back(static_cast<std::int32_t>(rng.Below(shape->vocabulary)));
    }
    const auto engine = Engine::Open(path(), {.threads = 1}).value();
    all_ = engine->plan().needs.AllExperts();
    resident_ = Feed(*engine, 16).logits;
  }

  std::string path() const { return folder_.PathOf("m.gguf"); }
  void Pack() {
    const GgufModel model = GgufModel::Open(path()).value();
    ASSERT_TRUE(PackModel(model, {}, ContainerPathFor(path())).ok());
  }

  // A prompt of `prompt` tokens at once, the rest one by one.
  // `between` is called before each pass.
  Answer Feed(Engine& engine, std::size_t prompt, const std::function<void()>& between = {}) {
    Session session = Session::Create(engine).value();
    Answer answer;
    for (std::size_t at = 0; at < kOffloadTokens;) {
      const std::size_t count = at == 0 ? prompt : 1;
      if (between) between();
      const Status status = session.FeedForLogits(
          std::span(tokens_).subspan(at, count), 0, at == 0 ? Phase::kPrompt : Phase::kDecode,
          [&](std::size_t, std::span<const float> row) {
            answer.logits.emplace_back(row.begin(), row.end());
          });
      EXPECT_TRUE(status.ok()) << status.ToString();
      at += count;
    }
    answer.usage = engine.expert_usage();
    if (const std::optional<OffloadReport> offload = engine.offload_report()) {
      answer.cache = offload->cache;
      answer.reader = offload->reader;
    }
    return answer;
  }

  Answer Run(std::uint32_t slots, OffloadOptions offload = {}, std::size_t prompt = 16,
             std::uint32_t threads = 2, std::uint32_t chunk = 512) {
    offload.slots = slots;
    EngineOptions options;
    options.threads = threads;
    options.chunk = chunk;
    options.offload = std::move(offload);
    const auto engine = Engine::Open(path(), options).value();
    EXPECT_EQ(engine->plan().memory.all_resident, slots >= all_);
    return Feed(*engine, prompt);
  }

  // Feeds one token after the other, leaving out those that fail, until `count` were taken;
  // the logits of those.
  OffloadLogits FeedWhatSucceeds(Session& session, std::size_t count) {
    OffloadLogits logits;
    for (std::int32_t token = 0; token < 200 && logits.size() < count; ++token) {
      if (!session.Feed({&token, 1}).ok()) continue;
      logits.emplace_back(session.logits().begin(), session.logits().end());
    }
    return logits;
  }

  TempFolder folder_;
  std::vector<std::int32_t> tokens_;
  OffloadLogits resident_;
  std::uint32_t all_ = 0;
};

INSTANTIATE_TEST_SUITE_P(Families, OffloadExactness,
                         testing::Values("tiny-qwen2moe", "tiny-olmoe", "tiny-deepseek2",
                                         "tiny-qwen35moe", "tiny-gpt-oss", "tiny-lfm2moe",
                                         "tiny-granitehybrid", "tiny-nemotron_h_moe",
                                         "tiny-qwen3moe-factors", "tiny-gemma4"),
                         [](const auto& test) {
                           std::string name = test.param;
                           std::ranges::replace(name, '-', '_');
                           return name;
                         });

TEST_P(OffloadExactness, TheSameBytesAtEveryCacheSize) {
  for (const std::uint32_t slots : {all_, all_ - 1, 3 * all_ / 4, all_ / 2, all_ / 4, 2u}) {
    const Answer answer = Run(slots);
    EXPECT_TRUE(SameBytes(answer.logits, resident_)) << slots << " slots of " << all_;
    if (slots >= all_) continue;
    EXPECT_GT(answer.usage.misses, 0u) << slots;
    EXPECT_GT(answer.usage.bytes_read, 0u) << slots;
  }
}

TEST_P(OffloadExactness, CountsEachLayersHitsApart) {
  const ExpertUsage usage = Run(all_ / 2).usage;
  LayerHits sum;
  std::size_t with_experts = 0;
  for (const LayerHits& layer : usage.layers) {
    sum.hits += layer.hits;
    sum.asks += layer.asks;
    with_experts += layer.asks > 0 ? 1 : 0;
  }
  EXPECT_EQ(sum, (LayerHits{.hits = usage.hits, .asks = usage.hits + usage.misses}));
  const std::uint32_t experts = FindShape(GetParam())->experts->count;
  EXPECT_EQ(with_experts, all_ / experts);
  const ExpertUsage nothing = usage.Since(usage);
  EXPECT_EQ(nothing.layers, std::vector<LayerHits>(usage.layers.size()));
}

TEST_P(OffloadExactness, ALargerCacheMissesNoMoreUnderLru) {
  std::uint64_t before = ~std::uint64_t{0};
  OffloadOptions offload;
  offload.policy = "lru";
  offload.sharing = CacheSharing::kGlobal;  // one stack, of which more slots keep more
  offload.predictor = "none";               // what is read ahead depends on time
  for (const std::uint32_t slots : {2u, all_ / 4, all_ / 2, all_ - 1}) {
    const std::uint64_t misses = Run(slots, offload).usage.misses;
    EXPECT_LE(misses, before) << slots;
    before = misses;
  }
}

TEST_P(OffloadExactness, TheSameBytesForEveryPolicyShareReaderAndContainer) {
  std::set<std::string> readers;
  for (const bool packed : {false, true}) {
    if (packed) Pack();
    for (const std::string& policy : EvictionPolicyNames()) {
      for (const CacheSharing sharing : {CacheSharing::kPerLayer, CacheSharing::kGlobal}) {
        for (const ReaderKind reader : {ReaderKind::kAuto, ReaderKind::kThreads}) {
          OffloadOptions offload;
          offload.policy = policy;
          offload.sharing = sharing;
          offload.reader.kind = reader;
          const Answer answer = Run(all_ / 3, offload);
          EXPECT_TRUE(SameBytes(answer.logits, resident_)) << policy << ", packed " << packed;
          EXPECT_GT(answer.cache.evictions, 0u);
          readers.insert(answer.reader);
        }
      }
    }
  }
  EXPECT_TRUE(readers.contains("threads"));
  if (readers.size() < 2) GTEST_SKIP() << "io_uring is refused here: read with threads alone";
}

TEST_P(OffloadExactness, TheSameBytesWhileTheCacheGrowsAndShrinks) {
  Rng rng(TestSeed());
  Pack();
  for (const ReaderKind reader : {ReaderKind::kAuto, ReaderKind::kThreads}) {
    EngineOptions options{.threads = 2};
    options.offload.slots = 3 * all_ / 4;
    options.offload.reader.kind = reader;
    const auto engine = Engine::Open(path(), options).value();
    const std::uint32_t most = engine->plan().memory.slots;
    SlotUse use;
    const Answer answer = Feed(*engine, 16, [&] {
      const auto slots = static_cast<std::uint32_t>(2 + rng.Below(most - 1));
      for (int step = 0; step < 3; ++step) use = engine->UseExpertSlots(slots);
      EXPECT_EQ(use.slots, slots);
    });
    EXPECT_TRUE(SameBytes(answer.logits, resident_));
    EXPECT_GT(use.given_back, most);
    EXPECT_GT(use.taken_again, most);
    EXPECT_GT(use.moved, 0u);
    EXPECT_GT(use.returned, 0_B);
    EXPECT_FALSE(use.refused);
  }
}

TEST_P(OffloadExactness, TheSameBytesForAnyThreadsAndAnyCutOfThePrompt) {
  for (const std::uint32_t threads : {1u, 3u}) {
    for (const std::size_t prompt : {std::size_t{1}, std::size_t{7}, kOffloadTokens}) {
      EXPECT_TRUE(SameBytes(Run(all_ / 3, {}, prompt, threads, 11).logits, resident_))
          << threads << " threads, prompt of " << prompt;
    }
  }
}

TEST_P(OffloadExactness, TheOptimumOverARecordedRunGivesTheSameBytesAndMissesNoMore) {
  std::vector<ExpertId> asks;
  OffloadOptions recording;
  recording.sharing = CacheSharing::kGlobal;
  recording.predictor = "none";
  recording.make_policy = [&](ExpertGrid grid) { return std::make_unique<Recording>(grid, asks); };
  const std::uint32_t slots = all_ / 2;
  const Answer lru = Run(slots, recording);

  OffloadOptions best;
  best.sharing = CacheSharing::kGlobal;
  best.predictor = "none";
  best.make_policy = [&](ExpertGrid grid) { return std::make_unique<Optimum>(grid, asks); };
  const Answer optimum = Run(slots, best);
  EXPECT_TRUE(SameBytes(lru.logits, resident_));
  EXPECT_TRUE(SameBytes(optimum.logits, resident_));
  EXPECT_LE(optimum.usage.misses, lru.usage.misses);
}

// Guesses what is never chosen next: experts in the reverse order of what was.
class AlwaysWrong final : public Predictor {
 public:
  explicit AlwaysWrong(ExpertGrid grid) : grid_(grid) {}
  std::string_view name() const override { return "wrong"; }
  std::uint32_t forecast_layers() const override { return 2; }
  void OnChosen(const LayerChoices&) override {}
  std::vector<Guess> Predict(std::uint32_t, std::uint32_t, const GateScores& forecast) override {
    constexpr std::uint32_t kLikely = 4;
    const std::vector<Guess> right = GuessesFrom(forecast, kLikely);
    std::vector<Guess> guesses;
    for (std::uint32_t e = 0; e < grid_.experts; ++e) {
      if (std::ranges::find(right, e, &Guess::expert) != right.end()) continue;
      guesses.push_back({.expert = e, .weight = 1, .expected = true});
    }
    return guesses;
  }

 private:
  ExpertGrid grid_;
};

// Remembers whose gates it was told of, and what for.
class Listening final : public Predictor {
 public:
  Listening(std::set<std::uint32_t>& told, std::set<std::uint32_t>& asked)
      : told_(told), asked_(asked) {}
  std::string_view name() const override { return "listening"; }
  std::uint32_t forecast_layers() const override { return 2; }
  void OnChosen(const LayerChoices&) override {}
  void OnGateScores(std::uint32_t layer, const GateScores&) override { told_.insert(layer); }
  std::vector<Guess> Predict(std::uint32_t layer, std::uint32_t, const GateScores&) override {
    asked_.insert(layer);
    return {};
  }

 private:
  std::set<std::uint32_t>& told_;
  std::set<std::uint32_t>& asked_;
};

void ExpectPrefetchesAddUp(const ExpertUsage& usage, std::uint64_t slots) {
  ASSERT_GE(usage.prefetch_waiting, 0);
  const auto waiting = static_cast<std::uint64_t>(usage.prefetch_waiting);
  EXPECT_LE(waiting, slots);  // each lies in one
  EXPECT_EQ(usage.prefetches, usage.prefetch_useful + usage.prefetch_late +
                                  usage.prefetch_cancelled + usage.prefetch_wasted + waiting);
}

TEST_P(OffloadExactness, ReadingAheadChangesNoByteAndEveryLoadIsAccountedFor) {
  for (const char* predictor : {"lookahead", "scores", "smoe", "gate", "eap", "previous"}) {
    for (const bool governed : {true, false}) {
      OffloadOptions offload;
      offload.predictor = predictor;
      offload.prefetch.governed = governed;
      offload.policy = "arc";
      const Answer answer = Run(all_ / 2, offload);
      EXPECT_TRUE(SameBytes(answer.logits, resident_)) << predictor;
      ExpectPrefetchesAddUp(answer.usage, all_ / 2);
      // Paths and the token before mostly lead to experts that are there already, and what scores
      // predict has to be learned first.
      if (governed || std::ranges::count(std::array{"eap", "previous", "scores"},
                                         std::string_view(predictor)) > 0) {
        continue;
      }
      EXPECT_GT(answer.usage.prefetches, 0u);
      EXPECT_GT(answer.usage.prefetch_useful + answer.usage.prefetch_late, 0u);
    }
  }
}

TEST_P(OffloadExactness, EveryLayerThatIsPredictedTellsWhatItsGateSaid) {
  std::set<std::uint32_t> told, asked;
  OffloadOptions offload;
  offload.make_predictor = [&](ExpertGrid) { return std::make_unique<Listening>(told, asked); };
  Run(all_ / 2, offload);
  EXPECT_FALSE(asked.empty());
  EXPECT_TRUE(std::ranges::includes(told, asked));
  EXPECT_EQ(*told.rbegin(), *asked.rbegin());  // the last layer, too
}

// As for a trace: what was read ahead and comes before its turn must not keep the only slots.
TEST_P(OffloadExactness, AFewSlotsInOrderWithReadingAheadChangeNoByte) {
  for (const std::uint32_t slots : {2u, 3u, 4u}) {
    for (const char* predictor : {"gate", "lookahead", "scores"}) {
      EngineOptions options;
      options.threads = 1;
      options.offload.slots = slots;
      options.offload.predictor = predictor;
      options.offload.prefetch.governed = false;
      options.offload.link.bytes_per_second = 50e6;  // so that many are on their way when asked for
      options.offload.in_order = true;
      const auto engine = Engine::Open(path(), options).value();
      EXPECT_TRUE(SameBytes(Feed(*engine, 16).logits, resident_)) << predictor << ", " << slots;
    }
  }
}

// How much the governor saves depends on time, and is for tests with a clock of their own to say;
// that it saves, does not.
TEST_P(OffloadExactness, AMissStormChangesNoByteAndTheGovernorHasLessOfIt) {
  for (const std::uint32_t slots : {2u, all_ / 4, all_ / 2}) {
    std::uint64_t in_vain_ungoverned = 0;
    for (const bool governed : {false, true}) {
      OffloadOptions offload;
      offload.make_predictor = [](ExpertGrid grid) { return std::make_unique<AlwaysWrong>(grid); };
      offload.prefetch.governed = governed;
      const Answer answer = Run(slots, offload);
      EXPECT_TRUE(SameBytes(answer.logits, resident_)) << slots;
      ExpectPrefetchesAddUp(answer.usage, slots);
      if (slots == 2) continue;
      const std::uint64_t in_vain = answer.usage.prefetch_wasted + answer.usage.prefetch_cancelled;
      if (governed) {
        EXPECT_LT(in_vain, in_vain_ungoverned) << slots;
        continue;
      }
      in_vain_ungoverned = in_vain;
      EXPECT_GT(in_vain, answer.usage.prefetch_useful) << slots;
    }
  }
}

TEST_P(OffloadExactness, TheNextGatesGuessBetterThanChance) {
  for (const char* predictor : {"gate", "lookahead"}) {
    EngineOptions options;
    options.offload.predictor = predictor;
    options.offload.prefetch.governed = false;
    options.offload.slots = all_ / 2;
    const auto engine = Engine::Open(path(), options).value();
    Feed(*engine, 1);
    const PrefetchStats stats = engine->offload_report()->prefetch->stats;
    const MoeConfig& moe = engine->config().moe;
    const double chance = static_cast<double>(moe.routing.top_k) / moe.routing.experts;
    // Each layer asks for as many, and of the first nothing is guessed.
    const std::uint32_t layers = engine->config().layers - moe.leading_dense;
    const std::uint64_t later_asks = stats.asked - stats.asked / layers;
    EXPECT_GT(later_asks, 0u);
    EXPECT_GT(static_cast<double>(stats.expected) / static_cast<double>(later_asks), 1.5 * chance)
        << predictor;
    EXPECT_GE(stats.guessed, stats.expected);
  }
}

TEST_P(OffloadExactness, EachExpertIsReadAtMostOnceALayerAndChunk) {
  Pack();
  OffloadOptions offload;
  offload.predictor = "none";
  const Answer answer = Run(2, offload, kOffloadTokens);
  const std::uint64_t experts = std::filesystem::file_size(ContainerPathFor(path()));
  EXPECT_LE(answer.usage.bytes_read, experts);
  EXPECT_GT(answer.usage.bytes_read, experts / 2);
  const Answer chunked = Run(2, offload, kOffloadTokens, 1, kOffloadTokens / 2);
  EXPECT_LE(chunked.usage.bytes_read, 2 * experts);
}

TEST_P(OffloadExactness, AContainerOfAnotherModelIsRefused) {
  Pack();
  SynthOptions other;
  other.layout.mix.type = TensorType::kQ4_0;
  other.seed = 77;
  ASSERT_TRUE(Synthesize(*FindShape(GetParam()), other, path()).ok());
  EngineOptions options;
  options.offload.slots = 2;
  const auto engine = Engine::Open(path(), options);
  ASSERT_FALSE(engine.ok());
  EXPECT_THAT(engine.status().message(), testing::HasSubstr("m.experts"));
  EXPECT_THAT(engine.status().message(), testing::HasSubstr("troupe pack"));
  options.offload.container = "none";
  EXPECT_TRUE(Engine::Open(path(), options).ok());
}

TEST_P(OffloadExactness, ADamagedExpertFailsTheRequestAndTheEngineGoesOn) {
  Pack();
  {
    // The file's last expert in use: its bytes end before the padding of at most a page.
    std::fstream file(ContainerPathFor(path()), std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(-5000, std::ios::end);
    const char flipped = static_cast<char>(file.peek() ^ 1);
    file.seekp(-5000, std::ios::end);
    file.put(flipped);
  }
  EngineOptions options;
  options.sequences = 2;
  options.offload.slots = all_ / 2;
  const auto engine = Engine::Open(path(), options).value();
  Session session = Session::Create(*engine).value();
  Status status;
  for (std::size_t i = 0; i < kOffloadTokens && status.ok(); ++i) {
    status = session.Feed(std::span(tokens_).subspan(i, 1));
  }
  ASSERT_FALSE(status.ok()) << "the damaged expert was never asked for";
  EXPECT_EQ(status.code(), Code::kDataLoss);
  EXPECT_THAT(status.message(), testing::HasSubstr("m.experts"));
  EXPECT_THAT(status.message(), testing::HasSubstr("expert"));
  // The session stands where it stood; asking again fails again, and nothing hangs.
  const std::size_t length = session.tokens().size();
  EXPECT_FALSE(session.Feed(std::span(tokens_).subspan(length, 1)).ok());
  EXPECT_EQ(session.tokens().size(), length);

  // Tokens that do not need the damaged expert are answered right, in this session and in another.
  Session another = Session::Create(*engine).value();
  for (Session* going_on : {&session, &another}) {
    const OffloadLogits found = FeedWhatSucceeds(*going_on, 8);
    ASSERT_EQ(found.size(), 8u) << "every token asks for the damaged expert";
    const auto sound = Engine::Open(path(), {.threads = 1}).value();
    Session undamaged = Session::Create(*sound).value();
    const std::span<const std::int32_t> all = going_on->tokens();
    OffloadLogits expected;
    for (const std::int32_t token : all) {
      ASSERT_TRUE(undamaged.Feed({&token, 1}).ok());
      expected.emplace_back(undamaged.logits().begin(), undamaged.logits().end());
    }
    expected.erase(expected.begin(), expected.end() - 8);
    EXPECT_TRUE(SameBytes(found, expected));
  }
}

}  // namespace
}  // namespace troupe
