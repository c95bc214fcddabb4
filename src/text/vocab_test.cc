#include "text/vocab.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "text/tiny_vocab_for_test.h"

namespace troupe {
namespace {

using testing::HasSubstr;

void ExpectRefused(const Vocab& vocab, std::string_view message) {
  const Status status = vocab.Validate();
  ASSERT_FALSE(status.ok()) << "expected: " << message;
  EXPECT_EQ(status.code(), Code::kInvalidArgument);
  EXPECT_EQ(status.message(), message);
}

TEST(Vocab, OfEitherKindIsAccepted) {
  EXPECT_EQ(TinySentencePieceVocab().Validate(), OkStatus());
  EXPECT_EQ(TinyByteLevelVocab().Validate(), OkStatus());
}

TEST(Vocab, NeedsTokens) {
  Vocab vocab;
  vocab.origin = "m.gguf";
  ExpectRefused(vocab, "m.gguf: no tokens");
}

TEST(Vocab, CountsMustAgree) {
  Vocab vocab = TinySentencePieceVocab();
  vocab.scores.pop_back();
  ExpectRefused(vocab, "vocabulary: 278 scores for 279 tokens");
  vocab.scores.clear();
  ExpectRefused(vocab, "vocabulary: 0 scores for 279 tokens");
  vocab = TinySentencePieceVocab();
  vocab.types.pop_back();
  ExpectRefused(vocab, "vocabulary: 278 token types for 279 tokens");
  vocab = TinySentencePieceVocab();
  vocab.scores[7] = std::nanf("");
  ExpectRefused(vocab, "vocabulary: the score of token 7 is no number");
}

TEST(Vocab, IdsMustNameTokens) {
  Vocab vocab = TinySentencePieceVocab();
  vocab.eot = 279;
  ExpectRefused(vocab, "vocabulary: eot token has id 279, but there are 279 tokens");
  vocab = TinySentencePieceVocab();
  vocab.pad = -1;
  ExpectRefused(vocab, "vocabulary: pad token has id -1, but there are 279 tokens");
  vocab = TinySentencePieceVocab();
  vocab.bos.reset();
  ExpectRefused(vocab, "vocabulary: texts shall begin with BOS, but no BOS token is named");
  vocab = TinySentencePieceVocab();
  vocab.eos.reset();
  vocab.add_eos = true;
  ExpectRefused(vocab, "vocabulary: texts shall end with EOS, but no EOS token is named");
}

TEST(Vocab, ATokenMayNotBeThereTwice) {
  Vocab vocab = TinySentencePieceVocab();
  vocab.tokens[270] = vocab.tokens[260];
  ExpectRefused(vocab, "vocabulary: token 'he' is there twice, as 260 and 270");
  vocab.model = TokenizerModel::kRankedPieces;  // Gemma 4's is published so
  ExpectRefused(vocab, "vocabulary: a tokenizer by merges without any");
  vocab.merges = {"h e"};
  EXPECT_EQ(vocab.Validate(), OkStatus());
}

TEST(Vocab, MergesMustNameTokens) {
  Vocab vocab = TinyByteLevelVocab();
  vocab.merges[3] = "hello";
  ExpectRefused(vocab,
                "vocabulary: merge 3 is 'hello', expected two tokens and a blank between them");
  vocab.merges[3] = "q u";
  ExpectRefused(vocab, "vocabulary: merge 3 is 'q u', but 'qu' is no token");
  vocab.merges.clear();
  ExpectRefused(vocab, "vocabulary: a tokenizer by merges without any");
}

TEST(Vocab, BytesToFallBackToMustBeThereUnlessThereIsAnUnknownToken) {
  Vocab vocab = TinySentencePieceVocab();
  vocab.tokens[3 + 0x41] = "something else";
  EXPECT_EQ(vocab.Validate(), OkStatus());
  vocab.unk.reset();
  ExpectRefused(vocab,
                "vocabulary: byte 0x41 has no token ('<0x41>'), and there is no unknown token");
  vocab = TinySentencePieceVocab();
  vocab.unk.reset();
  vocab.types[3 + 0x41] = TokenType::kControl;  // there, but text may not become it
  EXPECT_THAT(vocab.Validate().message(), HasSubstr("byte 0x41"));
  vocab = TinyByteLevelVocab();
  vocab.tokens['q'] = "something else";
  ExpectRefused(vocab, "vocabulary: byte 0x71 has no token ('q'), and there is no unknown token");
}

TEST(Vocab, BytesThatNoValidTextHasMayBeMissing) {
  Vocab vocab = TinySentencePieceVocab();
  vocab.unk.reset();
  vocab.tokens[3 + 0xC0] = "x1";
  vocab.tokens[3 + 0xFF] = "x2";
  EXPECT_EQ(vocab.Validate(), OkStatus());
}

}  // namespace
}  // namespace troupe
