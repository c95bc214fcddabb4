// A live run and the replay of its own trace: the same hits, expert for expert.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>

#include "base/rng.h"
#include "base/sanitized.h"
#include "forge/synth.h"
#include "runtime/session.h"
#include "runtime/trace_recorder.h"
#include "sim/replay/replay.h"
#include "sim/replay/trace_passes.h"
#include "testing/temp_folder.h"
#include "testing/test_seed.h"

namespace troupe {
namespace {

constexpr std::size_t kReplayTokens = 120;

std::vector<std::string> Policies() {
  return kSanitized ? std::vector<std::string>{"lru", "echo"} : EvictionPolicyNames();
}

std::vector<const char*> Families() {
  if (kSanitized) return {"tiny-qwen2moe"};
  return {"tiny-qwen2moe", "tiny-olmoe", "tiny-deepseek2"};
}

struct LiveRun {
  CacheStats cache;
  std::uint64_t loads = 0;
  std::uint64_t substituted = 0, dropped = 0;
  RecordedCache recorded;
};

class ReplayExactness : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    const ModelShape* shape = FindShape(GetParam());
    ASSERT_NE(shape, nullptr);
    SynthOptions options;
    options.layout.mix.type = TensorType::kQ4_0;
    ASSERT_TRUE(Synthesize(*shape, options, model()).ok());
    Rng rng(TestSeed());
    // Some tokens often, as in a text.
    for (std::size_t i = 0; i < kReplayTokens; ++i) {
      tokens_.push_back(static_cast<std::int32_t>(rng.Below(rng.Below(2) == 0 ? 9 : 200)));
    }
    const auto engine = Engine::Open(model(), {.threads = 1}).value();
    all_ = engine->plan().needs.AllExperts();
    top_k_ = engine->config().moe.routing.top_k;
  }

  std::string model() const { return folder_.PathOf("m.gguf"); }
  std::string trace() const { return folder_.PathOf("t.trace"); }

  // Two sequences, each a prompt and tokens one by one.
  static void Feed(Engine& engine, const std::vector<std::int32_t>& tokens) {
    Session session = Session::Create(engine).value();
    constexpr std::size_t kPrompt = 24;
    for (std::size_t begin = 0; begin < kReplayTokens; begin += kReplayTokens / 2) {
      session.Truncate(0);
      const auto sequence = std::span(tokens).subspan(begin, kReplayTokens / 2);
      ASSERT_TRUE(session.FeedPrompt(sequence.first(kPrompt)).ok());
      for (std::size_t i = kPrompt; i < sequence.size(); ++i) {
        ASSERT_TRUE(session.Feed(sequence.subspan(i, 1)).ok());
      }
    }
  }

  // The same without prompts, some tokens at a time, as of as many that answer at once.
  static void FeedInBatches(Engine& engine, const std::vector<std::int32_t>& tokens,
                            std::size_t batch) {
    Session session = Session::Create(engine).value();
    for (std::size_t at = 0; at < kReplayTokens; at += batch) {
      if (at % (kReplayTokens / 2) == 0) session.Truncate(0);
      ASSERT_TRUE(session.Feed(std::span(tokens).subspan(at, batch)).ok());
    }
  }

  // Up to six sequences that join and leave, their prompts in pieces beside the decodes of others.
  static void FeedTogether(Engine& engine, const std::vector<std::int32_t>& tokens, Rng rng) {
    std::vector<std::optional<Session>> sessions(engine.plan().memory.sequences);
    for (std::size_t at = 0; at < kReplayTokens;) {
      std::vector<SequenceRows> rows;
      std::size_t left = std::min<std::size_t>(engine.plan().memory.chunk, kReplayTokens - at);
      for (std::optional<Session>& session : sessions) {
        if (!session && rng.Below(2) == 0) session.emplace(Session::Create(engine).value());
        if (session && rng.Below(12) == 0) session.reset();
        if (!session || left == 0 || rng.Below(4) == 0) continue;
        const std::size_t decoded = session->tokens().size();
        const bool prompt = decoded == 0 || (decoded < 5 && rng.Below(2) == 0);
        const std::size_t count = prompt ? 1 + rng.Below(left) : 1;
        rows.push_back({.sequence = &*session,
                        .tokens = std::span(tokens).subspan(at, count),
                        .phase = prompt ? Phase::kPrompt : Phase::kDecode});
        at += count;
        left -= count;
      }
      if (rows.empty()) continue;
      ASSERT_TRUE(engine.Run(rows).ok());
    }
  }

  LiveRun RunLive(const EngineOptions& options, std::size_t batch = 0) {
    const auto engine = Engine::Open(model(), options).value();
    auto recorder = TraceRecorder::Begin(*engine, trace(), TraceScores::kAll, "test").value();
    if (options.sequences > 1) {
      FeedTogether(*engine, tokens_, Rng(TestSeed()));
    } else if (batch == 0) {
      Feed(*engine, tokens_);
    } else {
      FeedInBatches(*engine, tokens_, batch);
    }
    EXPECT_TRUE(recorder->Finish().ok());
    EXPECT_EQ(recorder->tokens(), kReplayTokens);
    const OffloadReport report = *engine->offload_report();
    return {.cache = report.cache,
            .loads = report.loads.loads,
            .substituted = engine->expert_usage().substituted,
            .dropped = engine->expert_usage().dropped,
            .recorded = TraceReader::Open(trace()).value().header().cache.value()};
  }

  ReplayResult RunReplay(const ReplaySpec& spec, const ReplayOptions& options = {}) {
    TraceReader reader = TraceReader::Open(trace()).value();
    ThreadPool pool(1);
    return Replay(reader, {spec}, options, pool).value().front().result;
  }

  static void ExpectTheSameAnswers(const ReplayResult& replay, const LiveRun& live) {
    EXPECT_EQ(replay.cache.hits, live.cache.hits);
    EXPECT_EQ(replay.cache.misses, live.cache.misses);
    EXPECT_EQ(replay.loads, live.loads);
    EXPECT_EQ(replay.substitution.counts.substituted, live.substituted);
    EXPECT_EQ(replay.substitution.counts.dropped, live.dropped);
    EXPECT_GT(live.substituted + live.dropped, 0u);
  }

  // Groups of each pass of the trace, as the replay has them.
  std::vector<std::vector<RowGroupFacts>> Groups() {
    TraceReader reader = TraceReader::Open(trace()).value();
    TracePasses passes(reader, 0);
    std::vector<std::vector<RowGroupFacts>> groups;
    for (ReplayPass pass; passes.Next(pass).value();) groups.push_back(pass.facts.groups);
    return groups;
  }

  static ReplaySpec SpecOf(const RecordedCache& cache) {
    return {.policy = cache.policy,
            .predictor = cache.predictor,
            .slots = cache.slots,
            .per_layer = cache.per_layer,
            .spare = cache.spare,
            .shallow = cache.shallow};
  }

  EngineOptions Options(const std::string& policy, CacheSharing sharing, std::uint32_t slots) {
    EngineOptions options;
    options.threads = 1;
    options.chunk = 2;
    options.offload.slots = slots;
    options.offload.policy = policy;
    options.offload.sharing = sharing;
    options.offload.predictor = "none";  // what is read ahead depends on time
    options.trace = TraceScores::kAll;
    return options;
  }

  TempFolder folder_;
  std::vector<std::int32_t> tokens_;
  std::uint32_t all_ = 0, top_k_ = 0;
};

INSTANTIATE_TEST_SUITE_P(Families, ReplayExactness, testing::ValuesIn(Families()),
                         [](const auto& test) {
                           std::string name = test.param;
                           std::ranges::replace(name, '-', '_');
                           return name;
                         });

TEST_P(ReplayExactness, HitsAndMissesOfALiveRunAreThoseOfTheReplayOfItsTrace) {
  for (const std::string& policy : Policies()) {
    for (const CacheSharing sharing : {CacheSharing::kPerLayer, CacheSharing::kGlobal}) {
      for (const std::uint32_t slots : {all_ - 1, all_ / 2}) {
        for (const std::uint32_t shallow : {0u, 1u}) {
          if (shallow > 0 && sharing == CacheSharing::kGlobal)
            continue;  // it has no layers' shares
          EngineOptions options = Options(policy, sharing, slots);
          options.offload.shallow_layers = shallow;
          const LiveRun live = RunLive(options);
          const ReplayResult replay = RunReplay(SpecOf(live.recorded));
          SCOPED_TRACE(fmt::format("{}, {} of {} slots, per layer {}, shallow {}", policy, slots,
                                   all_, sharing == CacheSharing::kPerLayer, shallow));
          EXPECT_EQ(replay.cache.hits, live.cache.hits);
          EXPECT_EQ(replay.cache.misses, live.cache.misses);
          EXPECT_EQ(replay.cache.evictions, live.cache.evictions);
          EXPECT_EQ(replay.loads, live.loads);
          EXPECT_GT(live.cache.misses, 0u);
          EXPECT_GT(live.cache.hits, 0u);
          EXPECT_EQ(replay.decode.tokens, kReplayTokens - 48);
        }
      }
    }
  }
}

// Where a layer asks for more than the cache holds: as a prompt does.
TEST_P(ReplayExactness, TheSameHoldsInACrowdedCacheWhicheverLoadEndsFirst) {
  for (const std::string& policy : Policies()) {
    for (const CacheSharing sharing : {CacheSharing::kPerLayer, CacheSharing::kGlobal}) {
      for (const std::uint32_t slots : {all_ / 2, all_ / 4, 2u}) {
        EngineOptions options = Options(policy, sharing, slots);
        options.chunk = 24;
        options.offload.reader.kind = slots == 2 ? ReaderKind::kThreads : ReaderKind::kAuto;
        const LiveRun live = RunLive(options);
        const ReplayResult replay = RunReplay(SpecOf(live.recorded));
        SCOPED_TRACE(fmt::format("{}, {} of {} slots", policy, slots, all_));
        EXPECT_TRUE(slots == all_ / 2 || replay.crowded > 0);
        EXPECT_EQ(replay.cache.hits, live.cache.hits);
        EXPECT_EQ(replay.cache.misses, live.cache.misses);
        EXPECT_EQ(replay.cache.evictions, live.cache.evictions);
      }
    }
  }
}

TEST_P(ReplayExactness, TheSameHoldsForSequencesThatSharePassesJoinAndLeave) {
  for (const std::string& policy : Policies()) {
    for (const CacheSharing sharing : {CacheSharing::kPerLayer, CacheSharing::kGlobal}) {
      for (const std::uint32_t slots : {3 * all_ / 4, all_ / 4}) {
        for (const std::uint32_t sequences : {2u, 6u}) {
          EngineOptions options = Options(policy, sharing, slots);
          options.sequences = sequences;
          options.chunk = 9;
          const LiveRun live = RunLive(options);
          const ReplayResult replay = RunReplay(SpecOf(live.recorded));
          SCOPED_TRACE(fmt::format("{}, {} of {} slots, {} sequences, per layer {}", policy, slots,
                                   all_, sequences, sharing == CacheSharing::kPerLayer));
          EXPECT_EQ(replay.cache.hits, live.cache.hits);
          EXPECT_EQ(replay.cache.misses, live.cache.misses);
          EXPECT_EQ(replay.cache.evictions, live.cache.evictions);
          EXPECT_EQ(replay.loads, live.loads);
          EXPECT_TRUE(slots == all_ / 4 || live.cache.hits > 0);
          EXPECT_GT(live.cache.evictions, 0u);
        }
      }
    }
  }
}

// What a model chooses after an answer that is not exact is in its trace: the router's choices, and
// the same chain answers the same of them.
TEST_P(ReplayExactness, SubstitutionAnswersInAReplayWhatItAnsweredInTheRunItself) {
  std::vector<std::string> chains = {"drop:most-share=0.3", "drop:rho=1+top:keep=1"};
  // Where the router chooses by groups, nothing else may name experts.
  if (std::string_view(GetParam()) != "tiny-deepseek2") {
    for (const char* chain :
         {"smoe:alpha=0.5", "best-live:rho=1", "random:rho=2", "smoe:alpha=0.2+top:keep=1"}) {
      chains.push_back(chain);
    }
  }
  for (const std::string& chain : chains) {
    for (const char* policy : {"lru", "echo", "score"}) {
      EngineOptions options = Options(policy, CacheSharing::kPerLayer, all_ / 2);
      options.offload.lossiness = Chain{chain};
      const LiveRun live = RunLive(options);
      ReplaySpec spec = SpecOf(live.recorded);
      spec.substitution = chain;
      const ReplayResult replay = RunReplay(spec);
      SCOPED_TRACE(fmt::format("{}, {}", chain, policy));
      ExpectTheSameAnswers(replay, live);
    }
  }
}

TEST_P(ReplayExactness, ABatchOfThreeIsAnsweredInAReplayAsInTheRunItself) {
  std::vector<std::string> chains = {"drop:rho=1"};
  if (std::string_view(GetParam()) != "tiny-deepseek2") chains.emplace_back("smoe:alpha=0.5");
  for (const std::string& chain : chains) {
    EngineOptions options = Options("echo", CacheSharing::kPerLayer, all_ / 2);
    options.chunk = 3;
    options.offload.lossiness = Chain{chain};
    options.offload.substitution_tokens = 3;
    const LiveRun live = RunLive(options, 3);
    ReplaySpec spec = SpecOf(live.recorded);
    spec.substitution = chain;
    const ReplayResult replay = RunReplay(spec, {.group = 3, .substitution_tokens = 3});
    SCOPED_TRACE(chain);
    ExpectTheSameAnswers(replay, live);
  }
}

// However its last chunk is cut.
TEST_P(ReplayExactness, APromptIsExactInAReplayAsInTheRunItself) {
  EngineOptions options = Options("lru", CacheSharing::kPerLayer, all_ / 2);
  options.offload.lossiness = Chain{"drop"};
  options.chunk = 4;
  const auto engine = Engine::Open(model(), options).value();
  {
    auto recorder = TraceRecorder::Begin(*engine, trace(), TraceScores::kAll, "").value();
    Session session = Session::Create(*engine).value();
    for (const std::size_t prompt : {std::size_t{9}, std::size_t{1}}) {
      session.Truncate(0);
      ASSERT_TRUE(session.FeedPrompt(std::span(tokens_).first(prompt)).ok());
      for (std::size_t i = prompt; i < prompt + 3; ++i) {
        ASSERT_TRUE(session.Feed(std::span(tokens_).subspan(i, 1)).ok());
      }
    }
    // Without a prompt, as a text is scored.
    session.Truncate(0);
    ASSERT_TRUE(session.Feed(std::span(tokens_).first(1)).ok());
    ASSERT_TRUE(recorder->Finish().ok());
  }
  const ExpertUsage live = engine->expert_usage();
  ReplaySpec spec = SpecOf(TraceReader::Open(trace()).value().header().cache.value());
  spec.substitution = "drop";
  const ReplayResult replay = RunReplay(spec);
  EXPECT_EQ(replay.substitution.counts.dropped, live.dropped);
  EXPECT_EQ(replay.substitution.counts.tokens, 7 * replay.layers.size());
  EXPECT_EQ(replay.cache.hits, live.hits);
  EXPECT_GT(live.dropped, 0u);
}

TEST_P(ReplayExactness, RecordingChangesNoLogit) {
  const auto last_logits = [&](bool recorded) {
    const auto engine = Engine::Open(model(), Options("lru", CacheSharing::kPerLayer, all_ / 2));
    std::unique_ptr<TraceRecorder> recorder;
    if (recorded) {
      recorder = TraceRecorder::Begin(**engine, trace(), TraceScores::kAll, "").value();
    }
    Session session = Session::Create(**engine).value();
    EXPECT_TRUE(session.FeedPrompt(tokens_).ok());
    return std::vector<float>(session.logits().begin(), session.logits().end());
  };
  EXPECT_EQ(last_logits(true), last_logits(false));
  // Scores are there for all, and those of the chosen are the same numbers.
  TraceReader reader = TraceReader::Open(trace()).value();
  const TraceHeader& header = reader.header();
  const TraceBlock block = reader.Next().value().value();
  for (std::size_t l = 0; l < header.moe_layers.size(); ++l) {
    for (std::uint32_t t = 0; t < block.tokens; ++t) {
      for (std::uint32_t k = 0; k < header.top_k; ++k) {
        ASSERT_EQ(block.Scores(header, l, t)[k],
                  block.AllScores(header, l, t)[block.Ids(header, l, t)[k]]);
      }
    }
  }
}

TEST_P(ReplayExactness, APassOfSeveralSequencesIsOnePassInTheReplay) {
  EngineOptions options = Options("lru", CacheSharing::kPerLayer, all_ / 2);
  options.sequences = 3;
  options.chunk = 6;
  const auto engine = Engine::Open(model(), options).value();
  auto recorder = TraceRecorder::Begin(*engine, trace(), TraceScores::kAll, "").value();
  std::optional<Session> first = Session::Create(*engine).value();
  std::optional<Session> second = Session::Create(*engine).value();
  const auto tokens = std::span(tokens_);
  const auto run = [&](std::initializer_list<SequenceRows> rows) {
    ASSERT_TRUE(engine->Run({rows.begin(), rows.size()}).ok());
  };
  run({{.sequence = &*second, .tokens = tokens.first(4), .phase = Phase::kPrompt},
       {.sequence = &*first, .tokens = tokens.first(2), .phase = Phase::kPrompt}});
  first.reset();
  Session third = Session::Create(*engine).value();
  run({{.sequence = &*second, .tokens = tokens.first(1)},
       {.sequence = &third, .tokens = tokens.first(3), .phase = Phase::kPrompt}});
  run({{.sequence = &third, .tokens = tokens.first(1)}});
  ASSERT_TRUE(recorder->Finish().ok());
  const auto group = [](SequenceId sequence, Phase phase, std::uint32_t at, std::uint32_t rows) {
    return RowGroupFacts{.sequence = sequence, .phase = phase, .position = at, .rows = rows};
  };
  using testing::ElementsAre;
  EXPECT_THAT(
      Groups(),
      ElementsAre(ElementsAre(group(1, Phase::kPrompt, 0, 4), group(0, Phase::kPrompt, 0, 2)),
                  ElementsAre(group(1, Phase::kDecode, 4, 1), group(0, Phase::kPrompt, 0, 3)),
                  ElementsAre(group(0, Phase::kDecode, 3, 1))));
}

TEST_P(ReplayExactness, ATraceKeepsSequencesPassesAndPhases) {
  RunLive(Options("lru", CacheSharing::kPerLayer, all_ / 2));
  // A run that takes long writes what it has before its end.
  TraceReader reader = TraceReader::Open(trace()).value();
  std::vector<TraceSegment> segments;
  while (const auto block = reader.Next().value()) {
    EXPECT_EQ(block->domains, std::vector<std::string>{"test"});
    segments.insert(segments.end(), block->segments.begin(), block->segments.end());
  }
  ASSERT_EQ(segments.size(), 2u * (12 + 36));
  EXPECT_EQ(
      segments[11],
      (TraceSegment{.sequence = 0, .position = 22, .tokens = 2, .phase = TracePhase::kPrefill}));
  EXPECT_EQ(
      segments[12],
      (TraceSegment{.sequence = 0, .position = 24, .tokens = 1, .phase = TracePhase::kDecode}));
  EXPECT_EQ(segments[48].sequence, 1u);
  EXPECT_EQ(segments[48].position, 0u);
}

}  // namespace
}  // namespace troupe
