// Rows of many sequences in one pass: each gets the bytes that it gets alone, whatever shares the
// pass with it, and a pass that fails leaves every sequence as it was.
#include "model/transformer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>

#include "model/tiny_model_for_test.h"
#include "testing/test_seed.h"

namespace troupe {
namespace {

using testing::HasSubstr;

std::string NameOf(const testing::TestParamInfo<const char*>& info) {
  std::string name = info.param;
  std::erase(name, '-');
  return name;
}

class Transforming : public testing::TestWithParam<const char*> {
 protected:
  const TinyModel model_{GetParam()};
  Rng rng_{TestSeed()};
};

using Tokens = std::vector<std::int32_t>;

TEST_P(Transforming, PromptsAndDecodesInOnePassGetTheBytesTheyGetAlone) {
  ModelPart part(model_, model_.AllLayers(), {.sequences = 4});
  const Tokens prompt = model_.Tokens(20, rng_), other = model_.Tokens(9, rng_);
  const Tokens decoding = model_.Tokens(6, rng_);
  const auto prompt_alone = part.LogitsOneByOne(prompt);
  const auto other_alone = part.LogitsOneByOne(other);
  const auto decoding_alone = part.LogitsOneByOne(decoding);

  KvSequence a = part.NewSequence(20), b = part.NewSequence(9), c = part.NewSequence(6);
  ASSERT_TRUE(part.Forward({.cache = &c, .tokens = std::span(decoding).first(4)}).ok());
  const RowGroup batch[] = {
      {.cache = &a, .tokens = std::span(prompt).first(13), .sequence = 0, .phase = Phase::kPrompt},
      {.cache = &c, .tokens = std::span(decoding).subspan(4, 1), .sequence = 2},
      {.cache = &b, .tokens = other, .sequence = 1, .phase = Phase::kPrompt}};
  ASSERT_TRUE(part.Forward(batch).ok());
  EXPECT_EQ(part.Logits(0, 13), std::vector(prompt_alone.begin(), prompt_alone.begin() + 13));
  EXPECT_EQ(part.Logits(13, 1).front(), decoding_alone[4]);
  EXPECT_EQ(part.Logits(14, 9), other_alone);
  EXPECT_EQ(a.length(), 13u);
  EXPECT_EQ(c.length(), 5u);

  const RowGroup next[] = {{.cache = &c, .tokens = std::span(decoding).subspan(5)},
                           {.cache = &a, .tokens = std::span(prompt).subspan(13)}};
  ASSERT_TRUE(part.Forward(next).ok());
  EXPECT_EQ(part.Logits(0, 1).front(), decoding_alone[5]);
  EXPECT_EQ(part.Logits(7, 1).front(), prompt_alone[19]);
}

TEST_P(Transforming, LogitsOfRowsInAnyOrderAreThoseOfEachRow) {
  ModelPart part(model_, model_.AllLayers());
  const Tokens tokens = model_.Tokens(8, rng_);
  KvSequence sequence = part.NewSequence(8);
  ASSERT_TRUE(part.Forward({.cache = &sequence, .tokens = tokens}).ok());
  const auto each = part.Logits(0, 8);
  const std::uint32_t rows[] = {6, 0, 6, 3};
  const std::size_t vocabulary = model_.config().vocabulary;
  std::vector<float> logits(4 * vocabulary);
  part.transformer().Logits(part.workspace(), rows, logits.data());
  for (std::size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(LogitRow(logits.begin() + static_cast<std::ptrdiff_t>(i * vocabulary),
                       logits.begin() + static_cast<std::ptrdiff_t>((i + 1) * vocabulary)),
              each[rows[i]]);
  }
}

// Fails at a layer, as a source whose file is damaged does.
class FailingExperts final : public ExpertSource {
 public:
  FailingExperts(const ModelWeights& weights, std::uint32_t layer)
      : resident_(weights), layer_(layer) {}
  void Ask(const ExpertBatch& batch) override {
    failing_ = batch.layer == layer_;
    resident_.Ask(batch);
  }
  Result<std::span<const ReadyExpert>> Take(bool wait) override {
    if (failing_) return DataLoss("damaged");
    return resident_.Take(wait);
  }
  ExpertUsage usage() const override { return {}; }

 private:
  ResidentExperts resident_;
  std::uint32_t layer_;
  bool failing_ = false;
};

TEST_P(Transforming, APassThatFailsLeavesEverySequenceAsItWas) {
  if (model_.config().moe.routing.experts == 0) GTEST_SKIP() << "nothing that could fail";
  ModelPart part(model_, model_.AllLayers(), {.sequences = 3});
  const Tokens tokens = model_.Tokens(6, rng_);
  const auto alone = part.LogitsOneByOne(tokens);
  KvSequence a = part.NewSequence(6), b = part.NewSequence(6);
  ASSERT_TRUE(part.Forward({.cache = &a, .tokens = std::span(tokens).first(3)}).ok());
  const RowGroup batch[] = {{.cache = &a, .tokens = std::span(tokens).subspan(3)},
                            {.cache = &b, .tokens = tokens}};
  FailingExperts failing(part.weights(), model_.config().layers - 1);
  ResidentExperts sound(part.weights());
  part.Use(failing);
  EXPECT_EQ(part.Forward(batch).code(), Code::kDataLoss);
  EXPECT_EQ(a.length(), 3u);
  EXPECT_EQ(b.length(), 0u);
  part.Use(sound);
  ASSERT_TRUE(part.Forward(batch).ok());
  EXPECT_EQ(part.Logits(2, 1).front(), alone[5]);
  EXPECT_EQ(part.Logits(8, 1).front(), alone[5]);
}

// Has a row group become unwanted while a layer is under way, and knows the last layer that began.
class GivesUpInLayer final : public StreamObserver {
 public:
  GivesUpInLayer(std::uint32_t layer, std::atomic<bool>& unwanted)
      : layer_(layer), unwanted_(unwanted) {}

  void Saw(std::uint32_t layer, StreamPlace place, const float* /*rows*/,
           std::size_t /*tokens*/) override {
    last_ = layer;
    if (layer == layer_ && place == StreamPlace::kGateInput) unwanted_ = true;
  }
  std::uint32_t last() const { return last_; }

 private:
  const std::uint32_t layer_;
  std::atomic<bool>& unwanted_;
  std::uint32_t last_ = 0;
};

TEST_P(Transforming, APassThatNobodyWantsAnyMoreEndsBehindTheLayerThatIsUnderWay) {
  ModelPart part(model_, model_.AllLayers(), {.sequences = 3});
  const Tokens tokens = model_.Tokens(6, rng_);
  const auto alone = part.LogitsOneByOne(tokens);
  KvSequence a = part.NewSequence(6), b = part.NewSequence(6);
  ASSERT_TRUE(part.Forward({.cache = &a, .tokens = std::span(tokens).first(3)}).ok());
  std::atomic<bool> unwanted = false;
  RowGroup batch[] = {{.cache = &a, .tokens = std::span(tokens).subspan(3), .unwanted = &unwanted},
                      {.cache = &b, .tokens = tokens, .unwanted = &unwanted}};
  GivesUpInLayer observer(0, unwanted);
  part.transformer().set_observer(&observer);
  EXPECT_EQ(part.Forward(batch).code(), Code::kCancelled);
  EXPECT_EQ(observer.last(), 0u);
  EXPECT_EQ(a.length(), 3u);
  EXPECT_EQ(b.length(), 0u);
  batch[1].unwanted = nullptr;  // whoever wants one group gets the pass
  ASSERT_TRUE(part.Forward(batch).ok());
  EXPECT_EQ(observer.last(), model_.config().layers - 1);
  EXPECT_EQ(part.Logits(2, 1).front(), alone[5]);
  EXPECT_EQ(part.Logits(8, 1).front(), alone[5]);
}

// Notes how far the pass is said to be before each layer.
class ProgressNotes final : public StreamObserver {
 public:
  explicit ProgressNotes(const std::atomic<double>& rows) : rows_(rows) {}
  void Saw(std::uint32_t, StreamPlace place, const float*, std::size_t) override {
    if (place == StreamPlace::kAttentionInput) seen.push_back(rows_.load());
  }
  std::vector<double> seen;

 private:
  const std::atomic<double>& rows_;
};

TEST_P(Transforming, APassTellsItsRowsByTheLayersBehindThem) {
  ModelPart part(model_, model_.AllLayers());
  std::atomic<double> rows = 0;
  ProgressNotes notes(rows);
  part.transformer().set_rows_done(&rows);
  part.transformer().set_observer(&notes);
  KvSequence sequence = part.NewSequence(10);
  const Tokens tokens = model_.Tokens(10, rng_);
  ASSERT_TRUE(part.Forward({.cache = &sequence, .tokens = tokens}).ok());
  ASSERT_EQ(notes.seen.size(), model_.config().layers);
  for (std::size_t layer = 0; layer < notes.seen.size(); ++layer) {
    const auto layers = static_cast<double>(notes.seen.size());
    EXPECT_DOUBLE_EQ(notes.seen[layer], 10.0 * static_cast<double>(layer) / layers);
  }
  EXPECT_EQ(rows.load(), 0);
  part.transformer().set_observer(nullptr);
}

TEST_P(Transforming, WhatCannotBeRunIsRefusedForTheWholeBatch) {
  ModelPart part(model_, model_.AllLayers(), {.sequences = 3});
  const Tokens tokens = model_.Tokens(4, rng_);
  const Tokens unknown = {static_cast<std::int32_t>(model_.config().vocabulary)};
  const Tokens longer(part.kv().page_positions() / 4, 1);
  KvSequence sound = part.NewSequence(4), other = part.NewSequence(4);
  const auto refusal = [&](const RowGroup& bad) {
    const RowGroup batch[] = {{.cache = &sound, .tokens = tokens}, bad};
    return part.Forward(batch);
  };
  EXPECT_THAT(refusal({.cache = &other, .tokens = unknown}).message(),
              HasSubstr("is not in the vocabulary"));
  KvSequence without_room = part.kv().NewSequence();
  const Status refused = refusal({.cache = &without_room, .tokens = longer});
  EXPECT_EQ(refused.code(), Code::kResourceExhausted);
  EXPECT_THAT(refused.message(), HasSubstr("16 tokens after 0"));
  EXPECT_EQ(sound.length(), 0u);
}

// A prefix that was computed once serves two sequences.
TEST_P(Transforming, ASharedPrefixIsReadAsIfItWereTheSequencesOwn) {
  if (model_.config().HasState()) GTEST_SKIP() << "pages do not hold the state";
  ModelPart part(model_, model_.AllLayers(), {.context = 512, .sequences = 3, .chunk = 64});
  Tokens tokens = model_.Tokens(260, rng_);
  KvSequence first = part.NewSequence(260);
  for (std::size_t at = 0; at < 260; at += 52) {
    ASSERT_TRUE(part.Forward({.cache = &first, .tokens = std::span(tokens).subspan(at, 52)}).ok());
  }
  const auto expected = part.Logits(48, 4);
  KvSequence second = part.kv().NewSequence();
  second.Share(first.Page(0));
  ASSERT_TRUE(second.Reserve(260).ok());
  ASSERT_TRUE(part.Forward({.cache = &second, .tokens = std::span(tokens).subspan(256)}).ok());
  EXPECT_EQ(part.Logits(0, 4), expected);

  KvSequence third = part.NewSequence(260);
  third.Copy(first.Page(0), 100);
  for (std::size_t at = 100; at < 260; at += 40) {
    ASSERT_TRUE(part.Forward({.cache = &third, .tokens = std::span(tokens).subspan(at, 40)}).ok());
  }
  EXPECT_EQ(part.Logits(36, 4), expected);
}

TEST_P(Transforming, AModelCutAtAnyLayerGivesTheBytesOfTheWhole) {
  ModelPart whole(model_, model_.AllLayers());
  const Tokens tokens = model_.Tokens(17, rng_);
  const auto expected = whole.LogitsOneByOne(tokens);
  for (std::uint32_t cut = 1; cut < model_.config().layers; ++cut) {
    ModelPart lower(model_, {0, cut}), upper(model_, {cut, model_.config().layers});
    KvSequence below = lower.NewSequence(17), above = upper.NewSequence(17);
    std::vector<LogitRow> logits;
    for (std::size_t at = 0; at < 17;) {  // a prompt, then token by token
      const std::size_t count = at == 0 ? 13 : 1;
      ASSERT_TRUE(
          lower.Forward({.cache = &below, .tokens = std::span(tokens).subspan(at, count)}).ok());
      const std::span<const float> stream = lower.transformer().Stream(lower.workspace());
      ASSERT_EQ(stream.size(), count * model_.config().width);
      ASSERT_TRUE(upper.Forward({.cache = &above, .stream = stream}).ok());
      for (LogitRow& row : upper.Logits(0, count)) logits.push_back(std::move(row));
      at += count;
    }
    EXPECT_EQ(logits, expected) << "cut before layer " << cut;
  }
}

TEST_P(Transforming, AStateThatAPassLeftOnItsWayServesASequenceThatBeginsAlike) {
  if (!model_.config().HasState()) GTEST_SKIP() << "no state";
  const Tokens tokens = model_.Tokens(12, rng_);
  for (const std::size_t save_after : {1, 2, 5, 9}) {
    ModelPart part(model_, model_.AllLayers(), {.sequences = 3});
    const auto expected = part.LogitsOneByOne(tokens);
    KvSequence first = part.NewSequence(12);
    ASSERT_TRUE(part.Forward({.cache = &first, .tokens = std::span(tokens).first(2)}).ok());
    ASSERT_TRUE(part.Forward({.cache = &first,
                              .tokens = std::span(tokens).subspan(2, 9),
                              .save_after = save_after})
                    .ok());
    EXPECT_EQ(part.Logits(8, 1).front(), expected[10]);
    const std::optional<SavedState> saved = first.TakeSaved();
    ASSERT_TRUE(saved.has_value());
    KvSequence second = part.NewSequence(12);
    second.Copy(first.Page(0), 2 + save_after);
    second.Restore(*saved);
    const auto rest = std::span(tokens).subspan(2 + save_after);
    ASSERT_TRUE(part.Forward({.cache = &second, .tokens = rest}).ok());
    EXPECT_EQ(part.Logits(rest.size() - 1, 1).front(), expected[11]) << save_after;
  }
}

// A guess of four tokens, of which two were right: the next pass begins with these.
TEST_P(Transforming, AGuessThatWasPartlyWrongLeavesNoTrace) {
  ModelPart part(model_, model_.AllLayers());
  const Tokens tokens = model_.Tokens(12, rng_);
  const auto expected = part.LogitsOneByOne(tokens);
  KvSequence sequence = part.NewSequence(16);
  ASSERT_TRUE(part.Forward({.cache = &sequence, .tokens = std::span(tokens).first(5)}).ok());
  Tokens guess(tokens.begin() + 5, tokens.begin() + 9);
  guess[2] = (guess[2] + 1) % static_cast<std::int32_t>(model_.config().vocabulary);
  ASSERT_TRUE(part.Forward({.cache = &sequence, .tokens = guess}).ok());
  EXPECT_EQ(part.Logits(0, 2), std::vector(expected.begin() + 5, expected.begin() + 7));
  const std::size_t stands = sequence.Truncate(7);
  EXPECT_EQ(stands, model_.config().HasState() ? 5u : 7u);
  ASSERT_TRUE(part.Forward({.cache = &sequence, .tokens = std::span(tokens).subspan(stands)}).ok());
  EXPECT_EQ(part.Logits(11 - stands, 1).front(), expected[11]);

  // Further back it is the beginning.
  EXPECT_EQ(sequence.Truncate(3), model_.config().HasState() ? 0u : 3u);
  ASSERT_TRUE(part.Forward({.cache = &sequence,
                            .tokens = std::span(tokens).first(7).subspan(sequence.length())})
                  .ok());
  const std::size_t last = 6 - (model_.config().HasState() ? 0 : 3);
  EXPECT_EQ(part.Logits(last, 1).front(), expected[6]);
}

INSTANTIATE_TEST_SUITE_P(Families, Transforming,
                         testing::Values("tiny-llama", "tiny-mixtral", "tiny-qwen2moe",
                                         "tiny-qwen3moe", "tiny-olmoe", "tiny-deepseek",
                                         "tiny-deepseek2", "tiny-qwen3next", "tiny-qwen35moe",
                                         "tiny-gpt-oss", "tiny-lfm2moe", "tiny-glm4moe",
                                         "tiny-granitemoe", "tiny-granitehybrid",
                                         "tiny-nemotron_h_moe", "tiny-nemotron_h", "tiny-gemma4"),
                         NameOf);

}  // namespace
}  // namespace troupe
