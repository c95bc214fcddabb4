#include "lab/evaluation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <iterator>
#include <vector>

#include "testing/temp_folder.h"

namespace troupe {
namespace {

using testing::HasSubstr;

constexpr const char* kModel = TROUPE_SOURCE_DIR "/models/tiny-qwen2moe-q8_0.gguf";

class EvaluationOfTheTinyModel : public testing::Test {
 protected:
  void SetUp() override {
    engine_ = Engine::Open(kModel, {.threads = 1, .context = 128}).value();
    text_ = engine_->tokenizer()
                .Encode(
                    "The kernel is the part of the system that talks to the devices. It is "
                    "loaded at boot and stays in memory.",
                    {.add_special = false})
                .value();
  }
  Result<Evaluation> Run(const EvaluationOptions& options, const EvaluationHooks& hooks = {}) {
    Session session = Session::Create(*engine_).value();
    return Evaluate(session, text_, options, hooks);
  }

  std::unique_ptr<Engine> engine_;
  std::vector<TokenId> text_;
  TempFolder folder_;
};

TEST_F(EvaluationOfTheTinyModel, ScoresEveryTokenAfterTheBeginning) {
  const Evaluation whole = Run({.window = 128, .begin = 1}).value();
  EXPECT_EQ(whole.tokens, text_.size());
  EXPECT_EQ(whole.fed, text_.size() + 1);
  EXPECT_GT(whole.nll.mean, 1.0);
  EXPECT_LT(whole.nll.mean, std::log(4096.0));  // better than knowing nothing
  EXPECT_LT(whole.nll.least, whole.nll.mean);
  EXPECT_GT(whole.nll.most, whole.nll.mean);
  EXPECT_GE(whole.blocks, 8u);  // parts of the one window
  EXPECT_GT(whole.pass_seconds, 0.0);
  EXPECT_NEAR(whole.Perplexity(), std::exp(whole.nll.mean), 1e-9);
  const Evaluation unbegun = Run({.window = 128}).value();
  EXPECT_EQ(unbegun.tokens, text_.size() - 1);
}

TEST_F(EvaluationOfTheTinyModel, WindowsForgetWhatWasBeforeThem) {
  const Evaluation whole = Run({.window = 128, .begin = 1}).value();
  const Evaluation cut = Run({.window = 9, .begin = 1}).value();
  EXPECT_EQ(cut.tokens, text_.size());
  EXPECT_GT(cut.nll.mean, whole.nll.mean);
}

TEST_F(EvaluationOfTheTinyModel, HowManyTokensGoTogetherChangesNoByteOfTheLogits) {
  std::vector<std::string> saved;
  for (const std::optional<std::size_t> together :
       {std::optional<std::size_t>(), {1}, {3}, {7}, {1000}}) {
    const std::string path = folder_.PathOf("together.logits");
    LogitsWriter writer = LogitsWriter::Create(path, engine_->config().vocabulary).value();
    EvaluationHooks save;
    save.save = &writer;
    ASSERT_TRUE(Run({.window = 16, .together = together, .warm_up = 4, .begin = 1}, save).ok());
    ASSERT_TRUE(writer.Finish().ok());
    std::ifstream file(path, std::ios::binary);
    saved.emplace_back(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
    EXPECT_GT(saved.back().size(), engine_->config().vocabulary * sizeof(float));
    EXPECT_TRUE(saved.back() == saved.front()) << together.value_or(0) << " together";
  }
}

TEST_F(EvaluationOfTheTinyModel, NoMoreTokensThanAskedForGoTogether) {
  struct Passes final : RouteObserver {
    void PassBegins(const PassFacts& pass) override {
      most = std::max<std::size_t>(most, pass.rows());
      ++count;
    }
    void Routed(std::uint32_t, std::span<const ExpertChoice>, std::span<const float>) override {}
    void PassEnded() override {}
    std::size_t most = 0, count = 0;
  } passes;
  engine_->transformer().set_route_observer(&passes);
  ASSERT_TRUE(Run({.window = 16, .together = 3}).ok());
  EXPECT_EQ(passes.most, 3u);
  EXPECT_GE(passes.count, text_.size() / 3);
  EXPECT_THAT(Run({.window = 16, .together = 0}).status().message(), HasSubstr("at least 1"));
}

TEST_F(EvaluationOfTheTinyModel, WarmUpTokensAreReadButNotScored) {
  const Evaluation warm = Run({.window = 16, .warm_up = 6, .begin = 1}).value();
  EXPECT_LT(warm.tokens, text_.size());
  EXPECT_GT(warm.tokens, 0u);
}

TEST_F(EvaluationOfTheTinyModel, ComparedWithItselfNothingDiffers) {
  const std::string path = folder_.PathOf("self.logits");
  LogitsWriter writer = LogitsWriter::Create(path, engine_->config().vocabulary).value();
  EvaluationHooks save;
  save.save = &writer;
  ASSERT_TRUE(Run({.window = 32, .begin = 1}, save).ok());
  ASSERT_TRUE(writer.Finish().ok());
  const LogitsReader reader = LogitsReader::Open(path).value();
  EvaluationHooks compare;
  compare.reference = &reader;
  const Evaluation same = Run({.window = 32, .begin = 1}, compare).value();
  ASSERT_TRUE(same.comparison.has_value());
  EXPECT_EQ(same.comparison->kl, (Interval{.mean = 0, .least = 0, .most = 0}));
  EXPECT_EQ(same.comparison->perplexity_ratio, (Interval{.mean = 1, .least = 1, .most = 1}));
  EXPECT_EQ(same.comparison->top1_agreement, (Interval{.mean = 1, .least = 1, .most = 1}));
  // Other windows see other contexts: then it does differ.
  const Evaluation other = Run({.window = 16, .begin = 1}, compare).value();
  EXPECT_GT(other.comparison->kl.mean, 0.0);
  EXPECT_LT(other.comparison->top1_agreement.mean, 1.0);
  // Both runs score the same tokens, so that the mean difference is the difference of the means.
  EXPECT_NEAR(other.comparison->perplexity_ratio.mean, other.Perplexity() / same.Perplexity(),
              1e-9);
  EXPECT_GT(other.comparison->perplexity_ratio.mean, other.comparison->perplexity_ratio.least);
}

TEST_F(EvaluationOfTheTinyModel, AWindowIsABlockWhereThereAreEnough) {
  EXPECT_EQ(Run({.window = 4, .begin = 1}).value().blocks, (text_.size() + 2) / 3);
}

TEST_F(EvaluationOfTheTinyModel, AReferenceOfAnotherTextIsRefused) {
  const std::string path = folder_.PathOf("other.logits");
  LogitsWriter writer = LogitsWriter::Create(path, engine_->config().vocabulary).value();
  ASSERT_TRUE(writer.Append(7, std::vector<float>(engine_->config().vocabulary)).ok());
  ASSERT_TRUE(writer.Finish().ok());
  const LogitsReader reader = LogitsReader::Open(path).value();
  EvaluationHooks hooks;
  hooks.reference = &reader;
  EXPECT_THAT(Run({.window = 32, .begin = 1}, hooks).status().message(),
              HasSubstr("expected logits of the same text"));
}

TEST_F(EvaluationOfTheTinyModel, ImpossibleWindowsAreRefused) {
  EXPECT_THAT(Run({.window = 1}).status().message(), HasSubstr("expected 2 to the context's 128"));
  EXPECT_THAT(Run({.window = 129}).status().message(), HasSubstr("expected 2 to"));
  EXPECT_THAT(Run({.window = 16, .warm_up = 15}).status().message(), HasSubstr("leaves none"));
  text_.resize(1);
  EXPECT_THAT(Run({.window = 16}).status().message(), HasSubstr("too few to score one"));
}

}  // namespace
}  // namespace troupe
