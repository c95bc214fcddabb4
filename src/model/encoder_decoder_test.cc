// An encoder-decoder's passes: prompts whole, answers token by token, sequences beside each other.
// That its numbers are the right ones is tests/switch_test.py's.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>

#include "model/switch_model_for_test.h"
#include "model/tiny_model_for_test.h"
#include "testing/test_seed.h"

namespace troupe {
namespace {

using testing::HasSubstr;
using TokenList = std::vector<std::int32_t>;

class EncoderDecoder : public testing::Test {
 protected:
  // Logits behind the prompt, and behind each token of the answer.
  static std::vector<LogitRow> Answer(ModelPart& part, const TokenList& prompt,
                                      const TokenList& answer) {
    KvSequence sequence = part.NewSequence(prompt.size() + answer.size());
    EXPECT_TRUE(part.Forward({.cache = &sequence, .tokens = prompt}).ok());
    std::vector<LogitRow> all = part.Logits(prompt.size() - 1, 1);
    for (const std::int32_t& token : answer) {
      EXPECT_TRUE(part.Forward({.cache = &sequence, .tokens = {&token, 1}}).ok());
      all.push_back(part.Logits(0, 1).front());
    }
    EXPECT_EQ(sequence.length(), prompt.size() + answer.size());
    EXPECT_EQ(sequence.encoded(), prompt.size() - 1);
    return all;
  }

  const TinyModel model_{[](const std::string& path) { TinySwitch::Write(path); }};
  Rng rng_{TestSeed()};
};

TEST_F(EncoderDecoder, AnAnswersRowsHaveTheSameBytesOneByOneAndTogether) {
  ModelPart part(model_, model_.AllLayers());
  const TokenList prompt = TinySwitch::Prompt(17, rng_), answer = {3, 9, 4, 44, 9};
  const std::vector<LogitRow> alone = Answer(part, prompt, answer);
  TokenList all = prompt;
  all.insert(all.end(), answer.begin(), answer.end());
  KvSequence sequence = part.NewSequence(all.size());
  ASSERT_TRUE(part.Forward({.cache = &sequence, .tokens = all}).ok());
  EXPECT_EQ(part.Logits(prompt.size() - 1, 6), alone);
}

TEST_F(EncoderDecoder, PromptsAndAnswersOfOnePassGetTheBytesTheyGetAlone) {
  const TokenList first = TinySwitch::Prompt(9, rng_), second = TinySwitch::Prompt(14, rng_);
  const TokenList third = TinySwitch::Prompt(1, rng_), answer = {7, 30, 12};
  for (const std::size_t threads : {1, 3}) {
    ModelPart part(model_, model_.AllLayers(), {.sequences = 3, .threads = threads});
    const auto alone = Answer(part, first, answer), other = Answer(part, second, answer);
    const auto last = Answer(part, third, answer);
    KvSequence a = part.NewSequence(12), b = part.NewSequence(16), c = part.NewSequence(4);
    ASSERT_TRUE(part.Forward({.cache = &a, .tokens = first}).ok());
    const RowGroup batch[] = {{.cache = &b, .tokens = second, .sequence = 1},
                              {.cache = &a, .tokens = std::span(answer).first(2), .sequence = 0},
                              {.cache = &c, .tokens = third, .sequence = 2}};
    ASSERT_TRUE(part.Forward(batch).ok());
    EXPECT_EQ(part.Logits(14, 1).front(), other[0]);
    EXPECT_EQ(part.Logits(15, 2), std::vector(alone.begin() + 1, alone.begin() + 3));
    EXPECT_EQ(part.Logits(18, 1).front(), last[0]);
    const RowGroup next[] = {{.cache = &c, .tokens = std::span(answer).first(1), .sequence = 2},
                             {.cache = &b, .tokens = std::span(answer).first(1), .sequence = 1}};
    ASSERT_TRUE(part.Forward(next).ok());
    EXPECT_EQ(part.Logits(0, 1).front(), last[1]);
    EXPECT_EQ(part.Logits(1, 1).front(), other[1]);
  }
}

TEST_F(EncoderDecoder, TheLastTokenOfAPromptMattersToWhatTheFirstOnesBecome) {
  ModelPart part(model_, model_.AllLayers());
  TokenList prompt = TinySwitch::Prompt(20, rng_);
  const LogitRow before = Answer(part, prompt, {}).front();
  prompt[19] = prompt[19] % 40 + 2;
  EXPECT_NE(Answer(part, prompt, {}).front(), before);
}

TEST_F(EncoderDecoder, AnAnswerGoesBackAndAPartOfAPromptIsNoPrompt) {
  ModelPart part(model_, model_.AllLayers());
  const TokenList prompt = TinySwitch::Prompt(6, rng_), answer = {5, 6, 7};
  const auto alone = Answer(part, prompt, answer);
  KvSequence sequence = part.NewSequence(16);
  ASSERT_TRUE(part.Forward({.cache = &sequence, .tokens = prompt}).ok());
  const TokenList wrong = {41, 42, 43};
  ASSERT_TRUE(part.Forward({.cache = &sequence, .tokens = wrong}).ok());
  EXPECT_EQ(sequence.Truncate(prompt.size()), prompt.size());
  ASSERT_TRUE(part.Forward({.cache = &sequence, .tokens = answer}).ok());
  EXPECT_EQ(part.Logits(0, 3), std::vector(alone.begin() + 1, alone.end()));
  EXPECT_EQ(sequence.Truncate(3), 0u);
  EXPECT_EQ(sequence.encoded(), 0u);
  ASSERT_TRUE(part.Forward({.cache = &sequence, .tokens = prompt}).ok());
  EXPECT_EQ(part.Logits(6, 1).front(), alone[0]);
}

TEST_F(EncoderDecoder, APromptWithoutBothHalvesIsRefused) {
  ModelPart part(model_, model_.AllLayers());
  KvSequence sequence = part.NewSequence(16);
  for (const TokenList& bad : {TokenList{4, 5, 6}, TokenList{TinySwitch::kStart, 4}}) {
    const Status refused = part.Forward({.cache = &sequence, .tokens = bad});
    EXPECT_EQ(refused.code(), Code::kInvalidArgument);
    EXPECT_THAT(refused.message(), HasSubstr("the token 0 that the decoder begins with"));
    EXPECT_EQ(sequence.length(), 0u);
  }
}

// Fails at a layer, as a source whose file is damaged does.
class BrokenAt final : public ExpertSource {
 public:
  BrokenAt(const ModelWeights& weights, std::uint32_t layer) : resident_(weights), layer_(layer) {}
  void OnPassBegins(const PassFacts& pass) override { passes_.push_back(pass); }
  void Ask(const ExpertBatch& batch) override {
    fails_ = batch.layer == layer_;
    resident_.Ask(batch);
  }
  Result<std::span<const ReadyExpert>> Take(bool wait) override {
    if (fails_) return DataLoss("damaged");
    return resident_.Take(wait);
  }
  ExpertUsage usage() const override { return {}; }
  const std::vector<PassFacts>& passes() const { return passes_; }

 private:
  ResidentExperts resident_;
  std::uint32_t layer_;
  bool fails_ = false;
  std::vector<PassFacts> passes_;
};

TEST_F(EncoderDecoder, APassThatFailsInEitherHalfLeavesEverySequenceAsItWas) {
  ModelPart part(model_, model_.AllLayers(), {.sequences = 2});
  const TokenList prompt = TinySwitch::Prompt(5, rng_), other = TinySwitch::Prompt(7, rng_);
  const auto alone = Answer(part, prompt, {9}), fresh = Answer(part, other, {});
  KvSequence a = part.NewSequence(8), b = part.NewSequence(8);
  ASSERT_TRUE(part.Forward({.cache = &a, .tokens = prompt}).ok());
  const TokenList next = {9};
  const RowGroup batch[] = {{.cache = &a, .tokens = next}, {.cache = &b, .tokens = other}};
  ResidentExperts sound(part.weights());
  for (const std::uint32_t layer : {1, 3}) {
    BrokenAt broken(part.weights(), layer);
    part.Use(broken);
    EXPECT_EQ(part.Forward(batch).code(), Code::kDataLoss);
    EXPECT_EQ(a.length(), 6u);
    EXPECT_EQ(b.length(), 0u);
    EXPECT_EQ(b.encoded(), 0u);
    part.Use(sound);
  }
  ASSERT_TRUE(part.Forward(batch).ok());
  EXPECT_EQ(part.Logits(0, 1).front(), alone[1]);
  EXPECT_EQ(part.Logits(8, 1).front(), fresh[0]);
}

TEST_F(EncoderDecoder, ACancelledPromptEndsNoPassThatHasWantedDecodes) {
  ModelPart part(model_, model_.AllLayers(), {.sequences = 2});
  const TokenList prompt = TinySwitch::Prompt(5, rng_), other = TinySwitch::Prompt(7, rng_);
  const auto alone = Answer(part, prompt, {9}), fresh = Answer(part, other, {});
  KvSequence a = part.NewSequence(8), b = part.NewSequence(8);
  ASSERT_TRUE(part.Forward({.cache = &a, .tokens = prompt}).ok());
  const TokenList next = {9};
  std::atomic<bool> unwanted = true, wanted = false;
  RowGroup batch[] = {{.cache = &a, .tokens = next, .unwanted = &unwanted},
                      {.cache = &b, .tokens = other, .unwanted = &unwanted}};
  EXPECT_EQ(part.Forward(batch).code(), Code::kCancelled);
  EXPECT_EQ(a.length(), 6u);
  EXPECT_EQ(b.encoded(), 0u);
  batch[0].unwanted = &wanted;
  const Status run = part.Forward(batch);
  ASSERT_TRUE(run.ok()) << run.message();
  EXPECT_EQ(part.Logits(0, 1).front(), alone[1]);
  EXPECT_EQ(part.Logits(8, 1).front(), fresh[0]);
}

TEST_F(EncoderDecoder, EachHalfIsAPassOfItsOwnRowsAndLayers) {
  ModelPart part(model_, model_.AllLayers(), {.sequences = 2});
  const TokenList prompt = TinySwitch::Prompt(5, rng_), other = TinySwitch::Prompt(7, rng_);
  BrokenAt watched(part.weights(), 99);
  part.Use(watched);
  KvSequence a = part.NewSequence(8), b = part.NewSequence(8);
  ASSERT_TRUE(part.Forward({.cache = &a, .tokens = prompt}).ok());
  const TokenList next = {9};
  const RowGroup batch[] = {{.cache = &a, .tokens = next, .sequence = 0},
                            {.cache = &b, .tokens = other, .sequence = 1}};
  ASSERT_TRUE(part.Forward(batch).ok());
  ASSERT_EQ(watched.passes().size(), 4u);
  const PassFacts& encoder = watched.passes()[2];
  EXPECT_EQ(encoder.first_layer, 1u);
  EXPECT_EQ(encoder.end_layer, 2u);
  ASSERT_EQ(encoder.groups.size(), 1u);
  EXPECT_EQ(encoder.groups[0].sequence, 1u);
  EXPECT_EQ(encoder.groups[0].rows, 7u);
  const PassFacts& decoder = watched.passes()[3];
  EXPECT_EQ(decoder.first_layer, 3u);
  EXPECT_EQ(decoder.end_layer, 4u) << "its last layer has no experts";
  ASSERT_EQ(decoder.groups.size(), 2u);
  EXPECT_EQ(decoder.groups[0].position, 6u);
  EXPECT_EQ(decoder.groups[1].position, 7u);
  EXPECT_EQ(decoder.groups[1].rows, 1u);
  // A row for each of the two halves' layers with experts: 1 of the encoder, 1 of the decoder.
  EXPECT_EQ(part.transformer().expert_uses(), 5u + 1 + 7 + 2);
}

TEST_F(EncoderDecoder, APassSaysIfNoneOfItsLayersHasExperts) {
  const TokenList prompt = TinySwitch::Prompt(5, rng_);
  for (const LayerRange sparse : {LayerRange{0, 2}, LayerRange{2, 5}}) {
    const TinyModel model([&](const std::string& path) { TinySwitch::Write(path, 0, sparse); });
    ModelPart part(model, model.AllLayers());
    BrokenAt watched(part.weights(), 99);
    part.Use(watched);
    KvSequence sequence = part.NewSequence(8);
    ASSERT_TRUE(part.Forward({.cache = &sequence, .tokens = prompt}).ok());
    ASSERT_EQ(watched.passes().size(), 2u);
    EXPECT_EQ(watched.passes()[0].HasExperts(), sparse.first == 0);
    EXPECT_EQ(watched.passes()[1].HasExperts(), sparse.first != 0);
  }
}

TEST_F(EncoderDecoder, ATokenOfAPromptTakesTheMemoryOfTheDecodersLayersAlone) {
  ModelConfig decoder_alone = model_.config();
  decoder_alone.layers = 3;
  decoder_alone.encoder.reset();
  const KvPoolShape shape{.context = 512, .sequences = 2};
  EXPECT_EQ(KvPool::BytesFor(model_.config(), model_.AllLayers(), shape),
            KvPool::BytesFor(decoder_alone, {0, 3}, shape));
}

TEST_F(EncoderDecoder, TokensBeyondAnExpertsCapacityPassItsLayerInThePromptsOrder) {
  ModelPart free(model_, model_.AllLayers(), {.sequences = 2});
  const TinyModel crowded([](const std::string& path) { TinySwitch::Write(path, 2); });
  ModelPart part(crowded, crowded.AllLayers(), {.sequences = 2});
  const TokenList few = TinySwitch::Prompt(2, rng_), many = TinySwitch::Prompt(20, rng_);
  EXPECT_EQ(Answer(part, few, {5}), Answer(free, few, {5}));
  EXPECT_NE(Answer(part, many, {5}), Answer(free, many, {5}));
  // Each sequence has its own places.
  const LogitRow first = Answer(part, few, {}).front(), second = Answer(part, many, {}).front();
  KvSequence a = part.NewSequence(21), b = part.NewSequence(3);
  const RowGroup batch[] = {{.cache = &a, .tokens = many, .sequence = 0},
                            {.cache = &b, .tokens = few, .sequence = 1}};
  ASSERT_TRUE(part.Forward(batch).ok());
  EXPECT_EQ(part.Logits(20, 1).front(), second);
  EXPECT_EQ(part.Logits(23, 1).front(), first);
}

}  // namespace
}  // namespace troupe
