#include "runtime/engine_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "gguf/reader.h"

namespace troupe {
namespace {

using testing::Contains;
using testing::HasSubstr;

class EnginePlanning : public testing::Test {
 protected:
  void SetUp() override {
    const GgufModel file =
        GgufModel::Open(TROUPE_SOURCE_DIR "/models/tiny-qwen2moe-q8_0.gguf").value();
    config_ = ReadModelConfig(file.metadata()).value();
    weights_ = file.tensor_bytes();
  }
  Result<EnginePlan> Plan(const EngineOptions& options, std::uint32_t cpus = 2) const {
    return PlanEngine(config_, weights_, cpus, options);
  }
  ModelConfig config_;
  Bytes weights_;
};

TEST_F(EnginePlanning, TakesAllProcessorsAndTheTrainedContext) {
  const EnginePlan plan = Plan({}, 6).value();
  EXPECT_EQ(plan.threads, 6u);
  EXPECT_EQ(plan.context, 2048u);
  EXPECT_EQ(plan.total(), plan.weights + plan.kv_cache + plan.workspace);
  EXPECT_EQ(plan, Plan({}, 6).value());
}

TEST_F(EnginePlanning, AnUnaskedContextIsNoLongerThanTheDefault) {
  config_.trained_context = 100'000;
  const EnginePlan plan = Plan({}).value();
  EXPECT_EQ(plan.context, EngineOptions::kDefaultContext);
  EXPECT_THAT(plan.notes, Contains(HasSubstr("--ctx asks for more")));
  EXPECT_EQ(Plan({.context = 50'000})->context, 50'000u);
}

TEST_F(EnginePlanning, TheKvCacheGrowsWithTheContextAndShrinksWithItsType) {
  const Bytes small = Plan({.context = 512})->kv_cache;
  const Bytes large = Plan({.context = 1024})->kv_cache;
  EXPECT_EQ(large, 2 * small);
  const Bytes q8 = Plan({.context = 1024, .kv_type = KvType::kQ8_0})->kv_cache;
  EXPECT_LT(q8.count(), large.count() * 0.55);
}

TEST_F(EnginePlanning, AModelThatNeedsMoreThanTheMemoryIsRefusedWithTheSum) {
  const auto plan = Plan({.memory = 16_MiB});
  EXPECT_EQ(plan.status().code(), Code::kResourceExhausted);
  EXPECT_THAT(plan.status().message(), HasSubstr("16.0 MiB of memory are too little: weights 8."));
  EXPECT_EQ(Plan({.memory = 1_GiB})->budget, 1_GiB);
}

TEST_F(EnginePlanning, WhatCannotBeIsRefusedAndWhatIsUnwiseIsNoted) {
  EXPECT_FALSE(Plan({.threads = 0}).ok());
  EXPECT_FALSE(Plan({.context = 0}).ok());
  EXPECT_THAT(Plan({.threads = 3})->notes, Contains(HasSubstr("3 threads on 2 processors")));
  EXPECT_THAT(Plan({.context = 4096})->notes, Contains(HasSubstr("longer than the 2048")));
}

TEST_F(EnginePlanning, DescriptionHoldsEveryPart) {
  const std::string all = testing::PrintToString(Describe(Plan({}).value()));
  for (const char* part : {"threads", "context", "weights", "KV cache", "workspace", "in all"}) {
    EXPECT_THAT(all, HasSubstr(part));
  }
}

}  // namespace
}  // namespace troupe
