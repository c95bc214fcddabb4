#include "text/draft/same_vocabulary.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace troupe {
namespace {

using testing::StrEq;

Vocab TestVocab(std::string origin) {
  Vocab vocab{.origin = std::move(origin), .tokens = {"<s>", "</s>", "a", "b\n"}, .bos = 0};
  vocab.eos = 1;
  return vocab;
}

std::string HowTheyDiffer(const Vocab& draft) {
  const Status status = CheckSameVocabulary(TestVocab("large.gguf"), draft);
  EXPECT_TRUE(status.ok() || status.code() == Code::kInvalidArgument);
  return status.ok() ? "" : std::string(status.message());
}

TEST(SameVocabulary, IsOneOfTheSameTokens) {
  EXPECT_THAT(HowTheyDiffer(TestVocab("small.gguf")), StrEq(""));
}

TEST(SameVocabulary, IsOneThatCutsTextOtherwise) {
  Vocab draft = TestVocab("small.gguf");
  draft.merges = {"a b"};
  draft.add_bos = true;
  EXPECT_THAT(HowTheyDiffer(draft), StrEq(""));
}

TEST(SameVocabulary, IsNotOneOfAnotherSize) {
  Vocab draft = TestVocab("small.gguf");
  draft.tokens.emplace_back("c");
  EXPECT_THAT(HowTheyDiffer(draft),
              StrEq("small.gguf: not the vocabulary of large.gguf: 5 tokens, expected 4"));
}

TEST(SameVocabulary, IsNotOneWithOtherSpecialTokens) {
  Vocab draft = TestVocab("small.gguf");
  draft.eos = 2;
  EXPECT_THAT(HowTheyDiffer(draft),
              StrEq("small.gguf: not the vocabulary of large.gguf: what ends a text is token 2, "
                    "expected token 1"));
  draft.eos.reset();
  EXPECT_THAT(HowTheyDiffer(draft),
              StrEq("small.gguf: not the vocabulary of large.gguf: what ends a text is none, "
                    "expected token 1"));
}

TEST(SameVocabulary, IsNotOneWithAnotherPiece) {
  Vocab draft = TestVocab("small.gguf");
  draft.tokens[3] = "b";
  EXPECT_THAT(HowTheyDiffer(draft),
              StrEq("small.gguf: not the vocabulary of large.gguf: token 3 is \"b\", expected "
                    "\"b\\n\""));
}

}  // namespace
}  // namespace troupe
