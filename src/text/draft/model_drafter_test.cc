// Against a toy model whose logits are a function of all tokens before: what a token fed twice,
// left out or not forgotten would change.
#include "text/draft/model_drafter.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <utility>

#include "base/rng.h"
#include "testing/test_seed.h"

namespace troupe {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;
using enum Drafter::Part;

constexpr std::size_t kToyVocabulary = 24;

std::vector<float> ToyLogits(std::span<const TokenId> tokens) {
  std::uint64_t hash = 1469598103934665603U;
  for (const TokenId token : tokens) {
    hash = (hash ^ static_cast<std::uint64_t>(token)) * 1099511628211U;
  }
  Rng rng(hash);
  std::vector<float> logits(kToyVocabulary);
  for (float& logit : logits) logit = static_cast<float>(8 * rng.Uniform());
  return logits;
}

struct ToyState {
  std::vector<TokenId> tokens;  // that were read
  std::size_t fed = 0;          // tokens, ever
  std::size_t most_fed = 0;     // at a time
  bool fails = false;
};

class ToySequence final : public DraftSequence {
 public:
  ToySequence(ToyState& state, std::size_t most_tokens, std::size_t most_rows)
      : state_(state), most_tokens_(most_tokens), most_rows_(most_rows) {}

  std::span<const TokenId> tokens() const override { return state_.tokens; }
  std::size_t most_tokens() const override { return most_tokens_; }
  std::size_t most_rows() const override { return most_rows_; }
  void Truncate(std::size_t length) override {
    ASSERT_LE(length, state_.tokens.size());
    state_.tokens.resize(length);
  }
  Result<std::span<const float>> Feed(std::span<const TokenId> tokens) override {
    EXPECT_FALSE(tokens.empty());
    EXPECT_LE(tokens.size(), most_rows_);
    if (state_.fails) return DataLoss("an expert cannot be read");
    state_.fed += tokens.size();
    state_.most_fed = std::max(state_.most_fed, tokens.size());
    state_.tokens.insert(state_.tokens.end(), tokens.begin(), tokens.end());
    EXPECT_LE(state_.tokens.size(), most_tokens_);
    logits_ = ToyLogits(state_.tokens);
    return std::span<const float>(logits_);
  }

 private:
  ToyState& state_;
  std::size_t most_tokens_, most_rows_;
  std::vector<float> logits_;
};

class ModelDrafterTest : public testing::Test {
 protected:
  ModelDrafter Make(DraftSampling sampling = {.sampling = {.temperature = 0}},
                    std::size_t most_tokens = 512, std::size_t most_rows = 8) {
    return ModelDrafter(std::make_unique<ToySequence>(toy_, most_tokens, most_rows),
                        std::move(sampling), scratch_);
  }

  // What a larger model that is just the toy would answer, token by token.
  std::vector<TokenId> Answer(std::vector<TokenId> text, std::size_t tokens,
                              const Sampling& sampling) {
    Sampler sampler = Sampler::Make(sampling).value();
    for (const TokenId token : text) sampler.Accept(token);
    std::vector<TokenId> answer;
    while (answer.size() < tokens) {
      const TokenId next = sampler.Sample(ToyLogits(text), text.size(), scratch_).value();
      sampler.Accept(next);
      text.push_back(next);
      answer.push_back(next);
    }
    return answer;
  }

  static void Append(ModelDrafter& drafter, std::vector<TokenId> tokens, Drafter::Part part) {
    drafter.Append(tokens, part);
  }

  ToyState toy_;
  SamplerScratch scratch_;
};

// The draw of a position is the answer's own, so a model that guesses for itself is always right.
TEST_F(ModelDrafterTest, GuessesWhatTheSameModelAnswersAtAnyTemperature) {
  Rng rng(TestSeed());
  for (int round = 0; round < 50; ++round) {
    Sampling sampling{.temperature = round % 3 == 0 ? 0 : 2 * rng.Uniform(), .seed = rng.Next()};
    if (round % 2 == 0) sampling.repetition_penalty = 1 + rng.Uniform();
    if (round % 4 == 0) sampling.frequency_penalty = rng.Uniform();
    if (round % 5 == 0) sampling.top_k = 5;
    toy_ = {};
    ModelDrafter drafter = Make({.sampling = sampling});
    Append(drafter, {3, 1, 2}, kPrompt);
    EXPECT_EQ(drafter.Propose(9).tokens, Answer({3, 1, 2}, 9, sampling)) << round;
  }
}

TEST_F(ModelDrafterTest, WhatIsDrawnIsMeasuredApartFromWhatIsLikeliest) {
  ModelDrafter likeliest = Make({.sampling = {.temperature = 0}});
  ModelDrafter drawn = Make({.sampling = {.temperature = 0.8}});
  EXPECT_GT(likeliest.evidence(), drawn.evidence());
  for (ModelDrafter* drafter : {&likeliest, &drawn}) {
    Append(*drafter, {3, 1, 2}, kPrompt);
    EXPECT_EQ(drafter->Propose(2).evidence, drafter->evidence());
  }
}

TEST_F(ModelDrafterTest, ReadsWhatIsNewAndNothingTwice) {
  ModelDrafter drafter = Make();
  Append(drafter, {3, 1, 2}, kPrompt);
  const std::vector<TokenId> answer = Answer({3, 1, 2}, 9, {.temperature = 0});
  ASSERT_THAT(drafter.Propose(4).tokens, SizeIs(4));
  EXPECT_EQ(toy_.fed, 3 + 3u) << "what is guessed last need not be read";
  drafter.Append(std::span(answer).first(5), kAnswer);  // all were right, and one came with them
  EXPECT_EQ(drafter.Behind(), 2u);
  const std::vector<TokenId> next = drafter.Propose(3).tokens;
  EXPECT_TRUE(std::ranges::equal(next, std::span(answer).subspan(5, 3)));
  EXPECT_EQ(toy_.fed, 3 + 3 + 2 + 2u);
}

TEST_F(ModelDrafterTest, ForgetsGuessesThatWereWrong) {
  ModelDrafter drafter = Make();
  Append(drafter, {3, 1, 2}, kPrompt);
  const std::vector<TokenId> guessed = drafter.Propose(4).tokens;
  const TokenId other = guessed[1] == 5 ? 6 : 5;
  Append(drafter, {guessed[0], other}, kAnswer);
  EXPECT_EQ(drafter.Behind(), 1u);
  EXPECT_EQ(drafter.Propose(4).tokens, Answer({3, 1, 2, guessed[0], other}, 4, {.temperature = 0}));
  EXPECT_TRUE(std::ranges::equal(std::span(toy_.tokens).first(5),
                                 std::vector<TokenId>{3, 1, 2, guessed[0], other}));
}

TEST_F(ModelDrafterTest, KeepsWhatAnotherTextHasLeftAsFarAsItIsTheSame) {
  toy_.tokens = {3, 1, 9, 9, 9};
  ModelDrafter drafter = Make();
  Append(drafter, {3, 1, 2}, kPrompt);
  EXPECT_EQ(drafter.Behind(), 1u);
  EXPECT_EQ(drafter.Propose(4).tokens, Answer({3, 1, 2}, 4, {.temperature = 0}));
  EXPECT_EQ(toy_.fed, 1 + 3u);
}

// Somebody has asked the very same before: what follows the last token must be computed again.
TEST_F(ModelDrafterTest, ReadsTheLastTokenOfATextThatItKnowsWhole) {
  toy_.tokens = {3, 1, 2, 7};
  ModelDrafter drafter = Make();
  Append(drafter, {3, 1, 2}, kPrompt);
  EXPECT_EQ(drafter.Propose(1).tokens, Answer({3, 1, 2}, 1, {.temperature = 0}));
  EXPECT_EQ(toy_.fed, 1u);
}

TEST_F(ModelDrafterTest, CatchesUpInParts) {
  ModelDrafter drafter = Make();
  const std::vector<TokenId> prompt(20, 4);
  Append(drafter, prompt, kPrompt);
  drafter.Read();
  EXPECT_EQ(drafter.Behind(), 12u);
  drafter.Read();
  drafter.Read();
  EXPECT_EQ(drafter.Behind(), 1u) << "the last one is left for the draft";
  drafter.Read();
  EXPECT_EQ(toy_.fed, 19u);
  EXPECT_EQ(drafter.Propose(2).tokens, Answer(prompt, 2, {.temperature = 0}));
  EXPECT_EQ(toy_.most_fed, 8u);
}

TEST_F(ModelDrafterTest, GuessesNoFurtherThanThereIsRoom) {
  ModelDrafter drafter = Make({.sampling = {.temperature = 0}}, 5);
  EXPECT_EQ(drafter.Most(), 0u) << "nothing was said yet";
  EXPECT_THAT(drafter.Propose(4).tokens, IsEmpty());
  Append(drafter, {3, 1, 2}, kPrompt);
  EXPECT_EQ(drafter.Most(), 3u);
  EXPECT_THAT(drafter.Propose(9).tokens, SizeIs(3));
  Append(drafter, {7, 7, 7}, kAnswer);
  EXPECT_EQ(drafter.Most(), 0u);
  EXPECT_THAT(drafter.Propose(1).tokens, IsEmpty());
}

TEST_F(ModelDrafterTest, SaysNothingOnceItsModelHasFailed) {
  ModelDrafter drafter = Make();
  Append(drafter, {3, 1, 2}, kPrompt);
  toy_.fails = true;
  EXPECT_THAT(drafter.Propose(4).tokens, IsEmpty());
  toy_.fails = false;
  EXPECT_EQ(drafter.Most(), 0u);
  EXPECT_THAT(drafter.Propose(4).tokens, IsEmpty());
}

TEST_F(ModelDrafterTest, StopsBeforeATokenThatEndsTheAnswer) {
  const std::vector<TokenId> answer = Answer({3, 1, 2}, 3, {.temperature = 0});
  ModelDrafter drafter = Make(
      {.sampling = {.temperature = 0}, .ends = [&](TokenId token) { return token == answer[2]; }});
  Append(drafter, {3, 1, 2}, kPrompt);
  EXPECT_THAT(drafter.Propose(9).tokens, ElementsAre(answer[0], answer[1]));
}

// Whatever was asked before and however it went on, the next draft is that of a drafter that knows
// nothing but the text.
TEST_F(ModelDrafterTest, GuessesAfterAnythingAsFromTheTextAlone) {
  const std::uint64_t seed = TestSeed();
  for (std::uint64_t round = 0; round < 30; ++round) {
    Rng rng(seed + round);
    const Sampling sampling{.temperature = rng.Uniform(),
                            .repetition_penalty = 1 + 0.5 * rng.Uniform(),
                            .seed = rng.Next()};
    toy_ = {};
    ModelDrafter drafter = Make({.sampling = sampling}, 4096, 1 + rng.Below(9));
    std::vector<TokenId> text;
    for (int step = 0; step < 30; ++step) {
      std::vector<TokenId> more(1 + rng.Below(12));
      for (TokenId& token : more) token = static_cast<TokenId>(rng.Below(kToyVocabulary));
      drafter.Append(more, text.empty() ? kPrompt : kAnswer);
      text.insert(text.end(), more.begin(), more.end());
      if (rng.Below(3) == 0) drafter.Read();
      if (rng.Below(3) == 0) continue;
      const std::vector<TokenId> draft = drafter.Propose(1 + rng.Below(6)).tokens;
      ASSERT_EQ(draft, Answer(text, draft.size(), sampling)) << round << " " << step;
      const auto right = static_cast<std::ptrdiff_t>(rng.Below(draft.size() + 1));
      drafter.Append(std::span(draft).first(static_cast<std::size_t>(right)), kAnswer);
      text.insert(text.end(), draft.begin(), draft.begin() + right);
    }
  }
}

}  // namespace
}  // namespace troupe
