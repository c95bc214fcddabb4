#include "text/stream_decoder.h"

#include <gtest/gtest.h>

#include "base/rng.h"
#include "testing/test_seed.h"
#include "text/tiny_vocab_for_test.h"
#include "text/utf8.h"

namespace troupe {
namespace {

constexpr TokenId kFirstByte = 3;  // of TinySentencePieceVocab

TokenId Byte(int byte) { return kFirstByte + byte; }

class StreamDecoding : public testing::Test {
 protected:
  const std::unique_ptr<Tokenizer> tokenizer_ = MakeTokenizer(TinySentencePieceVocab()).value();
};

TEST_F(StreamDecoding, HoldsCharactersBackUntilTheyAreComplete) {
  StreamDecoder decoder(*tokenizer_);
  EXPECT_EQ(decoder.Push(Byte(0xF0)), "");
  EXPECT_EQ(decoder.Push(Byte(0x9F)), "");
  EXPECT_EQ(decoder.Push(Byte(0x98)), "");
  EXPECT_EQ(decoder.Push(Byte(0x80)), "😀");
  EXPECT_EQ(decoder.Push(Byte('!')), "!");
  EXPECT_EQ(decoder.Flush(), "");
}

TEST_F(StreamDecoding, ReplacesWhatCanBeNoCharacterAtOnce) {
  StreamDecoder decoder(*tokenizer_);
  EXPECT_EQ(decoder.Push(Byte(0xFF)), "\uFFFD");
  EXPECT_EQ(decoder.Push(Byte(0xE2)), "");
  EXPECT_EQ(decoder.Push(Byte(0x82)), "");
  EXPECT_EQ(decoder.Push(Byte('a')), "\uFFFDa");  // one for the longest beginning
}

TEST_F(StreamDecoding, EndsWithAReplacementForACharacterThatIsCutShort) {
  StreamDecoder decoder(*tokenizer_);
  EXPECT_EQ(decoder.Push(Byte(0xE2)), "");
  EXPECT_EQ(decoder.Push(Byte(0x82)), "");
  EXPECT_EQ(decoder.Flush(), "\uFFFD");
  EXPECT_EQ(decoder.Flush(), "");
}

TEST_F(StreamDecoding, KeepsTheBlankThatSeparatesAnAnswerFromItsPrompt) {
  const auto hello = tokenizer_->Encode("hello", {.add_special = false}).value();
  ASSERT_EQ(hello.size(), 1u);
  StreamDecoder continues(*tokenizer_);
  EXPECT_EQ(continues.Push(hello[0]), " hello");
  StreamDecoder begins(*tokenizer_, {.at_start = true});
  EXPECT_EQ(begins.Push(hello[0]), "hello");
  EXPECT_EQ(begins.Push(hello[0]), " hello");
}

TEST_F(StreamDecoding, ShowsControlTokensOnRequestAlone) {
  StreamDecoder silent(*tokenizer_);
  EXPECT_EQ(silent.Push(2), "");
  StreamDecoder open(*tokenizer_, {.keep_special = true});
  EXPECT_EQ(open.Push(2), "</s>");
}

TEST_F(StreamDecoding, IsAlwaysValidAndLosesNothingValid) {
  Rng rng(TestSeed());
  for (int round = 0; round < 2000; ++round) {
    StreamDecoder decoder(*tokenizer_);
    std::vector<TokenId> ids;
    std::string streamed;
    for (std::uint64_t left = rng.Below(20); left > 0; --left) {
      ids.push_back(static_cast<TokenId>(rng.Below(tokenizer_->size())));
      streamed += decoder.Push(ids.back());
      ASSERT_FALSE(FindInvalidUtf8(streamed).has_value());
    }
    streamed += decoder.Flush();
    ASSERT_FALSE(FindInvalidUtf8(streamed).has_value());
    const std::string whole = tokenizer_->Decode(ids, {.at_start = false}).value();
    if (!FindInvalidUtf8(whole).has_value()) {
      ASSERT_EQ(streamed, whole);
    } else {
      ASSERT_NE(streamed.find(kReplacementCharacter), std::string::npos);
    }
  }
}

TEST_F(StreamDecoding, ShowsTheSpecialTokensThatItIsToldToShow) {
  StreamDecoder decoder(*tokenizer_);
  decoder.Show({1});
  EXPECT_EQ(decoder.Push(1), "<s>");
  EXPECT_EQ(decoder.Push(2), "");
}

}  // namespace
}  // namespace troupe
