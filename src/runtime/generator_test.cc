#include "runtime/generator.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace troupe {
namespace {

using testing::HasSubstr;

constexpr const char* kGeneratorModel = TROUPE_SOURCE_DIR "/models/tiny-qwen2moe-q8_0.gguf";
constexpr TokenId kDot = 13;  // the model's "\n" is generated early and often

class Generator : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    engine_ = Engine::Open(kGeneratorModel, {.threads = 2, .context = 96}).value().release();
  }
  static void TearDownTestSuite() { delete engine_; }

  static GenerateOptions Greedy(std::size_t tokens) {
    GenerateOptions options;
    options.max_tokens = tokens;
    options.sampler.temperature = 0;
    return options;
  }
  Result<Answer> Run(const GenerateOptions& options, const GenerateHooks& hooks = {}) {
    Session session = Session::Create(*engine_).value();
    const auto prompt = engine_->tokenizer().Encode("The kernel").value();
    return Generate(session, engine_->tokenizer(), prompt, options, hooks);
  }

  static Engine* engine_;
};
Engine* Generator::engine_ = nullptr;

TEST_F(Generator, StreamsExactlyTheTextItReturns) {
  std::string streamed;
  GenerateHooks hooks;
  hooks.on_text = [&](std::string_view piece) {
    streamed += piece;
    return true;
  };
  const Answer result = Run(Greedy(24), hooks).value();
  EXPECT_EQ(result.tokens.size(), 24u);
  EXPECT_EQ(result.finish, FinishReason::kLength);
  EXPECT_EQ(streamed, result.text);
  EXPECT_FALSE(streamed.empty());
}

TEST_F(Generator, CountsTheExpertsItUsed) {
  const Answer result = Run(Greedy(10)).value();
  // Prompt and all generated tokens but the last went through 8 layers with 4 experts each.
  EXPECT_EQ(result.usage.expert_uses, (result.usage.prompt_tokens + 9) * 8 * 4);
}

TEST_F(Generator, StopsBeforeAStopStringAndShowsNothingOfIt) {
  GenerateOptions options = Greedy(64);
  const std::string whole = Run(options)->text;
  ASSERT_THAT(whole, HasSubstr("driver"));
  options.stop = {"driver"};
  const Answer cut = Run(options).value();
  EXPECT_EQ(cut.finish, FinishReason::kStopString);
  EXPECT_EQ(cut.text, whole.substr(0, whole.find("driver")));
}

TEST_F(Generator, StopsWhenTheContextIsFullAndSaysSo) {
  const Answer result = Run(Greedy(1000)).value();
  EXPECT_EQ(result.finish, FinishReason::kContextFull);
  // The last token was chosen from the last position and never fed.
  EXPECT_EQ(result.usage.prompt_tokens + result.tokens.size(), 96u + 1);
}

TEST_F(Generator, StopsWhenTheReaderHasHadEnough) {
  GenerateHooks hooks;
  int pieces = 0;
  hooks.on_text = [&](std::string_view) { return ++pieces < 3; };
  const Answer result = Run(Greedy(64), hooks).value();
  EXPECT_EQ(result.finish, FinishReason::kCancelled);
  EXPECT_EQ(pieces, 3);
}

TEST_F(Generator, StopsBetweenChunksOfAPromptAndGoesOnFromThere) {
  const auto engine =
      Engine::Open(kGeneratorModel, {.threads = 2, .context = 96, .sequences = 2, .chunk = 4})
          .value();
  const Tokenizer& tokenizer = engine->tokenizer();
  const std::vector<TokenId> prompt =
      tokenizer.Encode("The kernel is the driver of the device and the system").value();
  ASSERT_GT(prompt.size(), 8u);
  Session session = Session::Create(*engine).value();
  int asked = 0;
  GenerateHooks hooks;
  hooks.stop = [&] { return ++asked > 2; };
  const Answer cut = Generate(session, tokenizer, prompt, Greedy(8), hooks).value();
  EXPECT_EQ(cut.finish, FinishReason::kCancelled);
  EXPECT_EQ(cut.usage.prompt_tokens, 8u);
  EXPECT_TRUE(cut.tokens.empty());
  EXPECT_EQ(asked, 3);
  ASSERT_EQ(session.tokens().size(), 8u);
  const auto rest = Generate(session, tokenizer, std::span(prompt).subspan(8), Greedy(8)).value();
  Session anew = Session::Create(*engine).value();
  EXPECT_EQ(rest.tokens, Generate(anew, tokenizer, prompt, Greedy(8))->tokens);
}

TEST_F(Generator, StopsBetweenTokensThatHaveNoTextYet) {
  GenerateHooks hooks;
  int asked = 0;
  hooks.stop = [&] { return ++asked > 3; };  // a chunk, and two tokens
  const Answer result = Run(Greedy(64), hooks).value();
  EXPECT_EQ(result.finish, FinishReason::kCancelled);
  EXPECT_EQ(result.tokens.size(), 2u);
}

TEST_F(Generator, ABannedTokenIsNeverChosen) {
  GenerateOptions options = Greedy(40);
  ASSERT_THAT(Run(options)->tokens, testing::Contains(kDot));
  options.sampler.logit_bias[kDot] = -std::numeric_limits<float>::infinity();
  EXPECT_THAT(Run(options)->tokens, testing::Not(testing::Contains(kDot)));
}

TEST_F(Generator, TheSameSeedGivesTheSameTextAndAnotherSeedAnother) {
  GenerateOptions options;
  options.max_tokens = 24;
  options.sampler.seed = 1;
  const auto first = Run(options)->tokens;
  EXPECT_EQ(Run(options)->tokens, first);
  options.sampler.seed = 2;
  EXPECT_NE(Run(options)->tokens, first);
}

TEST_F(Generator, TheFirstTokenIsLaterThanThePrompt) {
  const Answer result = Run(Greedy(4)).value();
  EXPECT_GE(result.usage.first_token_seconds, result.usage.prefill_seconds);
  EXPECT_GT(result.usage.PrefillTokensPerSecond(), 0);
  EXPECT_GT(result.usage.DecodeTokensPerSecond(), 0);
}

TEST_F(Generator, RefusesAnEmptyPromptAndOneThatDoesNotFit) {
  Session session = Session::Create(*engine_).value();
  EXPECT_THAT(Generate(session, engine_->tokenizer(), {}, Greedy(1)).status().message(),
              HasSubstr("prompt is empty"));
  const std::vector<TokenId> longer(97, 5);
  const auto result = Generate(session, engine_->tokenizer(), longer, Greedy(1));
  EXPECT_EQ(result.status().code(), Code::kResourceExhausted);
  EXPECT_THAT(result.status().message(), HasSubstr("97 tokens after 0"));
  EXPECT_TRUE(session.tokens().empty());
}

TEST_F(Generator, ATruncatedSessionAnswersAsIfTheRestHadNeverBeen) {
  const auto& tokenizer = engine_->tokenizer();
  const auto prompt = tokenizer.Encode("The kernel").value();
  Session session = Session::Create(*engine_).value();
  const auto first = Generate(session, tokenizer, prompt, Greedy(12)).value();
  session.Truncate(0);
  EXPECT_EQ(Generate(session, tokenizer, prompt, Greedy(12))->tokens, first.tokens);
}

}  // namespace
}  // namespace troupe
