#include "runtime/engine_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "gguf/reader.h"
#include "text/sampler.h"

namespace troupe {
namespace {

using testing::Contains;
using testing::HasSubstr;

class EnginePlanning : public testing::Test {
 protected:
  Result<EnginePlan> Plan(const EngineOptions& options, std::uint32_t cpus = 2) const {
    return PlanEngine(config_, weights_,
                      {.cpus = cpus, .available = 4_GiB, .program = 10_MiB, .container = true},
                      options);
  }
  const GgufModel file_ =
      GgufModel::Open(TROUPE_SOURCE_DIR "/models/tiny-qwen2moe-q8_0.gguf").value();
  ModelConfig config_ = ReadModelConfig(file_.metadata()).value();
  const WeightMeasure weights_ = MeasureWeights(file_, config_).value();
};

TEST_F(EnginePlanning, TakesAllProcessorsAndTheTrainedContext) {
  const EnginePlan plan = Plan({}, 6).value();
  EXPECT_EQ(plan.threads, 6u);
  EXPECT_EQ(plan.context(), 2048u);
  EXPECT_TRUE(plan.memory.all_resident);
  EXPECT_EQ(plan.memory.budget, 4_GiB);
}

TEST_F(EnginePlanning, AnUnaskedContextIsNoLongerThanTheDefault) {
  config_.trained_context = 100'000;
  const EnginePlan plan = Plan({}).value();
  EXPECT_EQ(plan.context(), EngineOptions::kDefaultContext);
  EXPECT_THAT(plan.notes, Contains(HasSubstr("--ctx asks for more")));
  EXPECT_EQ(Plan({.context = 50'000})->context(), 50'000u);
}

TEST_F(EnginePlanning, AnUnaskedContextStaysBetweenWhatItsTextNeedsAndWhatThatBecomes) {
  const auto plan = [this](std::optional<Bytes> memory) {
    EngineOptions options{
        .least_context = 1500, .most_context = 1792, .memory = memory, .chunk = 1};
    options.offload.slots = kLeastSlots;
    return Plan(options);
  };
  const MemoryPlan ample = plan(std::nullopt)->memory;
  EXPECT_EQ(ample.context, 1792u);
  const Bytes page = ample.kv_cache - Plan({.context = 1536})->memory.kv_cache;
  const MemoryPlan tight = plan(ample.total() - Bytes(page.count() / 2))->memory;
  EXPECT_GE(tight.context, 1500u);
  EXPECT_LT(tight.context, 1792u);
  EXPECT_EQ(plan(ample.total() - 2 * page).status().code(), Code::kResourceExhausted);
}

TEST_F(EnginePlanning, TheKvCacheGrowsWithTheContextAndShrinksWithItsType) {
  const Bytes small = Plan({.context = 512})->memory.kv_cache;
  const Bytes large = Plan({.context = 1024})->memory.kv_cache;
  EXPECT_EQ(large, 2 * small);
  const Bytes q8 = Plan({.context = 1024, .kv_type = KvType::kQ8_0})->memory.kv_cache;
  EXPECT_LT(q8.count(), large.count() * 0.55);
}

TEST_F(EnginePlanning, ABudgetBelowTheModelMakesACacheAndOneBelowTheRestIsRefused) {
  const EnginePlan plan = Plan({.context = 256, .memory = 18_MiB}).value();
  EXPECT_FALSE(plan.memory.all_resident);
  EXPECT_GE(plan.memory.slots, kLeastSlots);
  EXPECT_LT(plan.memory.slots, 8 * 32u);
  EXPECT_LE(plan.memory.total(), 18_MiB);
  EXPECT_LE(plan.spare_slots, config_.moe.routing.top_k);
  const auto refused = Plan({.memory = 11_MiB});
  EXPECT_EQ(refused.status().code(), Code::kResourceExhausted);
  EXPECT_THAT(refused.status().message(), HasSubstr("11.0 MiB of memory are too little"));
}

TEST_F(EnginePlanning, ReadingTheModelFileItselfTakesStagingBesideTheSlots) {
  const auto plan = [&](bool container) {
    return PlanEngine(config_, weights_, {.cpus = 2, .program = 10_MiB, .container = container},
                      {.context = 256, .memory = 18_MiB})
        .value();
  };
  EXPECT_EQ(plan(true).memory.staging, Bytes());
  EXPECT_GT(plan(false).memory.staging, Bytes());
  EXPECT_LT(plan(false).memory.slots, plan(true).memory.slots);
}

TEST_F(EnginePlanning, ReadsAreShapedByWhatWasMeasuredAndTheNotesSayHow) {
  const auto plan = [&](const CostModel& costs, std::optional<std::uint32_t> slots) {
    EngineOptions options{.context = 256, .memory = 1_GiB};
    options.offload.slots = slots;
    return PlanEngine(config_, weights_, {.cpus = 2, .program = 10_MiB, .costs = costs}, options)
        .value();
  };
  CostModel costs;
  for (const Bytes size : {4_KiB, 64_KiB, 1_MiB}) {  // 5 ms away
    costs.disk.reads.push_back({.request = size});
    costs.disk.reads.back().lone_seconds.Note(5e-3);
    costs.disk.reads.back().bytes_per_second.Note(2e9);
  }
  const EnginePlan measured = plan(costs, 40), unmeasured = plan({}, 40);
  EXPECT_GT(measured.loader.prefetch_reads, unmeasured.loader.prefetch_reads);
  EXPECT_THAT(measured.notes, Contains(HasSubstr("of a medium of 1.9 GiB/s")));
  EXPECT_THAT(unmeasured.notes, Contains(HasSubstr("nothing was measured of the medium")));
  EXPECT_EQ(plan(costs, 40).notes, measured.notes);
  EXPECT_EQ(measured.memory.slots, unmeasured.memory.slots);
  EXPECT_THAT(plan(costs, std::nullopt).notes, testing::Not(Contains(HasSubstr("ahead"))));
}

TEST_F(EnginePlanning, WhatTheCallerTakesBesideItIsPartOfTheBudget) {
  const auto plan = [&](Bytes beside) {
    return Plan({.context = 256,
                 .memory = 20_MiB,
                 .beside = [beside](const ModelConfig& config) { return config.layers * beside; }})
        .value()
        .memory;
  };
  EXPECT_EQ(plan(128_KiB).program, plan(0_KiB).program + config_.layers * 128_KiB);
  EXPECT_LT(plan(128_KiB).slots, plan(0_KiB).slots);
}

TEST_F(EnginePlanning, WhatServingTakesHasPartsOfItsOwn) {
  EngineOptions options{.context = 256, .memory = 20_MiB};
  const MemoryPlan alone = Plan(options).value().memory;
  EXPECT_EQ(alone.serving, ServingMemory());
  options.serving = [](const ModelConfig& config, std::uint32_t context) {
    return ServingMemory{.connections = 1_MiB,
                         .rules = config.layers * 64_KiB,
                         .peers = 3_KiB,
                         .requests = context * 2_B};
  };
  options.experts_for_peers = 2;
  options.memory = 28_MiB;  // 8 MiB more, for the longest word
  const EnginePlan serving = Plan(options).value();
  EXPECT_EQ(serving.memory.serving, (ServingMemory{.connections = 1_MiB,
                                                   .rules = config_.layers * 64_KiB,
                                                   .peers = 3_KiB + 2 * serving.needs.slot,
                                                   .requests = 512_B,
                                                   .words = 8_MiB}));
  EXPECT_EQ(serving.memory.program, alone.program);
  EXPECT_LT(serving.memory.slots, alone.slots);
  EXPECT_LE(serving.memory.total(), 28_MiB);
}

TEST_F(EnginePlanning, APredictorsTablesArePartOfTheBudget) {
  const auto prediction = [&](const char* predictor, const char* policy = "lru") {
    EngineOptions options{.context = 256, .memory = 18_MiB};
    options.offload.predictor = predictor;
    options.offload.policy = policy;
    return Plan(options)->memory.prediction;
  };
  EXPECT_EQ(prediction("none"), Bytes());
  EXPECT_EQ(prediction("gate"), Bytes());
  EXPECT_GT(prediction("lookahead"), Bytes());
  EXPECT_GT(prediction("scores"), prediction("lookahead"));
  EXPECT_GT(prediction("none", "echo"), Bytes());
}

TEST_F(EnginePlanning, ALogitRowForEachSequenceAndOneSamplersScratchArePlanned) {
  const auto program = [&](std::uint32_t sequences) {
    return Plan({.context = 512, .sequences = sequences})->memory.program;
  };
  config_.vocabulary = 100'000;
  const Bytes row(4 * config_.vocabulary);
  EXPECT_EQ(program(16), program(1) + 15 * row);
  EXPECT_GE(program(1), 10_MiB + row + SamplerScratch::BytesFor(config_.vocabulary));
}

TEST_F(EnginePlanning, SequencesThatAreLongTogetherHaveAPageEachHoweverShortMemoryIs) {
  for (std::uint64_t mib = 12; mib <= 40; ++mib) {
    const auto plan =
        Plan({.context = 512, .sequences = 3, .sequence_length = 72, .memory = 1_MiB * mib});
    if (!plan.ok()) continue;
    EXPECT_GE(plan->memory.kv_positions, 3u * 256) << mib;
  }
  EXPECT_TRUE(Plan({.context = 512, .sequences = 3, .sequence_length = 72, .memory = 40_MiB}).ok());
}

TEST_F(EnginePlanning, MoreSequencesTakeMoreKeysAndValuesAndTheirLogits) {
  const EnginePlan one = Plan({.context = 512}).value();
  const EnginePlan four = Plan({.context = 512, .sequences = 4}).value();
  EXPECT_EQ(four.memory.kv_cache, 4 * one.memory.kv_cache);
  EXPECT_EQ(four.memory.workspace, one.memory.workspace);
  EXPECT_GE(four.memory.program, one.memory.program + Bytes(3 * 4 * config_.vocabulary));
  EXPECT_EQ(four.memory.chunk, one.memory.chunk);
  EXPECT_EQ(Plan({.sequences = 0}).status().code(), Code::kInvalidArgument);
  EXPECT_EQ(Plan({.sequences = 1025}).status().code(), Code::kInvalidArgument);
}

TEST_F(EnginePlanning, APartOfAModelIsPlannedForItsLayersAlone) {
  const auto part = [&](LayerRange layers) {
    return PlanEngine(config_, MeasureWeights(file_, config_, layers).value(),
                      {.cpus = 2, .available = 4_GiB, .program = 10_MiB}, {.context = 512}, layers)
        .value();
  };
  const EnginePlan whole = Plan({.context = 512}).value();
  const EnginePlan lower = part({0, 3}), upper = part({3, 8});
  EXPECT_EQ(lower.layers, (LayerRange{0, 3}));
  EXPECT_EQ(whole.layers, (LayerRange{0, 8}));
  EXPECT_EQ(lower.memory.kv_cache * 8, whole.memory.kv_cache * 3);
  EXPECT_EQ(lower.memory.experts + upper.memory.experts, whole.memory.experts);
  EXPECT_EQ(lower.needs.expert_layers, 3u);
  EXPECT_LT(lower.memory.dense, whole.memory.dense);
}

TEST_F(EnginePlanning, WhatCannotBeIsRefusedAndWhatIsUnwiseIsNoted) {
  EXPECT_FALSE(Plan({.threads = 0}).ok());
  EXPECT_FALSE(Plan({.context = 0}).ok());
  EXPECT_THAT(Plan({.threads = 3})->memory.notes, Contains(HasSubstr("3 threads on 2 processors")));
  EXPECT_THAT(Plan({.context = 4096})->memory.notes, Contains(HasSubstr("longer than the 2048")));
}

TEST_F(EnginePlanning, DescriptionHoldsEveryPart) {
  const std::string all = testing::PrintToString(Describe(Plan({}).value()));
  for (const char* part : {"threads", "context", "weights", "KV cache", "workspace", "in all"}) {
    EXPECT_THAT(all, HasSubstr(part));
  }
}

TEST_F(EnginePlanning, ABudgetAboveWhatCanBeHadIsWarnedOf) {
  const auto warnings = [&](Bytes available, Bytes whole = {}) {
    return PlanEngine(config_, weights_,
                      {.cpus = 2,
                       .available = available,
                       .program = 10_MiB,
                       .for_others = 1_MiB,
                       .limit = "/sys/fs/cgroup/lab/box",
                       .whole = whole},
                      {.context = 256, .memory = 1_GiB})
        ->memory.warnings;
  };
  EXPECT_THAT(warnings(8_MiB), testing::ElementsAre(AllOf(HasSubstr("only 9.0 MiB can be had"),
                                                          HasSubstr("(cgroup 'box')"))));
  EXPECT_THAT(warnings(100_MiB), testing::IsEmpty());
  // What the process holds of files is not in the group's limit.
  EXPECT_THAT(warnings(8_MiB, 7_MiB),
              testing::ElementsAre(AllOf(HasSubstr("only 7.0 MiB can be had"),
                                         HasSubstr("(cgroup 'box' has 7.0 MiB)"))));
}

TEST_F(EnginePlanning, AnUnaskedBudgetThatIsTooLittleSaysWhereItComesFrom) {
  const MachineFacts small{.cpus = 2,
                           .available = 9_MiB,
                           .program = 10_MiB,
                           .for_others = 3_MiB,
                           .limit = "/sys/fs/cgroup/box"};
  const auto message = [&](const EngineOptions& options) {
    return PlanEngine(config_, weights_, small, options).status().message();
  };
  EXPECT_THAT(message({}), HasSubstr("cgroup 'box' has 12.0 MiB free, of which 3.0 MiB are "
                                     "left to other programs (--memory takes more)"));
  EXPECT_THAT(message({.memory = 11_MiB}), testing::Not(HasSubstr("other programs")));
}

}  // namespace
}  // namespace troupe
