// An engine with an encoder-decoder, whose layers with experts have others between them, or are all
// on one side.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "model/switch_model_for_test.h"
#include "runtime/answer_digest.h"
#include "runtime/engine_runner.h"
#include "runtime/session.h"
#include "testing/temp_folder.h"
#include "testing/test_seed.h"

namespace troupe {
namespace {

class EncoderEngine : public testing::Test {
 protected:
  std::unique_ptr<Engine> Open(LayerRange sparse, std::optional<std::uint32_t> slots = {}) {
    const std::string path = folder_.PathOf("m.gguf");
    TinySwitch::Write(path, 0, sparse);
    EngineOptions options{.threads = 2, .context = 96};
    options.offload.slots = slots;
    return Engine::Open(path, options).value();
  }

  // Of a prompt of both halves, and of some tokens behind it, one by one.
  static std::vector<std::vector<float>> Logits(Engine& engine, TokenIds prompt, TokenIds answer) {
    std::vector<std::vector<float>> all;
    Session session = Session::Create(engine).value();
    const auto keep = [&] { all.emplace_back(session.logits().begin(), session.logits().end()); };
    EXPECT_TRUE(session.FeedPrompt(prompt).ok());
    keep();
    for (std::size_t i = 0; i < answer.size(); ++i) {
      EXPECT_TRUE(session.Feed(answer.subspan(i, 1)).ok());
      keep();
    }
    return all;
  }

  const TempFolder folder_;
  Rng rng_{TestSeed()};
};

TEST_F(EncoderEngine, AHalfWithoutExpertsReadsNoneAhead) {
  std::vector<TokenId> prompt = TinySwitch::Prompt(32, rng_);
  for (TokenId token = 3; token < 35; ++token) prompt.push_back(token);  // rows of the decoder
  const std::vector<TokenId> answer = {7, 30, 12};
  const LayerRange all{0, TinySwitch::kLayers};
  for (const LayerRange sparse :
       {LayerRange{0, TinySwitch::kEncoder}, LayerRange{TinySwitch::kEncoder, all.end}, all}) {
    const auto expected = Logits(*Open(sparse), prompt, answer);
    const auto offloaded = Open(sparse, 3);
    EXPECT_EQ(Logits(*offloaded, prompt, answer), expected);
    EXPECT_GT(offloaded->expert_usage().reads, 0u);
    EXPECT_GT(offloaded->offload_report()->prefetch->stats.loads, 0u)
        << "the half that has experts does";
  }
}

TEST_F(EncoderEngine, TheMapOfExpertsHasTheLayersWithExpertsUnderTheirNumbers) {
  const auto engine = Open({0, TinySwitch::kLayers});
  EngineRunner runner(*engine);
  runner.LookAtExperts();  // counting begins
  const std::vector<TokenId> prompt = TinySwitch::Prompt(6, rng_);
  const SequenceId sequence = runner.Reserve({.prompt = prompt, .tokens = 10})->id;
  const PassRows rows{
      .sequence = sequence, .request = 7, .tokens = prompt, .phase = Phase::kPrompt};
  ASSERT_TRUE(runner.Run({&rows, 1}).ok());
  const ExpertMap map = runner.LookAtExperts();
  EXPECT_EQ(map.layers, 2u);
  EXPECT_EQ(map.layer_numbers, (std::vector<std::uint32_t>{1, 3}));
  EXPECT_EQ(map.places, std::vector(2 * TinySwitch::kExperts, ExpertPlace::kInMemory));
  ASSERT_EQ(map.heat.size(), map.places.size());
  // Six tokens went through the encoder's layer, and one through the decoder's.
  for (const auto& [first, tokens] : {std::pair(0u, 6), std::pair(TinySwitch::kExperts, 1)}) {
    float sum = 0;
    for (const float share : std::span(map.heat).subspan(first, TinySwitch::kExperts)) sum += share;
    EXPECT_NEAR(sum, 1 - std::exp(-tokens / RouteHeat::kMemory), 1e-5);
  }
  runner.EndRequest(7);
  runner.Release(sequence);
}

TEST_F(EncoderEngine, SaysWhatAPromptIsToHave) {
  const auto engine = Open({0, TinySwitch::kLayers});
  const RunnerLimits limits = EngineRunner(*engine).limits();
  EXPECT_EQ(limits.decoder_start, TinySwitch::kStart);
  EXPECT_EQ(limits.longest_encoded, LongestWholePrompt(engine->plan()));
}

TEST_F(EncoderEngine, HasNoDigestByWhichAnEndAndACloudKnowEachOther) {
  const auto engine = Open({0, TinySwitch::kLayers});
  const Status refused = AnswerDigest(*engine).status();
  EXPECT_EQ(refused.code(), Code::kUnimplemented);
  EXPECT_THAT(refused.message(), testing::HasSubstr("an encoder-decoder"));
}

}  // namespace
}  // namespace troupe
