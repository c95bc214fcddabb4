#include "lab/head_guesses.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/agreeing_head_for_test.h"
#include "testing/temp_folder.h"

namespace troupe {
namespace {

using testing::HasSubstr;

constexpr char kGuessedVocabulary[] = TROUPE_SOURCE_DIR "/models/tiny-qwen2moe-q8_0.gguf";

class HeadGuessesTest : public testing::Test {
 protected:
  std::unique_ptr<Engine> Open(float strength) const {
    const std::string path = folder_.PathOf("m.gguf");
    WriteAgreeingModel(path, "tiny-qwen2moe-head", strength, kGuessedVocabulary);
    return Engine::Open(path, {.threads = 2,
                               .context = 256,
                               .memory = 1_GiB,
                               .drafters = *ParseDraftChoice("heads")})
        .value();
  }
  static HeadGuesses Guess(Engine& engine, std::size_t length, double temperature) {
    HeadGuessOptions options{.tokens = 40, .length = length};
    options.sampling = {.temperature = temperature, .seed = 3};
    return GuessByHead(engine, {{1, 400, 500, 600}, {1, 700, 350}}, options).value();
  }

  const TempFolder folder_;
};

TEST_F(HeadGuessesTest, OfAHeadThatKnowsTheModelAreRightHoweverFarAheadAndAtAnyTemperature) {
  const auto engine = Open(0);
  for (const double temperature : {0.0, 0.8}) {
    const HeadGuesses found = Guess(*engine, 3, temperature);
    EXPECT_EQ(found.tokens, 80u);
    EXPECT_EQ(found.drafts, 78u);  // the first of an answer reads the prompt, and is not timed
    EXPECT_EQ(found.checks, 40u);
    EXPECT_EQ(found.plain, 40u);
    // Behind the last token of an answer nothing is known.
    EXPECT_EQ(found.tried, (std::vector<std::uint64_t>{78, 76, 74}));
    EXPECT_EQ(found.right, found.tried);
    EXPECT_DOUBLE_EQ(found.TokensPerCheck(), 4);
    EXPECT_GT(found.DraftCost(), 0);
    EXPECT_GT(found.CheckCost(), 0);
  }
}

TEST_F(HeadGuessesTest, OfAHeadThatKnowsLittleAreCountedAsFarAsTheyAreRight) {
  const auto engine = Open(0.2f);
  const HeadGuesses found = Guess(*engine, 2, 0.8);
  EXPECT_EQ(found.tried[0], 78u);
  EXPECT_LT(found.right[0], found.tried[0]);
  EXPECT_LE(found.tried[1], found.right[0]);
  EXPECT_LE(found.right[1], found.tried[1]);
  EXPECT_GT(found.TokensPerCheck(), 1);
  EXPECT_LT(found.TokensPerCheck(), 3);
}

TEST_F(HeadGuessesTest, OfAnEngineWithoutAHeadAreRefused) {
  const auto engine = Engine::Open(kGuessedVocabulary, {.context = 64, .memory = 1_GiB}).value();
  const auto found = GuessByHead(*engine, {{1, 400}}, {.tokens = 4, .length = 1});
  EXPECT_EQ(found.status().code(), Code::kInvalidArgument);
  EXPECT_THAT(std::string(found.status().message()), HasSubstr("checks no 1 guesses"));
}

}  // namespace
}  // namespace troupe
