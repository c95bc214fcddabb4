#include "runtime/plan_model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace troupe {
namespace {

using testing::Contains;
using testing::Each;
using testing::HasSubstr;
using testing::Not;

constexpr char kPlannedModel[] = TROUPE_SOURCE_DIR "/models/tiny-qwen2moe-q8_0.gguf";

TEST(PlanModelTest, WithEnoughMemoryNothingIsOpenedToLoadFrom) {
  const PlannedModel model = PlanModel(kPlannedModel, {.memory = 4_GiB}).value();
  EXPECT_TRUE(model.plan.memory.all_resident);
  EXPECT_EQ(model.store, nullptr);
  EXPECT_EQ(model.config->layers, 8u);
  EXPECT_FALSE(model.tokenizer->Encode("a").value().empty());
}

TEST(PlanModelTest, WithLittleMemoryTheSlowTierIsOpen) {
  EngineOptions options{.context = 128, .memory = 4_GiB};
  options.offload.slots = 40;
  const PlannedModel model = PlanModel(kPlannedModel, options).value();
  EXPECT_EQ(model.plan.memory.slots, 40u);
  ASSERT_NE(model.store, nullptr);
  EXPECT_EQ(model.store->name(), "GGUF in place");
}

TEST(PlanModelTest, NotesSayWhetherAnswersOrOnlyGuessesLoseMissingExperts) {
  EngineOptions options{.context = 128, .memory = 4_GiB};
  options.offload.slots = 40;
  options.offload.lossiness = Chain{"drop"};
  EXPECT_THAT(PlanModel(kPlannedModel, options)->plan.notes,
              Contains("not exact: missing experts are answered by drop"));
  options.offload.lossy_guesses_alone = true;
  const std::vector<std::string> notes = PlanModel(kPlannedModel, options)->plan.notes;
  EXPECT_THAT(notes, Contains("guesses for the cloud leave out missing experts; answers leave out "
                              "none"));
  EXPECT_THAT(notes, Each(Not(HasSubstr("not exact"))));
}

// An engine that is opened for one text of this length.
EngineOptions OptionsForText(TextLength length, std::uint32_t& most_told) {
  EngineOptions options{.memory = 4_GiB};
  options.offload.slots = 40;
  options.text = [length, &most_told](const Tokenizer& tokenizer,
                                      std::uint32_t most) -> Result<TextLength> {
    most_told = most;
    if (tokenizer.Encode("a")->empty()) return InvalidArgument("no tokens");
    return length;
  };
  return options;
}

TEST(PlanModelTest, AnUnaskedContextIsAsLongAsTheOneTextBecomes) {
  std::uint32_t most = 0;
  EngineOptions options = OptionsForText({.least = 130, .most = 300, .read = 130}, most);
  const EnginePlan plan = PlanModel(kPlannedModel, options)->plan;
  EXPECT_EQ(plan.context(), 512u);     // whole pages
  EXPECT_EQ(plan.memory.chunk, 144u);  // and whole steps of a pass
  EXPECT_EQ(most, 2048u);
  EXPECT_THAT(plan.notes, Contains(HasSubstr("this text becomes no longer")));
  options.context = 1000;
  EXPECT_EQ(PlanModel(kPlannedModel, options)->plan.context(), 1000u);
  EXPECT_EQ(most, 1000u);
  EXPECT_GE(PlanModel(kPlannedModel, OptionsForText({.least = 1, .most = 9, .read = 1}, most))
                ->plan.memory.chunk,
            65u);  // as long as a draft is that may be checked
}

TEST(PlanModelTest, AnErrorOfTheTextIsTheErrorOfThePlan) {
  EngineOptions options;
  options.text = [](const Tokenizer&, std::uint32_t) -> Result<TextLength> {
    return InvalidArgument("a text of no tokens");
  };
  EXPECT_THAT(PlanModel(kPlannedModel, options).status().message(), HasSubstr("no tokens"));
}

TEST(PlanModelTest, TheProgramItselfIsWithinTheBudget) {
  const PlannedModel model = PlanModel(kPlannedModel, {.memory = 4_GiB}).value();
  EXPECT_GT(model.plan.memory.program, 12_MiB);
}

TEST(PlanModelTest, OnlyWhatIsOpenedCountsInThePlansToCome) {
  const EngineOptions options{.context = 128, .memory = 4_GiB};
  const PlannedModel look = PlanModel(kPlannedModel, options).value();
  EXPECT_EQ(look.planned.size(), Bytes());
  const PlannedModel opening = PlanModel(kPlannedModel, options, PlanFor::kOpening).value();
  EXPECT_GE(opening.planned.size(), opening.plan.memory.dense + opening.plan.memory.experts);
  const PlannedModel beside = PlanModel(kPlannedModel, options).value();
  EXPECT_GE(beside.plan.memory.program, opening.plan.memory.total());
}

TEST(PlanModelTest, AReplacementMayHaveTheMemoryOfWhatIsOpen) {
  EngineOptions options{.context = 128};
  const Bytes alone = PlanModel(kPlannedModel, options).value().plan.memory.total();
  options.memory = alone + 8_MiB;
  const PlannedModel opening = PlanModel(kPlannedModel, options, PlanFor::kOpening).value();
  ASSERT_TRUE(opening.plan.memory.all_resident);
  const Result<PlannedModel> beside = PlanModel(kPlannedModel, options);
  EXPECT_TRUE(!beside.ok() || !beside->plan.memory.all_resident);
  const PlannedModel instead = PlanModel(kPlannedModel, options, PlanFor::kReplacement).value();
  EXPECT_TRUE(instead.plan.memory.all_resident);
  EXPECT_EQ(instead.planned.size(), Bytes());
  EXPECT_EQ(PlanModel(kPlannedModel, {.memory = 1_MiB}, PlanFor::kReplacement).status().code(),
            Code::kResourceExhausted);
}

TEST(PlanModelTest, StaysWholeWhenItIsMoved) {
  EngineOptions options{.context = 128, .memory = 4_GiB};
  options.offload.slots = 40;
  PlannedModel first = PlanModel(kPlannedModel, options).value();
  const PlannedModel model = std::move(first);
  EXPECT_EQ(model.plan.needs.kv_cache(128), model.plan.memory.kv_cache);
  EXPECT_EQ(model.measure.experts[0].matrices[0].tensor->name, "blk.0.ffn_gate_exps.weight");
}

TEST(PlanModelTest, AModelThatIsMissingAndABudgetTooSmallAreErrors) {
  EXPECT_EQ(PlanModel("/none.gguf", {}).status().code(), Code::kNotFound);
  const auto small = PlanModel(kPlannedModel, {.memory = 1_MiB});
  EXPECT_EQ(small.status().code(), Code::kResourceExhausted);
  EXPECT_THAT(small.status().message(), HasSubstr("1.0 MiB of memory are too little"));
}

}  // namespace
}  // namespace troupe
