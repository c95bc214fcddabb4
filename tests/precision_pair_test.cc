// Experts in two precisions: off, they change no byte; on, the answers are those of the copies that
// the rule names, they are counted, and nothing of them is left for a request that is exact.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

#include "base/rng.h"
#include "forge/pack_pair.h"
#include "forge/requantize.h"
#include "forge/synth.h"
#include "gguf/reader.h"
#include "runtime/session.h"
#include "testing/temp_folder.h"

namespace troupe {
namespace {

using testing::HasSubstr;
using PairLogits = std::vector<std::vector<float>>;

constexpr std::size_t kPairPrompt = 40, kPairTokens = 48;

class PrecisionPair : public testing::Test {
 protected:
  // high.gguf with its container of Q8_0 and Q4_0, and low.gguf, whose experts are those low
  // copies.
  // Once for all: rounding well takes seconds. Nothing writes into the folder afterwards.
  static void SetUpTestSuite() {
    files_ = std::make_unique<TempFolder>();
    ASSERT_TRUE(
        Synthesize(Shape(), {.layout = {.mix = {.type = TensorType::kF16}}}, PathOf("o")).ok());
    const GgufModel original = GgufModel::Open(PathOf("o")).value();
    ASSERT_TRUE(PackPair(original, TensorType::kQ8_0, {.low = TensorType::kQ4_0},
                         PathOf("high.gguf"), PathOf("high.experts"))
                    .ok());
    ASSERT_TRUE(Requantize(original, {.mix = {.type = TensorType::kQ4_0}, .experts_only = true},
                           PathOf("low.gguf"))
                    .ok());
  }
  static void TearDownTestSuite() { files_.reset(); }
  static ModelShape Shape() {
    ModelShape shape = *FindShape("tiny-olmoe");
    shape.layers = 3;
    return shape;
  }
  static std::string PathOf(const std::string& name) { return files_->PathOf(name); }

  void SetUp() override {
    Rng rng(3);
    for (std::size_t i = 0; i < kPairTokens; ++i) {
      tokens_.push_back(static_cast<std::int32_t>(rng.Below(Shape().vocabulary)));
    }
    exact_ = Feed(*Open("high.gguf", {}).value());
    low_ = Feed(*Open("low.gguf", {}).value());
    ASSERT_FALSE(exact_ == low_);
  }

  Result<std::unique_ptr<Engine>> Open(const std::string& name, OffloadOptions offload) {
    return Engine::Open(PathOf(name), {.threads = 2, .offload = std::move(offload)});
  }
  std::unique_ptr<Engine> OpenPair(std::uint32_t slots, LowCopyOptions low,
                                   const std::string& predictor = "none") {
    OffloadOptions offload;
    offload.slots = slots;
    offload.low_copies = low;
    offload.predictor = predictor;
    offload.prefetch.governed = false;
    return Open("high.gguf", std::move(offload)).value();
  }

  // A prompt at once, then token by token.
  PairLogits Feed(Engine& engine) {
    Session session = Session::Create(engine).value();
    PairLogits logits;
    const auto feed = [&](std::size_t first, std::size_t count) {
      EXPECT_TRUE(session
                      .FeedForLogits(std::span(tokens_).subspan(first, count), 0,
                                     first == 0 ? Phase::kPrompt : Phase::kDecode,
                                     [&](std::size_t, std::span<const float> row) {
                                       logits.emplace_back(row.begin(), row.end());
                                     })
                      .ok());
      if (first == 0) prompt_usage_ = engine.expert_usage();
    };
    feed(0, kPairPrompt);
    for (std::size_t i = kPairPrompt; i < kPairTokens; ++i) feed(i, 1);
    return logits;
  }

  static PairLogits Prompt(const PairLogits& all) {
    return {all.begin(), all.begin() + kPairPrompt};
  }

  static inline std::unique_ptr<TempFolder> files_;
  std::vector<std::int32_t> tokens_;
  PairLogits exact_, low_;
  ExpertUsage prompt_usage_;  // of the last Feed
};

TEST_F(PrecisionPair, ChangesNoByteUnlessAskedFor) {
  for (const std::uint32_t slots : {2u, 16u}) {
    const auto engine = OpenPair(slots, {}, "lookahead");
    EXPECT_TRUE(Feed(*engine) == exact_);
    EXPECT_EQ(engine->expert_usage().low_copies, 0u);
  }
}

TEST_F(PrecisionPair, AnswersLikeTheLowModelWhereEverythingMayBeLow) {
  // What is read ahead of the first layer comes in full, and then answers: not here.
  const auto prefill = OpenPair(2, {.prefill_share = 1});
  EXPECT_TRUE(Prompt(Feed(*prefill)) == Prompt(low_));
  const ExpertUsage usage = prefill->expert_usage();
  // The tokens after the prompt were exact.
  EXPECT_EQ(usage.low_copies, prompt_usage_.low_copies);
  EXPECT_EQ(usage.low_assignments, kPairPrompt * 3 * prefill->config().moe.routing.top_k);
  const auto both = OpenPair(2, {.prefill_share = 1, .decode = true});
  EXPECT_TRUE(Feed(*both) == low_);
  EXPECT_EQ(both->expert_usage().low_assignments,
            kPairTokens * 3 * both->config().moe.routing.top_k);
}

TEST_F(PrecisionPair, KeepsToItsShareOfAPromptAndReadsLess) {
  const auto all_high = OpenPair(2, {});
  Feed(*all_high);
  const std::uint64_t exact_bytes = prompt_usage_.bytes_read;
  std::uint64_t before = 0;
  for (const double share : {0.1, 0.3, 0.6}) {
    const auto engine = OpenPair(2, {.prefill_share = share});
    EXPECT_FALSE(Feed(*engine) == exact_) << share;
    EXPECT_GT(prompt_usage_.low_assignments, before);
    EXPECT_LE(static_cast<double>(prompt_usage_.low_assignments),
              share * kPairPrompt * 3 * engine->config().moe.routing.top_k);
    EXPECT_LT(prompt_usage_.bytes_read, exact_bytes);
    before = prompt_usage_.low_assignments;
  }
}

TEST_F(PrecisionPair, TakesTheLowCopyForATokensMissesOnly) {
  const auto engine = OpenPair(2, {.decode = true});
  const PairLogits found = Feed(*engine);
  EXPECT_TRUE(Prompt(found) == Prompt(exact_));
  EXPECT_FALSE(found == exact_);
  EXPECT_EQ(prompt_usage_.low_copies, 0u);
  EXPECT_GT(engine->expert_usage().low_copies, 0u);
}

// Whatever lies in the slots after runs that were not exact.
TEST_F(PrecisionPair, LeavesNothingForAnExactRequest) {
  for (const char* predictor : {"none", "lookahead", "previous"}) {
    for (const char* policy : {"lru", "lfu", "arc"}) {
      OffloadOptions offload;
      offload.slots = 12;
      offload.policy = policy;
      offload.predictor = predictor;
      offload.prefetch.governed = false;
      offload.low_copies = {.prefill_share = 1, .decode = true};
      const auto engine = Open("high.gguf", std::move(offload)).value();
      Feed(*engine);
      for (const LowCopyOptions& between :
           {LowCopyOptions{.prefill_share = 0.5}, LowCopyOptions{.decode = true},
            LowCopyOptions{.prefill_share = 0.3, .decode = true}}) {
        engine->AnswerBy(SubstitutionChain({}), {});
        const std::uint64_t low = engine->expert_usage().low_copies;
        EXPECT_TRUE(Feed(*engine) == exact_) << predictor << ", " << policy;
        EXPECT_EQ(engine->expert_usage().low_copies, low);
        engine->AnswerBy(SubstitutionChain({}), between);
        Feed(*engine);
        EXPECT_GT(engine->expert_usage().low_copies, low) << ToString(between);
      }
      EXPECT_GT(engine->offload_report()->cache.dropped, 0u);
      const ExpertUsage usage = engine->expert_usage();
      EXPECT_EQ(usage.prefetch_useful + usage.prefetch_late + usage.prefetch_cancelled +
                    usage.prefetch_wasted + static_cast<std::uint64_t>(usage.prefetch_waiting),
                usage.prefetches);
    }
  }
}

// As for a trace: an expert that was read ahead in low and is wanted in full has to be read again,
// while those that are given after it fill the slots.
TEST_F(PrecisionPair, GivesExpertsInOrderThoughSomeHaveToBeReadAgain) {
  for (const std::uint32_t slots : {8u, 12u}) {
    for (const double share : {0.1, 0.25, 0.5}) {
      OffloadOptions offload;
      offload.slots = slots;
      offload.low_copies = {.prefill_share = share};
      offload.prefetch.governed = false;
      offload.link.bytes_per_second = 50e6;  // so that many are on their way when asked for
      offload.in_order = true;
      const auto engine = Open("high.gguf", std::move(offload)).value();
      const PairLogits found = Feed(*engine);
      EXPECT_EQ(found.size(), exact_.size());
      EXPECT_GT(engine->expert_usage().low_copies, 0u);
    }
  }
}

// A prompt that is fed token by token is a prompt.
TEST_F(PrecisionPair, APromptOfOneTokenIsAPrompt) {
  const auto decode = OpenPair(2, {.decode = true});
  Session exact_prompt = Session::Create(*decode).value();
  ASSERT_TRUE(exact_prompt.FeedPrompt(std::span(tokens_).first(1)).ok());
  EXPECT_EQ(decode->expert_usage().low_copies, 0u);
  ASSERT_TRUE(exact_prompt.Feed(std::span(tokens_).subspan(1, 1)).ok());
  EXPECT_GT(decode->expert_usage().low_copies, 0u);

  const auto prefill = OpenPair(2, {.prefill_share = 1});
  Session low_prompt = Session::Create(*prefill).value();
  ASSERT_TRUE(low_prompt.FeedPrompt(std::span(tokens_).first(1)).ok());
  EXPECT_GT(prefill->expert_usage().low_copies, 0u);
}

TEST_F(PrecisionPair, SaysWhatIsMissing) {
  OffloadOptions offload;
  offload.slots = 2;
  offload.low_copies = {.prefill_share = 0.5};
  EXPECT_THAT(Open("low.gguf", offload).status().message(),
              HasSubstr("its experts have no low copies; `troupe pack MODEL --low TYPE`"));
  const GgufModel low = GgufModel::Open(PathOf("low.gguf")).value();
  ASSERT_TRUE(PackModel(low, {}, PathOf("low.experts")).ok());
  EXPECT_THAT(Open("low.gguf", offload).status().message(),
              HasSubstr("holds no experts of lower precision"));
}

TEST_F(PrecisionPair, ReadsNoLowCopyWhereEveryExpertIsInMemory) {
  OffloadOptions offload;
  offload.low_copies = {.prefill_share = 1, .decode = true};
  const auto engine = Open("high.gguf", offload).value();
  EXPECT_TRUE(Feed(*engine) == exact_);
  EXPECT_THAT(Describe(engine->plan()), testing::Contains(HasSubstr("low copies are not read")));
}

}  // namespace
}  // namespace troupe
