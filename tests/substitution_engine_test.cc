// Substitution in the engine: off or closed, it changes no byte; on, the answers are those that the
// chain's rule implies, they are counted, and they save reads.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/rng.h"
#include "forge/pack_pair.h"
#include "forge/requantize.h"
#include "forge/synth.h"
#include "gguf/reader.h"
#include "lab/buddy_recorder.h"
#include "runtime/session.h"
#include "store/model_fingerprint.h"
#include "testing/temp_folder.h"

namespace troupe {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::HasSubstr;
using LossyLogits = std::vector<std::vector<float>>;

constexpr std::size_t kLossyPrompt = 16, kLossyTokens = 48;

// Every expert of a layer becomes a copy of its first: whoever answers says the same.
void MakeExpertsAlike(const std::string& path) {
  const GgufModel model = GgufModel::Open(path).value();
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  for (const TensorInfo& tensor : model.tensors()) {
    if (tensor.name.find("_exps.") == std::string::npos) continue;
    const std::uint64_t experts = tensor.dims[2];
    std::vector<char> first(tensor.bytes.count() / experts);
    file.seekg(static_cast<std::streamoff>(tensor.offset));
    file.read(first.data(), static_cast<std::streamsize>(first.size()));
    file.seekp(static_cast<std::streamoff>(tensor.offset));
    for (std::uint64_t e = 0; e < experts; ++e) {
      file.write(first.data(), static_cast<std::streamsize>(first.size()));
    }
  }
  ASSERT_TRUE(file.good());
}

class SubstitutionEngine : public testing::Test {
 protected:
  void SetUp() override { UseShape(*FindShape("tiny-olmoe")); }

  void UseShape(const ModelShape& shape) {
    ASSERT_TRUE(Synthesize(shape, {.layout = {.mix = {.type = TensorType::kQ4_0}}}, path()).ok());
    Rng rng(5);
    tokens_.clear();
    for (std::size_t i = 0; i < kLossyTokens; ++i) {
      tokens_.push_back(static_cast<std::int32_t>(rng.Below(shape.vocabulary)));
    }
    const auto engine = Engine::Open(path(), {.threads = 2}).value();
    all_ = engine->plan().needs.AllExperts();
    layers_ = engine->config().layers;
    exact_ = Feed(*engine);
  }

  std::string path() const { return folder_.PathOf("m.gguf"); }

  std::unique_ptr<Engine> Open(const std::string& chain, std::uint32_t slots,
                               OffloadOptions offload = {.predictor = "none"}) {
    offload.slots = slots;
    offload.lossiness = Chain{chain};
    return Engine::Open(path(), {.threads = 2, .offload = std::move(offload)}).value();
  }

  // A prompt at once, or fewer tokens as that many sequences would decode; then token by token.
  LossyLogits Feed(Engine& engine, std::size_t prompt = kLossyPrompt) {
    Session session = Session::Create(engine).value();
    const Phase first = prompt == kLossyPrompt ? Phase::kPrompt : Phase::kDecode;
    LossyLogits logits;
    for (std::size_t at = 0; at < kLossyTokens;) {
      const std::size_t count = at == 0 ? prompt : 1;
      const Status status = session.FeedForLogits(std::span(tokens_).subspan(at, count), 0,
                                                  at == 0 ? first : Phase::kDecode,
                                                  [&](std::size_t, std::span<const float> row) {
                                                    logits.emplace_back(row.begin(), row.end());
                                                  });
      EXPECT_TRUE(status.ok()) << status.ToString();
      at += count;
    }
    return logits;
  }

  // Batches of three, as of three that answer at once.
  LossyLogits FeedInThrees(Engine& engine) {
    Session session = Session::Create(engine).value();
    LossyLogits logits;
    for (std::size_t at = 0; at < kLossyTokens; at += 3) {
      EXPECT_TRUE(session
                      .FeedForLogits(std::span(tokens_).subspan(at, 3), 0, Phase::kDecode,
                                     [&](std::size_t, std::span<const float> row) {
                                       logits.emplace_back(row.begin(), row.end());
                                     })
                      .ok());
    }
    return logits;
  }

  static double Distance(const LossyLogits& a, const LossyLogits& b) {
    double sum = 0, size = 0;
    for (std::size_t i = 0; i < a.size(); ++i) {
      for (std::size_t j = 0; j < a[i].size(); ++j) {
        const double difference = a[i][j] - b[i][j];
        sum += difference * difference;
        size += double{a[i][j]} * a[i][j];
      }
    }
    return std::sqrt(sum / size);
  }

  static LossyLogits First(const LossyLogits& all, std::size_t count) {
    return {all.begin(), all.begin() + static_cast<std::ptrdiff_t>(count)};
  }

  TempFolder folder_;
  std::vector<std::int32_t> tokens_;
  LossyLogits exact_;
  std::uint32_t all_ = 0, layers_ = 0;
};

TEST_F(SubstitutionEngine, ChangesNoByteWhileItsGatesAreClosed) {
  for (const char* chain : {"exact", "smoe:alpha=0", "drop:most-share=0", "drop:rho=0",
                            "random:rho=0", "best-live:rho=0", "bias:bonus=0", "top:keep=1024"}) {
    for (const std::uint32_t slots : {3u, all_ / 2}) {
      const auto engine = Open(chain, slots);
      EXPECT_TRUE(Feed(*engine) == exact_) << chain << " with " << slots << " slots";
      EXPECT_EQ(engine->expert_usage().NotExact(), 0u) << chain;
      EXPECT_GT(engine->expert_usage().deciding_seconds, 0) << chain;
      EXPECT_GT(engine->expert_usage().misses, 0u) << chain;
    }
  }
}

TEST_F(SubstitutionEngine, LeavesPromptsExact) {
  const auto engine = Open("drop", all_ / 2);
  const LossyLogits found = Feed(*engine);
  EXPECT_TRUE(First(found, kLossyPrompt) == First(exact_, kLossyPrompt));
  EXPECT_FALSE(found == exact_);
}

// However short it is, and however its last chunk is cut.
TEST_F(SubstitutionEngine, APromptOfOneTokenIsAPrompt) {
  for (const std::size_t length : {std::size_t{1}, kLossyPrompt + 1}) {
    OffloadOptions offload{.predictor = "none", .substitution_tokens = 3};
    offload.slots = all_ / 2;
    offload.lossiness = Chain{"drop"};
    const auto engine =
        Engine::Open(path(), {.threads = 2, .chunk = kLossyPrompt, .offload = offload}).value();
    Session session = Session::Create(*engine).value();
    ASSERT_TRUE(session.FeedPrompt(std::span(tokens_).first(length)).ok());
    EXPECT_EQ(LossyLogits({{session.logits().begin(), session.logits().end()}}),
              LossyLogits({exact_[length - 1]}));
    EXPECT_EQ(engine->expert_usage().NotExact(), 0u);
    // What follows is an answer.
    ASSERT_TRUE(session.Feed(std::span(tokens_).subspan(length, 1)).ok());
    EXPECT_GT(engine->expert_usage().NotExact(), 0u);
  }
}

TEST_F(SubstitutionEngine, PromptsAreReadAheadInFull) {
  OffloadOptions offload{.predictor = "top-score"};
  offload.prefetch.governed = false;
  OffloadOptions plain = offload;
  plain.predictor = "lookahead";
  // With all that scores less than twice the boundary's replaced there is little of top score.
  const auto some = Open("smoe:alpha=1", all_ / 2, offload);
  const auto all = Open("smoe:alpha=1", all_ / 2, plain);
  for (const auto* engine : {&some, &all}) {
    Session session = Session::Create(**engine).value();
    ASSERT_TRUE(session.FeedPrompt(std::span(tokens_).first(4)).ok());
  }
  const auto guessed = [](const auto& engine) {
    return engine->offload_report()->prefetch->stats.guessed;
  };
  EXPECT_GT(guessed(all), 0u);
  EXPECT_EQ(guessed(some), guessed(all));
  EXPECT_EQ(some->expert_usage().left_out, 0u);
}

TEST_F(SubstitutionEngine, OfTokensOnlyWhatTheChainDoesNotReplaceIsReadAhead) {
  OffloadOptions offload{.predictor = "auto"};
  offload.prefetch.governed = false;
  const auto left_out = [&](const std::string& chain) {
    const auto engine = Open(chain, all_ / 2, offload);
    Feed(*engine);
    return engine->expert_usage().left_out;
  };
  // Alpha reaches the predictor: the wider the window, the less is of top score.
  const std::uint64_t narrow = left_out("smoe:alpha=0.05");
  EXPECT_GT(narrow, 0u);
  EXPECT_GT(left_out("smoe:alpha=1"), narrow);
  for (const char* chain : {"exact", "drop:most-share=0.1"})
    EXPECT_EQ(left_out(chain), 0u) << chain;
}

TEST_F(SubstitutionEngine, WhereAnyMissMayBeAnsweredTokensReadNothingAhead) {
  OffloadOptions offload{.predictor = "auto"};
  offload.prefetch.governed = false;
  for (const char* chain : {"drop:rho=1", "random:rho=1", "best-live:rho=1", "bias:bonus=0.05"}) {
    const auto engine = Open(chain, all_ / 2, offload);
    Feed(*engine, 1);
    EXPECT_GT(engine->expert_usage().left_out, 0u) << chain;
    EXPECT_EQ(engine->expert_usage().prefetches, 0u) << chain;
  }
}

TEST_F(SubstitutionEngine, ABatchAsLargeAsAllowedIsSubstitutedAndALargerOneIsNot) {
  OffloadOptions offload{.predictor = "none", .substitution_tokens = 3};
  const auto three = Open("drop", all_ / 2, offload);
  EXPECT_FALSE(First(Feed(*three, 3), 3) == First(exact_, 3));
  const auto four = Open("drop", all_ / 2, offload);
  EXPECT_TRUE(First(Feed(*four, 4), 4) == First(exact_, 4));
}

TEST_F(SubstitutionEngine, TokensOfABatchShareAndBorrowWhatTheOthersTopScoresBring) {
  // Its weights are divided by their sum: experts that are alike say the same at any of them.
  UseShape(*FindShape("tiny-qwen3moe"));
  OffloadOptions offload{.predictor = "none", .substitution_tokens = 3};
  const auto distance = [&] {
    const LossyLogits exact = FeedInThrees(*Engine::Open(path(), {.threads = 2}).value());
    const auto waiting = Open("exact", all_ / 2, offload);
    EXPECT_TRUE(FeedInThrees(*waiting) == exact);
    const auto engine = Open("smoe:alpha=0.3", all_ / 2, offload);
    const LossyLogits found = FeedInThrees(*engine);
    std::map<std::string_view, std::uint64_t> counts;
    const OffloadReport report = *engine->offload_report();
    for (const NamedCount& count : report.substitution.links[0].counts) {
      counts[count.name] = count.count;
    }
    EXPECT_GT(counts.at("shared"), 0u);
    EXPECT_GT(counts.at("borrowed"), 0u);
    EXPECT_GT(counts.at("substituted"), counts.at("borrowed"));
    EXPECT_EQ(engine->expert_usage().substituted, counts.at("substituted"));
    EXPECT_LT(engine->expert_usage().reads, waiting->expert_usage().reads);
    return Distance(exact, found);
  };
  const double unlike = distance();
  MakeExpertsAlike(path());
  EXPECT_LT(distance(), 0.01 * unlike);
}

TEST_F(SubstitutionEngine, DroppingAllButTheBestAnswersLikeAModelOfOneExpertAToken) {
  const auto engine = Open("top:keep=1", all_ / 2);
  const LossyLogits found = Feed(*engine, 1);
  ModelShape one = *FindShape("tiny-olmoe");
  const std::uint32_t top_k = one.experts->top_k;
  one.experts->top_k = 1;
  UseShape(one);
  EXPECT_TRUE(found == exact_);
  EXPECT_EQ(engine->expert_usage().dropped, kLossyTokens * layers_ * (top_k - 1));
}

TEST_F(SubstitutionEngine, WhereAllExpertsAreAlikeASubstituteSaysWhatTheChosenOneWould) {
  MakeExpertsAlike(path());
  exact_ = Feed(*Engine::Open(path(), {.threads = 2}).value());
  const auto engine = Open("random", all_ / 2);
  EXPECT_TRUE(Feed(*engine) == exact_);
  EXPECT_GT(engine->expert_usage().substituted, 0u);
  // Of another weight, the same experts say something else.
  const auto by_score = Open("best-live", all_ / 2);
  EXPECT_FALSE(Feed(*by_score) == exact_);
  EXPECT_GT(by_score->expert_usage().substituted, 0u);
}

TEST_F(SubstitutionEngine, WhatIsNotWaitedForIsNotRead) {
  const auto exact = Open("exact", all_ / 2);
  Feed(*exact);
  const std::uint64_t exact_reads = exact->expert_usage().reads;
  for (const char* chain : {"smoe:alpha=0.9", "random", "best-live", "drop", "bias:bonus=0.5",
                            "smoe:alpha=0.3+drop", "drop+reunite"}) {
    const auto engine = Open(chain, all_ / 2);
    EXPECT_FALSE(Feed(*engine) == exact_) << chain;
    const ExpertUsage usage = engine->expert_usage();
    const SubstitutionCounts counts = engine->offload_report()->substitution.counts;
    EXPECT_GT(usage.NotExact(), 0u) << chain;
    EXPECT_EQ(usage.substituted, counts.substituted) << chain;
    EXPECT_EQ(usage.dropped, counts.dropped) << chain;
    EXPECT_EQ(counts.tokens, (kLossyTokens - kLossyPrompt) * layers_) << chain;
    EXPECT_LT(usage.reads, exact_reads) << chain;
  }
}

TEST_F(SubstitutionEngine, WorksWithEveryPolicyPredictorAndShare) {
  for (const std::string& policy : EvictionPolicyNames()) {
    for (const char* predictor : {"none", "lookahead", "top-score", "smoe", "previous"}) {
      for (const CacheSharing sharing : {CacheSharing::kPerLayer, CacheSharing::kGlobal}) {
        OffloadOptions offload{.policy = policy, .sharing = sharing, .predictor = predictor};
        offload.prefetch.governed = false;
        const auto engine = Open("smoe:alpha=0.5+drop:most-share=0.2", all_ / 2, offload);
        Feed(*engine);
        EXPECT_GT(engine->expert_usage().NotExact(), 0u) << policy << ", " << predictor;
        // And leaves nothing behind that an exact request would notice.
        engine->AnswerBy(SubstitutionChain({}), {});
        EXPECT_TRUE(Feed(*engine) == exact_) << policy << ", " << predictor;
      }
    }
  }
}

TEST_F(SubstitutionEngine, LowCopiesAnswerLikeThoseOfTheLowCopyOption) {
  const ModelShape shape = *FindShape("tiny-olmoe");
  ASSERT_TRUE(
      Synthesize(shape, {.layout = {.mix = {.type = TensorType::kF16}}}, folder_.PathOf("o.gguf"))
          .ok());
  const GgufModel original = GgufModel::Open(folder_.PathOf("o.gguf")).value();
  ASSERT_TRUE(PackPair(original, TensorType::kQ8_0, {.low = TensorType::kQ4_0}, path(),
                       folder_.PathOf("m.experts"))
                  .ok());
  exact_ = Feed(*Engine::Open(path(), {.threads = 2}).value());
  // A prompt asks for more than the slots hold: which full copies stay must not depend on time.
  const auto by_option =
      Open("exact", 4, {.predictor = "none", .low_copies = {.decode = true}, .in_order = true});
  const auto by_chain = Open("low-bit", 4, {.predictor = "none", .in_order = true});
  const LossyLogits found = Feed(*by_chain);
  EXPECT_FALSE(found == exact_);
  EXPECT_TRUE(First(found, kLossyPrompt + 1) == First(Feed(*by_option), kLossyPrompt + 1));
  const ExpertUsage usage = by_chain->expert_usage();
  EXPECT_GT(usage.low_assignments, 0u);
  EXPECT_EQ(usage.substituted + usage.dropped, 0u);
  by_chain->AnswerBy(SubstitutionChain({}), {});
  EXPECT_TRUE(Feed(*by_chain) == exact_);
}

TEST_F(SubstitutionEngine, BuddiesAreThoseThatTokensWereSeenToChooseTogether) {
  BuddyProfile profile;
  {
    const auto engine = Engine::Open(path(), {.threads = 2}).value();
    BuddyRecorder recorder(engine->config());
    engine->transformer().set_route_observer(&recorder);
    Feed(*engine);
    profile = recorder.Profile({.coverage = 1, .most = 1024});
    profile.fingerprint = ToString(FingerprintModel(GgufModel::Open(path()).value()).value());
  }
  EXPECT_EQ(profile.tokens, kLossyTokens);
  ASSERT_TRUE(SaveBuddies(profile, BuddiesPathFor(path())).ok());

  const auto engine = Open("buddies:tau=-1:rho=all", all_ / 2);
  EXPECT_TRUE(First(Feed(*engine), kLossyPrompt) == First(exact_, kLossyPrompt));
  EXPECT_GT(engine->expert_usage().substituted, 0u);
  // Nobody's buddies: nobody answers for another.
  profile.buddies.lists.assign(profile.buddies.lists.size(), {});
  ASSERT_TRUE(SaveBuddies(profile, BuddiesPathFor(path())).ok());
  const auto alone = Open("buddies:tau=-1:rho=all", all_ / 2);
  EXPECT_TRUE(Feed(*alone) == exact_);
  EXPECT_EQ(alone->expert_usage().NotExact(), 0u);
}

TEST_F(SubstitutionEngine, SaysWhatCannotBe) {
  const auto error = [&](const std::string& chain) {
    return Engine::Open(path(), {.offload = {.slots = 4, .lossiness = Chain{chain}}})
        .status()
        .message();
  };
  EXPECT_THAT(error("magic"), HasSubstr("'magic' is no substitution policy, expected"));
  EXPECT_THAT(error("smoe:alpha=2"), HasSubstr("alpha"));
  EXPECT_THAT(error("smoe+buddies"),
              AllOf(HasSubstr("m.buddies.json"), HasSubstr("`troupe calibrate")));
  EXPECT_THAT(error("low-bit"), HasSubstr("its experts have no low copies"));
}

// Their scores include those of groups that the router passed over.
TEST_F(SubstitutionEngine, TakesNoSubstitutesWhereTheRouterChoosesByGroups) {
  UseShape(*FindShape("tiny-deepseek2"));
  for (const char* chain : {"smoe", "random", "best-live", "bias", "drop+smoe"}) {
    const auto engine = Engine::Open(path(), {.offload = {.slots = 4, .lossiness = Chain{chain}}});
    EXPECT_THAT(engine.status().message(), HasSubstr("2 of 4 groups")) << chain;
  }
  const auto dropping = Open("drop", all_ / 2);
  EXPECT_FALSE(Feed(*dropping) == exact_);
  EXPECT_GT(dropping->expert_usage().dropped, 0u);
}

TEST_F(SubstitutionEngine, SaysThatNothingIsSubstitutedWhereEveryExpertIsInMemory) {
  const auto engine = Engine::Open(path(), {.offload = {.lossiness = Chain{"drop"}}}).value();
  EXPECT_TRUE(Feed(*engine) == exact_);
  EXPECT_THAT(Describe(engine->plan()), Contains(HasSubstr("nothing is substituted")));
}

}  // namespace
}  // namespace troupe
