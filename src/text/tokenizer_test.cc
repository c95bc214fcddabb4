#include "text/tokenizer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>

#include "base/rng.h"
#include "testing/test_seed.h"
#include "text/tiny_vocab_for_test.h"
#include "text/tokens_as_written_for_test.h"
#include "text/utf8.h"

namespace troupe {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

std::unique_ptr<Tokenizer> MakeFrom(Vocab vocab) { return MakeTokenizer(std::move(vocab)).value(); }

std::vector<std::string> EncodeSegments(const Tokenizer& tokenizer,
                                        std::vector<TextSegment> segments) {
  return AsWritten(tokenizer, tokenizer.EncodeSegments(segments, false).value());
}

TEST(SentencePiece, JoinsByScoreTheBestPairFirst) {
  const auto tokenizer = MakeFrom(TinySentencePieceVocab());
  EXPECT_THAT(CutInto(*tokenizer, "hello"), ElementsAre("▁hello"));
  // "ab" scores better than "bc": the b is taken.
  EXPECT_THAT(CutInto(*tokenizer, "habc"), ElementsAre("▁", "h", "ab", "c"));
  // Equal pairs join from the left.
  EXPECT_THAT(CutInto(*tokenizer, "hlll"), ElementsAre("▁", "h", "ll", "l"));
}

Vocab WithPieces(std::initializer_list<std::pair<std::string, float>> pieces) {
  Vocab vocab = TinySentencePieceVocab();
  for (const auto& [piece, score] : pieces) {
    vocab.tokens.push_back(piece);
    vocab.scores.push_back(score);
    vocab.types.push_back(TokenType::kNormal);
  }
  return vocab;
}

TEST(SentencePiece, ATokenMayGoOnBehindABlank) {
  const auto tokenizer = MakeFrom(WithPieces({{"▁b", 2.0F}, {"a▁b", 1.0F}, {"é▁", 3.0F}}));
  EXPECT_THAT(CutInto(*tokenizer, "ca b"), ElementsAre("▁", "c", "a▁b"));
  EXPECT_THAT(CutInto(*tokenizer, "cé b"), ElementsAre("▁", "c", "é▁", "b"));
}

// Joins the best pair of the whole text, the leftmost of equal ones, again and again.
std::vector<std::string> JoinedSlowly(const Vocab& vocab, std::vector<std::string> pieces) {
  for (;;) {
    std::size_t best = pieces.size();
    float best_score = 0;
    for (std::size_t i = 0; i + 1 < pieces.size(); ++i) {
      const auto found = std::ranges::find(vocab.tokens, pieces[i] + pieces[i + 1]);
      if (found == vocab.tokens.end()) continue;
      const float score = vocab.scores[static_cast<std::size_t>(found - vocab.tokens.begin())];
      if (best < pieces.size() && score <= best_score) continue;
      best = i;
      best_score = score;
    }
    if (best == pieces.size()) return pieces;
    pieces[best] += pieces[best + 1];
    pieces.erase(pieces.begin() + static_cast<std::ptrdiff_t>(best) + 1);
  }
}

TEST(SentencePiece, WordsThatAreJoinedApartAreThoseOfTheWholeText) {
  Rng rng(TestSeed());
  const std::array<std::string, 4> characters = {"▁", "a", "b", "é"};
  for (int round = 0; round < 300; ++round) {
    Vocab vocab = TinySentencePieceVocab();
    for (int more = 0; more < 12; ++more) {
      std::string piece;
      for (std::uint64_t left = 2 + rng.Below(3); left > 0; --left) {
        piece += characters[rng.Below(round % 2 == 0 ? 4 : 3)];
      }
      if (std::ranges::find(vocab.tokens, piece) != vocab.tokens.end()) continue;
      vocab.tokens.push_back(piece);
      vocab.scores.push_back(static_cast<float>(rng.Below(100)));
      vocab.types.push_back(TokenType::kNormal);
    }
    std::string text;
    std::vector<std::string> pieces = {"▁"};
    for (int left = 30; left > 0; --left) {
      pieces.push_back(characters[rng.Below(4)]);
      text += pieces.back() == "▁" ? " " : pieces.back();
    }
    ASSERT_EQ(CutInto(*MakeFrom(vocab), text), JoinedSlowly(vocab, pieces)) << text;
  }
}

TEST(RankedPieces, JoinByRankWithinLines) {
  const auto tokenizer = MakeFrom(TinyRankedVocab());
  // "bc" ranks before "ab", which scores better.
  EXPECT_THAT(CutInto(*tokenizer, "abc hello"), ElementsAre("a", "bc", "▁hello"));
  // No merge makes "▁▁", though it is a token.
  EXPECT_THAT(CutInto(*tokenizer, "  ß"), ElementsAre("▁", "▁", "<0xC3>", "<0x9F>"));
  // A run of line ends that is a token stays whole; there is none for three.
  EXPECT_THAT(CutInto(*tokenizer, "a\n\nb\n"), ElementsAre("a", "\n\n", "b", "\n"));
  EXPECT_THAT(CutInto(*tokenizer, "\n\n\n"), ElementsAre("\n", "\n", "\n"));
}

TEST(RankedPieces, OfEqualTokensTheLastIsTaken) {
  Vocab vocab = TinyRankedVocab();
  const auto last = static_cast<TokenId>(vocab.tokens.size());
  vocab.tokens.emplace_back("bc");
  vocab.scores.push_back(0);
  vocab.types.push_back(TokenType::kNormal);
  const auto tokenizer = MakeFrom(std::move(vocab));
  EXPECT_THAT(tokenizer->Encode("bc", {.add_special = false}).value(), ElementsAre(last));
}

TEST(SentencePiece, FallsBackToBytesAndToTheUnknownToken) {
  Vocab vocab = TinySentencePieceVocab();
  EXPECT_THAT(CutInto(*MakeFrom(vocab), "aß\n"), ElementsAre("▁a", "<0xC3>", "<0x9F>", "<0x0A>"));
  vocab.tokens[3 + 0x9F] = "<no byte>";
  const auto tokenizer = MakeFrom(vocab);
  EXPECT_THAT(CutInto(*tokenizer, "aß\n"), ElementsAre("▁a", "<unk>", "<0x0A>"));
}

TEST(SentencePiece, BlanksComeBackAsTheyWere) {
  const auto tokenizer = MakeFrom(TinySentencePieceVocab());
  for (const std::string text : {"", " ", "  hello", "hello  ", "a   a", " a<tool> a"}) {
    EXPECT_EQ(tokenizer->Decode(tokenizer->Encode(text).value()).value(), text);
  }
}

TEST(SentencePiece, TextBeginsWithABlankAgainAfterASpecialToken) {
  const auto tokenizer = MakeFrom(TinySentencePieceVocab());
  EXPECT_THAT(CutInto(*tokenizer, "a<tool>a"), ElementsAre("▁a", "<tool>", "▁a"));
}

TEST(SentencePiece, TextCannotSpellByteOrControlTokens) {
  const auto tokenizer = MakeFrom(TinySentencePieceVocab());
  EXPECT_EQ(tokenizer->Decode(tokenizer->Encode("<0x0A></s><unk>").value()).value(),
            "<0x0A></s><unk>");
}

TEST(ByteLevelBpe, JoinsByRankInsideWords) {
  const auto tokenizer = MakeFrom(TinyByteLevelVocab());
  EXPECT_THAT(CutInto(*tokenizer, "hello hello"), ElementsAre("hello", "Ġhello"));
  // "b c" ranks before "a b".
  EXPECT_THAT(CutInto(*tokenizer, "abc"), ElementsAre("a", "bc"));
  EXPECT_THAT(CutInto(*tokenizer, "é\n"), ElementsAre("Ã©", "Ċ"));
}

TEST(ByteLevelBpe, NeverJoinsAcrossWords) {
  // In "1 2" the merge of "12" has no chance; with qwen2 not even in "12".
  EXPECT_THAT(CutInto(*MakeFrom(TinyByteLevelVocab("gpt-2")), "12"), ElementsAre("12"));
  EXPECT_THAT(CutInto(*MakeFrom(TinyByteLevelVocab("qwen2")), "12"), ElementsAre("1", "2"));
}

TEST(ByteLevelBpe, TakesWholeWordsWhereMergesAreIgnored) {
  Vocab vocab = TinyByteLevelVocab("gpt-2");
  vocab.tokens.push_back("abc");  // no merge makes it
  vocab.types.push_back(TokenType::kNormal);
  EXPECT_THAT(CutInto(*MakeFrom(vocab), "abc"), ElementsAre("a", "bc"));
  vocab.pre = "llama-bpe";
  EXPECT_THAT(CutInto(*MakeFrom(vocab), "abc abc"), ElementsAre("abc", "Ġ", "a", "bc"));
}

TEST(ByteLevelBpe, BytesWithoutATokenAreUnknownOrLeftOut) {
  Vocab vocab = TinyByteLevelVocab();
  vocab.tokens[0x03] = "no byte";
  EXPECT_THAT(CutInto(*MakeFrom(vocab),
                      "a\x03"
                      "c"),
              ElementsAre("a", "c"));
  vocab.unk = 0x03;
  EXPECT_THAT(CutInto(*MakeFrom(vocab),
                      "a\x03"
                      "c"),
              ElementsAre("a", "no byte", "c"));
}

TEST(Tokenizer, AddsBosAndEosOnlyWhereTheVocabularySaysSo) {
  Vocab vocab = TinySentencePieceVocab();
  vocab.add_eos = true;
  const auto tokenizer = MakeFrom(vocab);
  EXPECT_THAT(CutInto(*tokenizer, "a", {}), ElementsAre("<s>", "▁a", "</s>"));
  EXPECT_THAT(CutInto(*tokenizer, "", {}), ElementsAre("<s>", "</s>"));
  EXPECT_THAT(CutInto(*tokenizer, ""), IsEmpty());
  EXPECT_THAT(CutInto(*MakeFrom(TinyByteLevelVocab()), "a", {}), ElementsAre("a"));
}

TEST(Tokenizer, FindsUserDefinedTokensAlwaysAndControlTokensOnRequest) {
  const auto tokenizer = MakeFrom(TinyByteLevelVocab());
  EXPECT_THAT(CutInto(*tokenizer, "a<tool>  a"), ElementsAre("a", "<tool>", "  ", "a"));
  EXPECT_EQ(tokenizer->Encode("<|endoftext|>").value().size(), 13u);
  EXPECT_THAT(CutInto(*tokenizer, "a<|endoftext|>a", {.add_special = false, .parse_special = true}),
              ElementsAre("a", "<|endoftext|>", "a"));
}

TEST(Tokenizer, ContentOfSegmentsCannotForgeSpecialTokens) {
  const auto tokenizer = MakeFrom(TinyByteLevelVocab());
  const TokenId end = *tokenizer->vocab().eos;
  const auto ids =
      tokenizer
          ->EncodeSegments(std::vector<TextSegment>{
              {"<tool>a", true}, {"<|endoftext|><tool>", false}, {"<|endoftext|>", true}})
          .value();
  EXPECT_EQ(std::count(ids.begin(), ids.end(), end), 1);
  EXPECT_EQ(ids.back(), end);
  EXPECT_EQ(tokenizer->Decode(ids, {.keep_special = true}).value(),
            "<tool>a<|endoftext|><tool><|endoftext|>");
  // Nor half of one, with the other half in the template.
  EXPECT_THAT(EncodeSegments(*tokenizer, {{"<|endof", false}, {"text|>", true}}),
              testing::Not(testing::Contains("<|endoftext|>")));
}

TEST(Tokenizer, SegmentsAreOneTextBetweenSpecialTokens) {
  const auto tokenizer = MakeFrom(TinyByteLevelVocab());
  EXPECT_THAT(EncodeSegments(*tokenizer, {{"he", true}, {"", false}, {"llo", false}}),
              ElementsAre("hello"));
  // Tokens of blanks alone are text: they are found in contents, and across.
  EXPECT_THAT(EncodeSegments(*tokenizer, {{"a ", true}, {" a", false}}),
              ElementsAre("a", "  ", "a"));
  EXPECT_THAT(EncodeSegments(*tokenizer, {}), IsEmpty());
}

TEST(Tokenizer, InvalidUtf8IsAnErrorThatNamesTheByte) {
  const auto tokenizer = MakeFrom(TinyByteLevelVocab());
  const auto text = tokenizer->Encode("ab\xFF");
  ASSERT_FALSE(text.ok());
  EXPECT_EQ(text.status().message(), "text: byte 2 is 0xFF, which is not valid UTF-8 there");
  // A character may not be divided between segments.
  const auto segments = tokenizer->EncodeSegments(
      std::vector<TextSegment>{{"a", true}, {"b\xC3", false}, {"\xA9", true}});
  ASSERT_FALSE(segments.ok());
  EXPECT_EQ(segments.status().message(),
            "segment 1: byte 1 is 0xC3, which is not valid UTF-8 there");
}

TEST(Tokenizer, DecodesOnlyIdsOfTheVocabulary) {
  const auto tokenizer = MakeFrom(TinySentencePieceVocab());
  const auto text = tokenizer->Decode(std::vector<TokenId>{1, 259, 279});
  ASSERT_FALSE(text.ok());
  EXPECT_EQ(text.status().message(), "token 2 has id 279, but there are 279 tokens");
  EXPECT_FALSE(tokenizer->Decode(std::vector<TokenId>{-1}).ok());
}

TEST(Tokenizer, NamesOfSpecialTokensAreShownOnRequest) {
  const auto tokenizer = MakeFrom(TinySentencePieceVocab());
  const auto ids = tokenizer->Encode("a").value();
  EXPECT_EQ(tokenizer->Decode(ids).value(), "a");
  EXPECT_EQ(tokenizer->Decode(ids, {.keep_special = true}).value(), "<s>a");
  EXPECT_EQ(tokenizer->Decode(std::vector<TokenId>{259}, {.at_start = false}).value(), " a");
}

TEST(Tokenizer, KnowsTheTokensThatEndAnAnswer) {
  const auto tokenizer = MakeFrom(TinySentencePieceVocab());
  const auto id_of = [&](std::string_view text) {
    const auto& tokens = tokenizer->vocab().tokens;
    return static_cast<TokenId>(std::find(tokens.begin(), tokens.end(), text) - tokens.begin());
  };
  EXPECT_TRUE(tokenizer->IsEndOfGeneration(2));
  EXPECT_TRUE(tokenizer->IsEndOfGeneration(id_of("<|im_end|>")));
  EXPECT_FALSE(tokenizer->IsEndOfGeneration(1));
  EXPECT_FALSE(tokenizer->IsEndOfGeneration(id_of("<tool>")));
  // By its name it is a control token, whatever the file says.
  EXPECT_TRUE(tokenizer->IsSpecial(id_of("<|im_end|>")));
}

TEST(Tokenizer, WhereAnswersHavePartsTheEndOfAPartIsNotTheEnd) {
  Vocab vocab = TinyByteLevelVocab();
  const auto end = static_cast<TokenId>(vocab.tokens.size());
  vocab.tokens.insert(vocab.tokens.end(), {"<|end|>", "<|call|>", "<|return|>"});
  vocab.types.resize(vocab.tokens.size(), TokenType::kControl);
  EXPECT_FALSE(MakeFrom(vocab)->IsEndOfGeneration(end));
  EXPECT_TRUE(MakeFrom(vocab)->IsEndOfGeneration(end + 1));
  vocab.tokens.back() = "<|other|>";
  EXPECT_TRUE(MakeFrom(vocab)->IsEndOfGeneration(end));
}

TEST(Tokenizer, UnknownPreTokenizerIsAnErrorThatNamesTheFile) {
  Vocab vocab = TinyByteLevelVocab("qwen9");
  vocab.origin = "m.gguf";
  const auto tokenizer = MakeTokenizer(vocab);
  ASSERT_FALSE(tokenizer.ok());
  EXPECT_EQ(tokenizer.status().code(), Code::kUnimplemented);
  EXPECT_THAT(tokenizer.status().message(), HasSubstr("m.gguf: pre-tokenizer 'qwen9'"));
  vocab.pre.clear();  // files older than the key: as 'default', with a warning
  EXPECT_TRUE(MakeTokenizer(vocab).ok());
}

TEST(Tokenizer, RefusesAWordLongerThanItHasMemoryForAndNoTextOfShorterOnes) {
  for (const Vocab& vocab : {TinySentencePieceVocab(), TinyByteLevelVocab("gpt-2")}) {
    const auto tokenizer = MakeFrom(vocab);
    const std::string longest(16, 'a');  // blanks count, as what stands for them
    const std::string text = longest + " " + longest;
    const auto unlimited = tokenizer->Encode(text).value();
    tokenizer->LimitWords(24);
    EXPECT_EQ(tokenizer->Encode(text).value(), unlimited);
    const Status status = tokenizer->Encode("b " + longest + longest).status();
    EXPECT_EQ(status.code(), Code::kInvalidArgument);
    EXPECT_THAT(status.message(), HasSubstr("a word of more than 24 bytes"));
  }
}

TEST(Tokenizer, AnyTextComesBack) {
  Rng rng(TestSeed());
  const auto sentence_piece = MakeFrom(TinySentencePieceVocab());
  const auto byte_level = MakeFrom(TinyByteLevelVocab("llama-bpe"));
  constexpr std::string_view kParts[] = {
      "hello",         " ", "  ", "a", "b",  "c", "<tool>", "</s>",
      "<|endoftext|>", "é", "1",  "2", "\n", "😀", "<0x41>"};
  for (int round = 0; round < 5000; ++round) {
    std::string text;
    for (std::uint64_t left = rng.Below(12); left > 0; --left) text += kParts[rng.Below(15)];
    for (const Tokenizer* tokenizer : {sentence_piece.get(), byte_level.get()}) {
      const EncodeOptions options = {.parse_special = rng.Below(2) == 0};
      const auto ids = tokenizer->Encode(text, options).value();
      // BOS is not of the text, but names of control tokens in it are.
      const std::size_t bos = tokenizer->vocab().add_bos ? 1 : 0;
      ASSERT_EQ(tokenizer->Decode(std::span(ids).subspan(bos), {.keep_special = true}).value(),
                text);
    }
  }
}

}  // namespace
}  // namespace troupe
