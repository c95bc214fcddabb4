#include "runtime/draft_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <utility>

#include "forge/synth.h"
#include "forge/synth_shape.h"
#include "gguf/reader.h"
#include "runtime/engine.h"
#include "testing/temp_folder.h"

namespace troupe {
namespace {

using testing::Contains;
using testing::HasSubstr;

constexpr char kDraftedFor[] = TROUPE_SOURCE_DIR "/models/tiny-qwen2moe-q8_0.gguf";

class DraftPlanTest : public testing::Test {
 protected:
  static EngineOptions Options(std::string draft) {
    return {.context = 256,
            .memory = 4_GiB,
            .drafters = *ParseDraftChoice("auto"),
            .draft = std::move(draft)};
  }
  // With the vocabulary of the model, or with one of its own.
  std::string Synthetic(const std::string& shape, bool same_vocabulary = true) const {
    SynthOptions options;
    ModelShape made = *FindShape(shape);
    if (same_vocabulary) {
      options.tokenizer = GgufModel::Open(kDraftedFor)->metadata();
      made.vocabulary = 4096;
    }
    const std::string path = folder_.PathOf(shape + ".gguf");
    EXPECT_TRUE(Synthesize(made, options, path).ok());
    return path;
  }
  static std::string Refused(const EngineOptions& options, Code code = Code::kInvalidArgument) {
    const Status status = PlanModel(kDraftedFor, options).status();
    EXPECT_EQ(status.code(), code) << status.message();
    return std::string(status.message());
  }

  const TempFolder folder_;
};

TEST_F(DraftPlanTest, WhatItTakesIsAPartOfThePlan) {
  const PlannedModel alone = PlanModel(kDraftedFor, Options("")).value();
  const PlannedModel drafted = PlanModel(kDraftedFor, Options(kDraftedFor)).value();
  const MemoryPlan& memory = drafted.plan.memory;
  EXPECT_EQ(alone.plan.memory.draft, Bytes());
  EXPECT_GE(memory.draft, memory.dense + memory.experts + memory.kv_cache);
  EXPECT_GE(memory.total(), alone.plan.memory.total() + memory.draft);
  EXPECT_TRUE(drafted.plan.drafters.model);
  EXPECT_FALSE(alone.plan.drafters.model);
  EXPECT_THAT(Describe(drafted.plan),
              Contains(HasSubstr("draft model   " + ToString(memory.draft))));
  EXPECT_THAT(Describe(drafted.plan),
              Contains(HasSubstr("drafts for 1 answer at a time, 256 tokens of each")));
}

TEST_F(DraftPlanTest, ItCountsOnceInThePlansToCome) {
  const Result<std::unique_ptr<Engine>> engine = Engine::Open(kDraftedFor, Options(kDraftedFor));
  ASSERT_TRUE(engine.ok()) << engine.status().message();
  const MemoryPlan& first = (*engine)->plan().memory;
  const PlannedModel beside = PlanModel(kDraftedFor, Options("")).value();
  constexpr Bytes kGrowth = 14_MiB;  // of the process, and logits: PlanModel's
  EXPECT_LT(beside.plan.memory.program, first.total() + kGrowth);
  EXPECT_GT(first.draft, 8_MiB) << "twice would be more than that";
}

// What the process itself holds changes from one plan to the next (a sanitizer keeps what was
// freed), so the budget is searched.
TEST_F(DraftPlanTest, ASmallBudgetGivesExpertsUpForIt) {
  EngineOptions options = Options(kDraftedFor);
  Bytes less = 3_MiB;
  std::optional<PlannedModel> drafted;
  for (int attempt = 0; attempt < 100 && !drafted; ++attempt) {
    options.memory = PlanModel(kDraftedFor, Options(kDraftedFor))->plan.memory.total() - less;
    Result<PlannedModel> planned = PlanModel(kDraftedFor, options);
    if (planned.ok() && !planned->plan.memory.all_resident) drafted = *std::move(planned);
    less = planned.ok() ? less + 256_KiB : less - 256_KiB;
  }
  ASSERT_TRUE(drafted) << "no budget holds a part of the experts";
  EXPECT_LE(drafted->plan.memory.total(), *options.memory);
  options.draft.clear();
  EXPECT_TRUE(PlanModel(kDraftedFor, options)->plan.memory.all_resident);
}

TEST_F(DraftPlanTest, WhereItDoesNotFitThatIsSaid) {
  EngineOptions options = Options(kDraftedFor);
  options.memory = PlanModel(kDraftedFor, Options(kDraftedFor))->plan.memory.program + 9_MiB;
  EXPECT_THAT(Refused(options, Code::kResourceExhausted), HasSubstr(" for the draft model"));
}

TEST_F(DraftPlanTest, ItDraftsForSomeAnswersAtATime) {
  EngineOptions options = Options(kDraftedFor);
  options.sequences = 16;
  const PlannedModel drafted = PlanModel(kDraftedFor, options).value();
  EXPECT_EQ(drafted.draft->plan.memory.sequences, kMostDraftSequences);
  EXPECT_EQ(drafted.draft->plan.memory.kv_positions, kMostDraftSequences * 256u);
}

TEST_F(DraftPlanTest, ADenseModelOfTheSameVocabularyMayDraft) {
  const PlannedModel drafted = PlanModel(kDraftedFor, Options(Synthetic("tiny-llama"))).value();
  EXPECT_TRUE(drafted.plan.drafters.model);
}

TEST_F(DraftPlanTest, RefusesAnotherVocabulary) {
  const std::string path = Synthetic("tiny-olmoe", false);
  EXPECT_THAT(Refused(Options(path)),
              testing::AllOf(HasSubstr(path + ": not the vocabulary of " + kDraftedFor),
                             HasSubstr("expected 4096")));
}

TEST_F(DraftPlanTest, RefusesAModelWhoseSequencesHaveAState) {
  EXPECT_THAT(Refused(Options(Synthetic("tiny-lfm2moe"))), HasSubstr("have a state"));
}

TEST_F(DraftPlanTest, RefusesWhatIsNoModel) {
  EXPECT_THAT(Refused(Options(folder_.PathOf("none.gguf")), Code::kNotFound),
              HasSubstr("none.gguf"));
  const std::string text = folder_.Write("text.gguf", "not a model at all");
  EXPECT_FALSE(PlanModel(kDraftedFor, Options(text)).ok());
}

TEST_F(DraftPlanTest, RefusesADraftModelThatWouldHaveNoEffect) {
  EngineOptions options = Options(kDraftedFor);
  options.drafters = *ParseDraftChoice("lookup");
  EXPECT_THAT(Refused(options), HasSubstr("--speculate does not use"));
  options = Options(kDraftedFor);
  options.trace = TraceScores::kNone;
  EXPECT_THAT(Refused(options), HasSubstr("while a trace is recorded"));
  options = Options("");
  options.drafters = *ParseDraftChoice("draft");
  EXPECT_THAT(Refused(options), HasSubstr("none was given"));
}

}  // namespace
}  // namespace troupe
