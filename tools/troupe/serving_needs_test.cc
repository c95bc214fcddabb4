#include "troupe/serving_needs.h"

#include <gtest/gtest.h>

#include "server/request_memory.h"

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
  EXPECT_EQ(more.serving(config, 256).connections - few.serving(config, 256).connections,
            100 * 24_KiB);
  const EngineOptions tls = Planned({.parallel = 3, .connections = 110, .tls = true});
  EXPECT_EQ(tls.serving(config, 256).connections - more.serving(config, 256).connections,
            110 * 72_KiB);
  EXPECT_EQ(more.serving(config, 256).rules, few.serving(config, 256).rules);
  EXPECT_GT(few.serving(config, 256).connections, 24_MiB);
  EXPECT_EQ(few.serving(config, 256).peers, Bytes());
}

TEST(ServingNeeds, HaveRoomForTheLongestBodyWhereItMayBeLongerThanUsual) {
  ModelConfig config;
  config.vocabulary = 1000;
  const auto connections = [&](Bytes longest) {
    return Planned({.longest_body = longest}).serving(config, 256).connections;
  };
  EXPECT_EQ(connections(1_MiB), Planned({}).serving(config, 256).connections);
  EXPECT_EQ(connections(18_MiB) - connections(8_MiB), 56_MiB);
  EXPECT_EQ(HeldOfBodies(8_MiB), 13_MiB);
  EXPECT_EQ(HeldOfBodies(1_MiB), 13_MiB);
  EXPECT_EQ(HeldOfBodies(18_MiB), 49_MiB);
}

TEST(ServingNeeds, HaveRoomForThePromptsOfThoseThatAreAnsweredAndOfAQuarterOfTheOthers) {
  const ModelConfig config;
  const auto prompts = [&](const ServingNeeds& needs, std::uint32_t context) {
    return Planned(needs).serving(config, context).requests - kKeptByRequests;
  };
  EXPECT_EQ(prompts({.parallel = 3, .queue = 40}, 1000), 13 * 4000_B);
  EXPECT_EQ(prompts({.parallel = 3, .queue = 0}, 2000), 3 * 8000_B);
  EXPECT_EQ(prompts({.parallel = 3, .queue = 1'000'000'000}, 1000), 67 * 4000_B);
}

TEST(ServingNeeds, HaveRoomForPromptsOnTheirWayToTheCloudAsLongAsTheContext) {
  const ModelConfig config;
  const auto cloud = [&](std::size_t queue, std::uint32_t context) {
    const auto connections = [&](bool has_cloud) {
      const ServingNeeds needs{.parallel = 3, .queue = queue, .has_cloud = has_cloud};
      return Planned(needs).serving(config, context).connections;
    };
    return connections(true) - connections(false);
  };
  EXPECT_EQ(cloud(0, 4096), 2_MiB + 3 * 128_KiB);
  EXPECT_EQ(cloud(2, 4096), 2_MiB + 5 * 128_KiB);
  EXPECT_EQ(cloud(0, 131'072), 2_MiB + 3 * (96_KiB + 1_MiB));
}

TEST(ServingNeeds, LeaveOutWhatTheProcessHoldsAlready) {
  ModelConfig config;
  config.vocabulary = 1000;
  const Bytes all = Planned({}).serving(config, 256).total();
  EXPECT_EQ(all - Planned({}, 5_MiB).serving(config, 256).total(), 5_MiB);
  const Bytes rules = Planned({}, 1_GiB).serving(config, 256).total();
  EXPECT_GT(rules, Bytes());
  EXPECT_EQ(all - rules, 80_MiB);
}

TEST(ServingNeeds, CountKeysValuesAndRowsOfPromptsThatAreCut) {
  ModelConfig config;
  config.vocabulary = 1000;
  config.layers = 8;
  config.width = 64;
  config.attention.heads = config.attention.kv_heads = 2;
  config.attention.key_dim = config.attention.value_dim = 32;
  const auto cuts = [&config](const ServingNeeds& needs) {
    return Planned(needs).serving(config, 512).cuts;
  };
  EXPECT_EQ(cuts({}), Bytes());
  const Bytes four = cuts({.cuts = {.tokens = 512, .layer = 4}});
  EXPECT_GT(four, cuts({.cuts = {.tokens = 512, .layer = 2}}));
  // The rows of a cloud's prompts wait in memory as well, as they came and decoded.
  EXPECT_GT(cuts({.cut_tokens_of_cloud = 512}), 2 * 512 * 64 * 4_B + 512 * 7 * 2 * 2 * 64_B);
  EXPECT_EQ(cuts({.cuts = {.tokens = 512, .layer = 4}, .fitted_bases = 5_MiB}), four + 5_MiB);
}

}  // namespace
}  // namespace troupe
