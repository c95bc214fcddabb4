#include "text/draft/grammar_drafter.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "text/grammar/gbnf.h"
#include "text/tiny_vocab_for_test.h"

namespace troupe {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

class GrammarDrafts : public testing::Test {
 protected:
  std::shared_ptr<TokenConstraint> Of(std::string_view grammar) const {
    return std::make_shared<TokenConstraint>(std::make_shared<TokenMasks>(
        Automaton::Compile(ParseGbnf(grammar).value()).value(), MakeVocabTrie(*tokenizer_)));
  }
  std::string TextOf(const Draft& draft) const { return tokenizer_->Decode(draft.tokens).value(); }

  std::unique_ptr<Tokenizer> tokenizer_ = MakeTokenizer(TinyByteLevelVocab()).value();
};

TEST_F(GrammarDrafts, SayWhatTheRuleForcesButForTheLastToken) {
  const auto constraint = Of("root ::= \"{x:\" [0-9] \"}\"");
  GrammarDrafter drafter(constraint);
  EXPECT_EQ(TextOf(drafter.Propose(8)), "{x");
  EXPECT_EQ(TextOf(drafter.Propose(1)), "{");
  for (const char byte : std::string_view("{x:")) {
    ASSERT_TRUE(constraint->Advance(static_cast<unsigned char>(byte)).ok());
  }
  EXPECT_THAT(drafter.Propose(8).tokens, IsEmpty());
}

TEST_F(GrammarDrafts, TakeTheLongestTokens) {
  GrammarDrafter drafter(Of("root ::= \"xabq\" [0-9]"));
  const Draft draft = drafter.Propose(8);
  EXPECT_THAT(draft.tokens, ElementsAre('x', tokenizer_->Encode("ab").value().at(0)));
  EXPECT_EQ(draft.evidence, 3u);
}

TEST_F(GrammarDrafts, SayNothingWhereTheAnswerMayEnd) {
  const auto constraint = Of("root ::= \"ok\" (\"!!!\")?");
  GrammarDrafter drafter(constraint);
  EXPECT_EQ(TextOf(drafter.Propose(8)), "o");
  for (const char byte : std::string_view("ok")) {
    ASSERT_TRUE(constraint->Advance(static_cast<unsigned char>(byte)).ok());
  }
  EXPECT_THAT(drafter.Propose(8).tokens, IsEmpty());
}

TEST_F(GrammarDrafts, LeaveTheConstraintWhereItIs) {
  const auto constraint = Of("root ::= \"abc\" [0-9]");
  GrammarDrafter drafter(constraint);
  const auto before = drafter.Propose(8).tokens;
  EXPECT_EQ(drafter.Propose(8).tokens, before);
  EXPECT_TRUE(constraint->Advance('a').ok());
}

}  // namespace
}  // namespace troupe
