#include "expert/flow/memory_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/rng.h"

namespace troupe {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::IsEmpty;

// 20 layers of 32 experts of 1 MiB, of which a token uses 4 each: a working set of 80.
MemoryNeeds Needs() {
  return {.program = 20_MiB,
          .dense = 100_MiB,
          .experts = 640_MiB,
          .slot = 1_MiB,
          .staging = 8_MiB,
          .expert_layers = 20,
          .experts_per_layer = 32,
          .experts_per_token = 4,
          .kv_cache = [](std::uint32_t context) { return context * 16_KiB; },
          .workspace = [](std::uint32_t context,
                          std::uint32_t chunk) { return chunk * 64_KiB + context * 16_B; }};
}

Result<MemoryPlan> Plan(Bytes budget, std::optional<std::uint32_t> context = std::nullopt) {
  return PlanMemory(
      Needs(),
      {.budget = budget, .context = context.value_or(4096), .context_given = context.has_value()});
}

TEST(MemoryPlanTest, EverythingStaysInMemoryWhereItFits) {
  const MemoryPlan plan = Plan(1_GiB).value();
  EXPECT_TRUE(plan.all_resident);
  EXPECT_EQ(plan.slots, 0u);
  EXPECT_EQ(plan.staging, Bytes());
  EXPECT_EQ(plan.context, 4096u);
  EXPECT_EQ(plan.chunk, 512u);
  EXPECT_THAT(plan.notes, IsEmpty());
}

TEST(MemoryPlanTest, EverySequenceHasItsStateHoweverLongItIs) {
  MemoryNeeds needs = Needs();
  needs.state = 3_MiB;
  const auto plan = [&](std::uint32_t context) {
    return PlanMemory(
               needs,
               {.budget = 600_MiB, .context = context, .context_given = true, .sequences = 5})
        .value();
  };
  EXPECT_EQ(plan(64).state, 15_MiB);
  EXPECT_EQ(plan(1024).state, 15_MiB);
  EXPECT_LE(plan(1024).total(), 600_MiB);
  EXPECT_THAT(Describe(plan(64), needs), Contains(HasSubstr(ToString(15_MiB) + " of 5 sequences")));
}

TEST(MemoryPlanTest, WhatTheRestLeavesBecomesSlots) {
  const MemoryPlan plan = Plan(600_MiB, 1024).value();
  EXPECT_FALSE(plan.all_resident);
  EXPECT_LE(plan.total(), 600_MiB);
  EXPECT_GT(plan.total() + 1_MiB, 600_MiB);  // not one more would fit
  EXPECT_EQ(plan.experts, plan.slots * 1_MiB);
  EXPECT_THAT(plan.warnings, IsEmpty());
}

TEST(MemoryPlanTest, NeverExceedsTheBudgetAndNeverGivesFewerSlotsForMore) {
  Rng rng(5);
  for (int round = 0; round < 300; ++round) {
    const Bytes budget = 1_MiB * (100 + rng.Below(700));
    const std::optional<std::uint32_t> context =
        rng.Below(2) == 0 ? std::nullopt : std::optional<std::uint32_t>(1 + rng.Below(6000));
    const auto plan = Plan(budget, context);
    if (!plan.ok()) continue;
    EXPECT_LE(plan->total(), budget);
    if (context) {
      EXPECT_EQ(plan->context, *context);
    }
    if (!plan->all_resident) {
      EXPECT_GE(plan->slots, kLeastSlots);
    }
    const auto more = Plan(budget + 50_MiB, context);
    ASSERT_TRUE(more.ok());
    EXPECT_GE(more->context, plan->context);
    if (more->context == plan->context && more->chunk == plan->chunk && !more->all_resident) {
      EXPECT_GE(more->slots, plan->slots);
    }
  }
}

TEST(MemoryPlanTest, AContextNobodyAskedForShrinksAndSaysSo) {
  const MemoryPlan plan = Plan(250_MiB).value();
  EXPECT_LT(plan.context, 4096u);
  EXPECT_THAT(plan.notes, Contains(HasSubstr("instead of 4096")));
}

TEST(MemoryPlanTest, AContextTheUserAskedForStays) {
  EXPECT_EQ(Plan(250_MiB, 4096)->context, 4096u);
  const auto refused = Plan(180_MiB, 4096);
  EXPECT_EQ(refused.status().code(), Code::kResourceExhausted);
  EXPECT_THAT(refused.status().message(), HasSubstr("64.0 MiB for 4096 tokens of context"));
}

TEST(MemoryPlanTest, ShortMemoryMakesShorterChunks) {
  const MemoryPlan plan = Plan(200_MiB).value();
  EXPECT_LT(plan.chunk, 512u);
  EXPECT_THAT(plan.notes, Contains(HasSubstr("prompts in chunks of")));
}

TEST(MemoryPlanTest, ASmallerCacheThanFitsCanBeAskedFor) {
  const auto plan = [](std::uint32_t slots) {
    return PlanMemory(Needs(), {.budget = 2_GiB, .context = 64, .most_slots = slots}).value();
  };
  EXPECT_EQ(plan(100).slots, 100u);
  EXPECT_EQ(plan(0).slots, kLeastSlots);
  EXPECT_FALSE(plan(639).all_resident);
  EXPECT_TRUE(plan(640).all_resident);
}

TEST(MemoryPlanTest, ACacheBelowOneTokensWorkingSetIsWarnedOf) {
  EXPECT_THAT(Plan(190_MiB)->warnings, Contains(HasSubstr("one token uses 80")));
}

TEST(MemoryPlanTest, TheLeastBudgetIsNamedAndItWorks) {
  const Status refused = Plan(64_MiB).status();
  EXPECT_EQ(refused.code(), Code::kResourceExhausted);
  EXPECT_THAT(refused.message(),
              HasSubstr("are the least: 20.0 MiB for the program and its reserve, 100.0 MiB"));
  EXPECT_THAT(refused.message(), HasSubstr("2.0 MiB for 2 of 640 experts and 8.0 MiB to load"));
  // 20 + 100 + 8 + 4 (context 256) + 2 slots + a chunk of one
  EXPECT_TRUE(Plan(135_MiB).ok());
  EXPECT_FALSE(Plan(133_MiB).ok());
}

TEST(MemoryPlanTest, EverySequenceHasAContextAndARowOfThePass) {
  const MemoryRequest request{
      .budget = 2_GiB, .context = 1024, .context_given = true, .sequences = 6, .chunk = 4};
  const MemoryPlan plan = PlanMemory(Needs(), request).value();
  EXPECT_EQ(plan.sequences, 6u);
  EXPECT_EQ(plan.kv_positions, 6u * 1024);
  EXPECT_EQ(plan.kv_cache, 6 * 16_MiB);
  EXPECT_EQ(plan.chunk, 6u);
  EXPECT_THAT(plan.notes, IsEmpty());
  const std::string all = testing::PrintToString(Describe(plan, Needs()));
  EXPECT_THAT(all, HasSubstr("6 sequences of up to 1024 tokens, 6144 in all"));
}

TEST(MemoryPlanTest, ASharedKvCacheShrinksDownToOneContextBeforeTheBudgetIsRefused) {
  const auto plan = [](Bytes budget, std::uint32_t sequences) {
    return PlanMemory(Needs(), {.budget = budget,
                                .context = 1024,
                                .context_given = true,
                                .sequences = sequences,
                                .chunk = 8});
  };
  // 20 + 100 + 8 and two slots; 512 KiB to work in; contexts of 16 MiB.
  const Bytes rest = 130_MiB + 1_MiB;
  EXPECT_EQ(plan(rest + 64_MiB, 4)->kv_positions, 4u * 1024);
  const MemoryPlan some = plan(rest + 63_MiB, 4).value();
  EXPECT_EQ(some.kv_positions, 3u * 1024);
  EXPECT_LE(some.total(), rest + 63_MiB);
  EXPECT_THAT(some.notes, Contains(HasSubstr("4 sequences share a KV cache of 3072 tokens")));
  EXPECT_EQ(plan(rest + 16_MiB, 4)->kv_positions, 1024u);
  EXPECT_EQ(plan(rest + 15_MiB, 4).status().code(), Code::kResourceExhausted);
}

TEST(MemoryPlanTest, ASharedKvCacheKeepsThePositionsThatSequencesTakeTogether) {
  const auto plan = [](Bytes budget) {
    return PlanMemory(Needs(), {.budget = budget,
                                .context = 1024,
                                .context_given = true,
                                .sequences = 4,
                                .least_positions = 1025,
                                .chunk = 8});
  };
  const Bytes rest = 130_MiB + 1_MiB;
  EXPECT_EQ(plan(rest + 32_MiB)->kv_positions, 2u * 1024);
  EXPECT_EQ(plan(rest + 31_MiB).status().code(), Code::kResourceExhausted);
}

TEST(MemoryPlanTest, ManySequencesInAnyBudgetStayWithinIt) {
  Rng rng(6);
  for (int round = 0; round < 300; ++round) {
    const MemoryRequest request{.budget = 1_MiB * (100 + rng.Below(900)),
                                .context = static_cast<std::uint32_t>(1 + rng.Below(6000)),
                                .context_given = rng.Below(2) == 0,
                                .sequences = static_cast<std::uint32_t>(1 + rng.Below(40))};
    const auto plan = PlanMemory(Needs(), request);
    if (!plan.ok()) continue;
    EXPECT_LE(plan->total(), request.budget);
    EXPECT_GE(plan->kv_positions, plan->context);
    EXPECT_LE(plan->kv_positions, std::uint64_t{plan->context} * request.sequences);
    EXPECT_GE(plan->chunk, request.sequences);
  }
}

TEST(MemoryPlanTest, AModelWithoutExpertsGivesChunkAndContext) {
  MemoryNeeds needs = Needs();
  needs.experts = needs.slot = needs.staging = Bytes();
  needs.expert_layers = 0;
  const MemoryRequest request{.budget = 130_MiB, .context = 4096};
  const MemoryPlan plan = PlanMemory(needs, request).value();
  EXPECT_TRUE(plan.all_resident);
  EXPECT_LT(plan.context, 4096u);
  EXPECT_LE(plan.total(), 130_MiB);
  EXPECT_THAT(PlanMemory(needs, {.budget = 100_MiB, .context = 4096}).status().message(),
              testing::Not(HasSubstr("experts")));
}

TEST(MemoryPlanTest, DescriptionAddsUpAndNamesTheCache) {
  const MemoryPlan plan = Plan(600_MiB, 1024).value();
  const std::string all = testing::PrintToString(Describe(plan, Needs()));
  EXPECT_THAT(all, HasSubstr(fmt::format("{} of 640 experts", plan.slots)));
  EXPECT_THAT(all, HasSubstr("of 600.0 MiB"));
}

}  // namespace
}  // namespace troupe
