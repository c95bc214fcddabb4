#include "troupe/serving_needs.h"

#include <gtest/gtest.h>

namespace troupe {
namespace {

EngineOptions Planned(const ServingNeeds& needs, Bytes held = Bytes()) {
  EngineFlags engine;
  PlanForServing(needs, held, engine);
  return engine.options();
}

TEST(ServingNeeds, AreASequenceForEachRequestAndMemoryForEachConnection) {
  ModelConfig config;
  config.vocabulary = 1000;
  const EngineOptions few = Planned({.parallel = 3, .connections = 10}),
                      more = Planned({.parallel = 3, .connections = 110});
  EXPECT_EQ(few.sequences, 3u);
  EXPECT_EQ(more.serving(config).connections - few.serving(config).connections, 100 * 24_KiB);
  EXPECT_EQ(more.serving(config).rules, few.serving(config).rules);
  EXPECT_GT(few.serving(config).connections, 24_MiB);
  EXPECT_EQ(few.serving(config).peers, Bytes());
}

TEST(ServingNeeds, LeaveOutWhatTheProcessHoldsAlready) {
  ModelConfig config;
  config.vocabulary = 1000;
  const Bytes all = Planned({}).serving(config).total();
  EXPECT_EQ(all - Planned({}, 5_MiB).serving(config).total(), 5_MiB);
  const Bytes rules = Planned({}, 1_GiB).serving(config).total();
  EXPECT_GT(rules, Bytes());
  EXPECT_EQ(all - rules, 68_MiB);
}

}  // namespace
}  // namespace troupe
