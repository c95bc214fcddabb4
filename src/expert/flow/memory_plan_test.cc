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
  EXPECT_EQ(plan.chunk, 512u);
  EXPECT_EQ(plan.experts, plan.slots * 1_MiB);
  EXPECT_THAT(plan.warnings, IsEmpty());
}

// Sizes of any model and any wish, as far as a plan tells them apart.
MemoryNeeds AnyNeeds(Rng& rng) {
  const Bytes token = 1_KiB * (1 + rng.Below(64)), row = 1_KiB * (1 + rng.Below(128));
  MemoryNeeds needs = Needs();
  needs.slot = 1_KiB * (20 + rng.Below(5000));
  needs.experts = needs.AllExperts() * needs.slot;
  needs.kv_cache = [token](std::uint32_t context) { return context * token; };
  needs.workspace = [row](std::uint32_t context, std::uint32_t chunk) {
    return chunk * row + context * 16_B;
  };
  if (rng.Below(3) == 0) {
    needs.serving = [](std::uint32_t context) {
      ServingMemory memory;
      memory.words = context * 40_B;
      return memory;
    };
  }
  return needs;
}

MemoryRequest AnyRequest(Rng& rng) {
  MemoryRequest request{.budget = {},
                        .context = static_cast<std::uint32_t>(1 + rng.Below(6000)),
                        .context_given = rng.Below(2) == 0,
                        .sequences = static_cast<std::uint32_t>(1 + rng.Below(2) * rng.Below(20)),
                        .chunk = static_cast<std::uint32_t>(1 + rng.Below(700))};
  if (rng.Below(4) == 0) request.most_slots = static_cast<std::uint32_t>(rng.Below(700));
  return request;
}

std::uint32_t ExpertsInMemory(const MemoryPlan& plan, const MemoryNeeds& needs) {
  return plan.all_resident ? needs.AllExperts() : plan.slots;
}

std::uint64_t ContextsOf(const MemoryPlan& plan) { return plan.kv_positions / plan.context; }

TEST(MemoryPlanTest, MoreMemoryNeverGivesFewerContextsNorForAsManyLessOfAnything) {
  Rng rng(5);
  int steps = 0;
  for (int round = 0; round < 40; ++round) {
    const MemoryNeeds needs = AnyNeeds(rng);
    MemoryRequest request = AnyRequest(rng);
    const Bytes step = 1_KiB * (100 + rng.Below(8000));
    std::optional<MemoryPlan> before;
    for (request.budget = 120_MiB; request.budget < 1200_MiB; request.budget += step) {
      const auto plan = PlanMemory(needs, request);
      if (!plan.ok()) {
        ASSERT_FALSE(before.has_value()) << "refused with more than was enough";
        continue;
      }
      EXPECT_LE(plan->total(), request.budget);
      if (request.context_given) {
        EXPECT_EQ(plan->context, request.context);
      }
      if (before) {
        ASSERT_GE(ContextsOf(*plan), ContextsOf(*before)) << ToString(request.budget);
      }
      if (before && ContextsOf(*plan) == ContextsOf(*before)) {
        ++steps;
        ASSERT_GE(ExpertsInMemory(*plan, needs), ExpertsInMemory(*before, needs))
            << ToString(request.budget);
        ASSERT_GE(plan->chunk, before->chunk) << ToString(request.budget);
        ASSERT_GE(plan->context, before->context) << ToString(request.budget);
        ASSERT_GE(plan->kv_positions, before->kv_positions) << ToString(request.budget);
      }
      before = *plan;
    }
  }
  EXPECT_GT(steps, 3'000);
}

TEST(MemoryPlanTest, ABudgetIsUsedButForLessThanAStep) {
  Rng rng(8);
  for (int round = 0; round < 300; ++round) {
    const MemoryNeeds needs = AnyNeeds(rng);
    MemoryRequest request = AnyRequest(rng);
    request.most_slots.reset();
    request.budget = 1_MiB * (150 + rng.Below(300));
    const auto plan = PlanMemory(needs, request);
    if (!plan.ok() || plan->all_resident || plan->slots == needs.AllExperts()) continue;
    // An expert, or 16 rows of a pass or 256 tokens of context with those that come with them.
    const auto contexts = static_cast<std::uint32_t>(ContextsOf(*plan));
    const Bytes step =
        needs.slot + contexts * needs.kv_cache(256) + needs.workspace(256, 16) + 1_MiB;
    EXPECT_GT(plan->total() + step, request.budget);
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

TEST(MemoryPlanTest, AShortChunkIsNoLossForAPromptThatIsShorter) {
  MemoryRequest request{.budget = 200_MiB, .context = 256, .context_given = true};
  const std::uint32_t chunk = PlanMemory(Needs(), request)->chunk;
  ASSERT_LT(chunk, 256u);
  request.longest_prompt = chunk + 1;
  EXPECT_THAT(PlanMemory(Needs(), request)->notes, Contains(HasSubstr("prompts in chunks of")));
  request.longest_prompt = chunk;
  EXPECT_THAT(PlanMemory(Needs(), request)->notes, IsEmpty());
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

// A pass has a row for each sequence, which makes it no longer one than a cache pays for.
TEST(MemoryPlanTest, ManySequencesHaveTheirContextsBeforeTheCacheGrows) {
  for (const std::uint32_t sequences : {16u, 17u, 64u}) {
    const MemoryPlan plan =
        PlanMemory(Needs(),
                   {.budget = 600_MiB, .context = 4096, .sequences = sequences, .chunk = 512})
            .value();
    EXPECT_EQ(ContextsOf(plan), sequences);
  }
}

TEST(MemoryPlanTest, ASharedKvCacheShrinksDownToOneContextBeforeTheBudgetIsRefused) {
  const auto plan = [](Bytes budget, std::uint32_t sequences) {
    return PlanMemory(Needs(), {.budget = budget,
                                .context = 1024,
                                .context_given = true,
                                .sequences = sequences,
                                .chunk = 8});
  };
  // 20 + 100 + 8 and two slots; 528 KiB to work in; contexts of 16 MiB.
  const Bytes rest = 130_MiB + 1_MiB;
  EXPECT_EQ(plan(rest + 64_MiB, 4)->kv_positions, 4u * 1024);
  const MemoryPlan some = plan(rest + 63_MiB, 4).value();
  EXPECT_EQ(some.kv_positions, 3u * 1024);
  EXPECT_GT(some.total() + 1_MiB, rest + 63_MiB);  // a fourth context does not fit: for experts
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
