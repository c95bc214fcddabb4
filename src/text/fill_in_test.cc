#include "text/fill_in.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "text/tiny_vocab_for_test.h"

namespace troupe {
namespace {

using testing::ElementsAre;

TokenId Add(Vocab& vocab, std::string text) {
  vocab.tokens.push_back(std::move(text));
  vocab.types.push_back(TokenType::kControl);
  return static_cast<TokenId>(vocab.tokens.size() - 1);
}

TEST(FillIn, MarksAreTheFilesOrKnownByTheirTexts) {
  Vocab vocab = TinyByteLevelVocab();
  EXPECT_EQ(FindFillInMarks(vocab), std::nullopt);
  const TokenId middle = Add(vocab, "<|fim_middle|>"), before = Add(vocab, "<|fim_prefix|>");
  Add(vocab, "<fim_suffix>");  // of another family
  EXPECT_EQ(FindFillInMarks(vocab), std::nullopt);
  const TokenId after = Add(vocab, "<|fim_suffix|>");
  EXPECT_EQ(FindFillInMarks(vocab),
            (FillInMarks{.before = before, .after = after, .middle = middle}));
  vocab.fill_before = 1;
  vocab.fill_after = 2;
  EXPECT_EQ(FindFillInMarks(vocab)->before, before);  // the file lacks the third
  vocab.fill_middle = 3;
  EXPECT_EQ(FindFillInMarks(vocab), (FillInMarks{.before = 1, .after = 2, .middle = 3}));
}

TEST(FillIn, ThePromptIsTheTextBeforeTheTextAfterAndTheGap) {
  Vocab vocab = TinyByteLevelVocab();
  const TokenId before = Add(vocab, "<|fim_prefix|>"), after = Add(vocab, "<|fim_suffix|>"),
                middle = Add(vocab, "<|fim_middle|>");
  vocab.add_bos = true;
  const TokenId bos = *vocab.bos;
  const auto tokenizer = MakeTokenizer(std::move(vocab)).value();
  EXPECT_THAT(EncodeFillIn(*tokenizer, "x", "y").value(),
              ElementsAre(bos, before, 'x', after, 'y', middle));
  EXPECT_THAT(EncodeFillIn(*tokenizer, "", "").value(), ElementsAre(bos, before, after, middle));
}

TEST(FillIn, AUsersTextHasNoMarks) {
  Vocab vocab = TinyByteLevelVocab();
  Add(vocab, "<|fim_prefix|>");
  Add(vocab, "<|fim_suffix|>");
  const TokenId middle = Add(vocab, "<|fim_middle|>");
  const auto tokenizer = MakeTokenizer(std::move(vocab)).value();
  const auto ids = EncodeFillIn(*tokenizer, "<|fim_middle|>", "").value();
  EXPECT_EQ(std::ranges::count(ids, middle), 1);
}

TEST(FillIn, AModelWithoutMarksFillsNoGaps) {
  const auto tokenizer = MakeTokenizer(TinyByteLevelVocab()).value();
  EXPECT_EQ(EncodeFillIn(*tokenizer, "x", "y").status().code(), Code::kUnimplemented);
}

TEST(FillIn, TextThatIsNotUtf8IsRefused) {
  Vocab vocab = TinyByteLevelVocab();
  vocab.fill_before = vocab.fill_after = vocab.fill_middle = 3;
  const auto tokenizer = MakeTokenizer(std::move(vocab)).value();
  EXPECT_EQ(EncodeFillIn(*tokenizer, "x", "\xFF").status().code(), Code::kInvalidArgument);
}

}  // namespace
}  // namespace troupe
