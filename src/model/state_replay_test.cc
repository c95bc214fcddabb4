// Of a pass some rows stay and the others are forgotten: the sequence goes on to the bytes of one
// that never saw them.
#include "model/state_replay.h"

#include <gtest/gtest.h>

#include "model/tiny_model_for_test.h"
#include "testing/test_seed.h"

namespace troupe {
namespace {

constexpr std::size_t kTextBefore = 5, kTextBehind = 4;

class StateReplay : public testing::TestWithParam<const char*> {
 protected:
  StateReplay()
      : model_(GetParam()),
        part_(model_, model_.AllLayers(), {.sequences = 2, .inputs = 16}),
        text_(model_.Tokens(32, rng_)),
        alone_(part_.LogitsOneByOne(text_)) {}

  RowGroup Rows(KvSequence& sequence, TokenIds tokens, SequenceId id, std::uint32_t guessed = 0) {
    return {.cache = &sequence, .tokens = tokens, .sequence = id, .guessed = guessed};
  }
  TokenIds Text(std::size_t first, std::size_t count) {
    return TokenIds(text_).subspan(first, count);
  }
  // The next token, and guesses of which `right` are the text's.
  std::vector<std::int32_t> Drafted(std::size_t at, std::size_t right, std::size_t guessed) {
    std::vector<std::int32_t> tokens(text_.begin() + static_cast<std::ptrdiff_t>(at),
                                     text_.begin() + static_cast<std::ptrdiff_t>(at + 1 + right));
    while (tokens.size() < 1 + guessed) tokens.push_back(model_.Tokens(1, rng_).front());
    return tokens;
  }
  void ExpectGoesOn(KvSequence& sequence) {
    const std::size_t at = sequence.length();
    ASSERT_TRUE(part_.Forward(Rows(sequence, Text(at, kTextBehind), 0)).ok());
    for (std::size_t i = 0; i < kTextBehind; ++i) {
      ASSERT_EQ(part_.Logits(i, 1).front(), alone_[at + i]) << "token " << at + i;
    }
  }

  Rng rng_{TestSeed()};
  TinyModel model_;
  ModelPart part_;
  std::vector<std::int32_t> text_;
  std::vector<LogitRow> alone_;
};

TEST_P(StateReplay, RowsThatStayLeaveWhatTheyWouldHaveAlone) {
  for (const std::size_t guessed : {1, 3, 7}) {
    for (std::size_t right = 0; right < guessed; ++right) {
      KvSequence sequence = part_.NewSequence(40);
      ASSERT_TRUE(part_.Forward(Rows(sequence, Text(0, kTextBefore), 0)).ok());
      const auto tokens = Drafted(kTextBefore, right, guessed);
      ASSERT_TRUE(
          part_.Forward(Rows(sequence, tokens, 0, static_cast<std::uint32_t>(guessed))).ok());
      part_.transformer().KeepFirstRows(sequence, 1 + right);
      ASSERT_EQ(sequence.length(), kTextBefore + 1 + right);
      ExpectGoesOn(sequence);
    }
  }
}

TEST_P(StateReplay, SequencesOfAPassEachKeepTheirOwn) {
  KvSequence first = part_.NewSequence(40), second = part_.NewSequence(40);
  ASSERT_TRUE(part_.Forward(Rows(first, Text(0, kTextBefore), 0)).ok());
  ASSERT_TRUE(part_.Forward(Rows(second, Text(0, 2 * kTextBefore), 1)).ok());
  for (int pass = 0; pass < 2; ++pass) {
    const auto of_first = Drafted(first.length(), 2, 4), of_second = Drafted(second.length(), 1, 6);
    const RowGroup both[] = {Rows(first, of_first, 0, 4), Rows(second, of_second, 1, 6)};
    ASSERT_TRUE(part_.Forward(Batch(both)).ok());
    part_.transformer().KeepFirstRows(first, 3);
    part_.transformer().KeepFirstRows(second, 2);
  }
  ExpectGoesOn(first);
  ExpectGoesOn(second);
}

TEST_P(StateReplay, WithoutItTheStateHoldsWhatWasWrong) {
  KvSequence sequence = part_.NewSequence(40);
  ASSERT_TRUE(part_.Forward(Rows(sequence, Text(0, kTextBefore), 0)).ok());
  const auto tokens = Drafted(kTextBefore, 0, 3);
  ASSERT_TRUE(part_.Forward(Rows(sequence, tokens, 0, 3)).ok());
  EXPECT_EQ(sequence.Truncate(kTextBefore + 1), kTextBefore);
  ASSERT_TRUE(part_.Forward(Rows(sequence, Text(kTextBefore + 1, 1), 0)).ok());
  EXPECT_NE(part_.Logits(0, 1).front(), alone_[kTextBefore + 1]) << "a token was not fed again";
}

INSTANTIATE_TEST_SUITE_P(Families, StateReplay,
                         testing::Values("tiny-qwen3next", "tiny-qwen35moe", "tiny-lfm2moe",
                                         "tiny-granitehybrid", "tiny-nemotron_h_moe"),
                         [](const auto& shape) {
                           std::string name = shape.param;
                           std::erase(name, '-');
                           return name;
                         });

}  // namespace
}  // namespace troupe
