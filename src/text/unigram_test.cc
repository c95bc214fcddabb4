// Texts cut by the scores of pieces: the best of all ways, what is done to a text before, and the
// tokens around a prompt of an encoder-decoder.
#include "text/unigram.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <limits>

#include "base/rng.h"
#include "testing/test_seed.h"
#include "text/char_map_for_test.h"
#include "text/tiny_vocab_for_test.h"
#include "text/tokens_as_written_for_test.h"
#include "text/utf8.h"

namespace troupe {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

TEST(Unigram, TakesThePiecesWithTheLargestSumOfScores) {
  const auto tokenizer = MakeTokenizer(TinyUnigramVocab()).value();
  EXPECT_THAT(CutInto(*tokenizer, "hello"), ElementsAre("▁hello"));
  // "ab" and "c" are better than "a" and "bc", though "bc" is better than "ab".
  EXPECT_THAT(CutInto(*tokenizer, "abc"), ElementsAre("▁", "ab", "c"));
  EXPECT_THAT(CutInto(*tokenizer, "hello abc"), ElementsAre("▁hello", "▁", "ab", "c"));
}

TEST(Unigram, WhatNoPieceCoversIsUnknownNeighboursTogether) {
  const auto tokenizer = MakeTokenizer(TinyUnigramVocab()).value();
  EXPECT_THAT(CutInto(*tokenizer, "a日本b"), ElementsAre("▁", "a", "<unk>", "b"));
  EXPECT_THAT(CutInto(*tokenizer, "日 本"), ElementsAre("▁", "<unk>", "▁", "<unk>"));
}

TEST(Unigram, RunsOfBlanksAreOneAndThoseAtTheEndsGo) {
  Vocab vocab = TinyUnigramVocab();
  const auto tokenizer = MakeTokenizer(vocab).value();
  EXPECT_THAT(CutInto(*tokenizer, "  a   b  "), ElementsAre("▁", "a", "▁", "b"));
  EXPECT_THAT(CutInto(*tokenizer, "   "), IsEmpty());
  vocab.removes_blanks = false;
  EXPECT_THAT(CutInto(*MakeTokenizer(vocab).value(), " a"), ElementsAre("▁", "▁", "a"));
}

TEST(Unigram, ItsCharacterMapIsAppliedFirst) {
  Vocab vocab = TinyUnigramVocab();
  vocab.character_map = CharMapCompiler::Compile({{"\n", " "}, {"Ａ", "a"}, {"ｂ", "b"}});
  const auto tokenizer = MakeTokenizer(vocab).value();
  EXPECT_THAT(CutInto(*tokenizer, "Ａ\n \nｂ\n"), ElementsAre("▁", "a", "▁", "b"));
  vocab.character_map = "abc";
  EXPECT_THAT(MakeTokenizer(vocab).status().message(), HasSubstr("character map"));
}

TEST(Unigram, APieceMayGoOnBehindABlank) {
  Vocab vocab = TinyUnigramVocab();
  vocab.tokens.emplace_back("a▁b");
  vocab.scores.push_back(-0.5f);
  vocab.types.push_back(TokenType::kNormal);
  EXPECT_THAT(CutInto(*MakeTokenizer(vocab).value(), "ca b"), ElementsAre("▁", "c", "a▁b"));
}

TEST(Unigram, TokensOfTheirOwnStandInTheTextAndEachStretchBetweenThemBeginsOne) {
  const auto tokenizer = MakeTokenizer(TinyUnigramVocab()).value();
  EXPECT_THAT(CutInto(*tokenizer, "a <extra_id_0> hello <extra_id_1>b"),
              ElementsAre("▁", "a", "<extra_id_0>", "▁hello", "<extra_id_1>", "▁", "b"));
  const std::vector<TokenId> ids = tokenizer->Encode("<extra_id_0> hello", {}).value();
  EXPECT_EQ(tokenizer->Decode(ids).value(), "<extra_id_0>hello");
}

TEST(Unigram, APromptOfAnEncoderDecoderEndsWithEosAndTheDecodersFirst) {
  Vocab vocab = TinyUnigramVocab();
  const auto whole = [&vocab] { return CutInto(*MakeTokenizer(vocab).value(), "a", {}); };
  EXPECT_THAT(whole(), ElementsAre("▁", "a", "</s>", "<pad>"));
  vocab.decoder_start.reset();
  EXPECT_THAT(whole(), ElementsAre("▁", "a", "</s>"));
}

TEST(Unigram, AVocabularyNeedsScoresAndAnUnknownToken) {
  Vocab vocab = TinyUnigramVocab();
  vocab.unk.reset();
  EXPECT_THAT(MakeTokenizer(vocab).status().message(), HasSubstr("unknown token"));
  vocab = TinyUnigramVocab();
  vocab.scores.pop_back();
  EXPECT_THAT(MakeTokenizer(vocab).status().message(), HasSubstr("scores"));
}

TEST(Unigram, AWordBeyondTheLimitIsRefused) {
  const auto tokenizer = MakeTokenizer(TinyUnigramVocab()).value();
  tokenizer->LimitWords(8);
  EXPECT_TRUE(tokenizer->Encode("hello hello hello").ok());
  EXPECT_THAT(tokenizer->Encode("hellohello").status().message(), HasSubstr("a word of more than"));
}

// The best sum over all ways to cut what is left, tried one by one.
float BestSum(const Vocab& vocab, std::string_view text, float unknown) {
  if (text.empty()) return 0;
  float best = -std::numeric_limits<float>::infinity();
  const std::size_t character = ReadUtf8(text).length;
  bool has_character = false;
  for (std::size_t i = 0; i < vocab.tokens.size(); ++i) {
    const std::string& piece = vocab.tokens[i];
    if (vocab.types[i] != TokenType::kNormal || !text.starts_with(piece)) continue;
    has_character = has_character || piece.size() == character;
    best = std::max(best, vocab.scores[i] + BestSum(vocab, text.substr(piece.size()), unknown));
  }
  if (has_character) return best;
  return std::max(best, unknown + BestSum(vocab, text.substr(character), unknown));
}

TEST(Unigram, NoWayToCutRandomTextsIsBetter) {
  Rng rng(TestSeed());
  const std::array<std::string, 5> characters = {"▁", "a", "b", "é", "日"};
  for (int round = 0; round < 200; ++round) {
    Vocab vocab = TinyUnigramVocab();
    for (int more = 0; more < 12; ++more) {
      std::string piece;
      for (std::uint64_t left = 2 + rng.Below(3); left > 0; --left) {
        piece += characters[rng.Below(round % 2 == 0 ? 5 : 4)];
      }
      if (std::ranges::find(vocab.tokens, piece) != vocab.tokens.end()) continue;
      vocab.tokens.push_back(piece);
      vocab.scores.push_back(-static_cast<float>(rng.Below(40)));  // sums are exact
      vocab.types.push_back(TokenType::kNormal);
    }
    vocab.removes_blanks = false;
    float worst = 0;
    for (std::size_t i = 0; i < vocab.tokens.size(); ++i) {
      if (vocab.types[i] == TokenType::kNormal) worst = std::min(worst, vocab.scores[i]);
    }
    std::string text, written = "▁";
    for (int left = 10; left > 0; --left) {
      const std::string& character = characters[rng.Below(5)];
      text += character == "▁" ? " " : character;
      written += character;
    }
    const auto tokenizer = MakeTokenizer(vocab).value();
    const std::vector<TokenId> ids = tokenizer->Encode(text, {.add_special = false}).value();
    float sum = 0;
    std::string back;
    bool has_unknown = false;
    for (const TokenId id : ids) {
      has_unknown = has_unknown || id == vocab.unk;
      sum += vocab.scores[static_cast<std::size_t>(id)];
      back += vocab.tokens[static_cast<std::size_t>(id)];
    }
    if (has_unknown) continue;  // how many characters it stands for is not seen
    EXPECT_EQ(back, written);
    EXPECT_EQ(sum, BestSum(vocab, written, worst - 10)) << text;
  }
}

}  // namespace
}  // namespace troupe
