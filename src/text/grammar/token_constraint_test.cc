#include "text/grammar/token_constraint.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "text/grammar/gbnf.h"
#include "text/tiny_vocab_for_test.h"

namespace troupe {
namespace {

class TokenConstraints : public testing::Test {
 protected:
  TokenConstraint Make(std::string_view gbnf) {
    return TokenConstraint(std::make_shared<TokenMasks>(
        Automaton::Compile(ParseGbnf(gbnf).value()).value(), MakeVocabTrie(*tokenizer_)));
  }
  TokenId Id(std::string_view token) const {
    const auto& tokens = tokenizer_->vocab().tokens;
    return static_cast<TokenId>(std::ranges::find(tokens, token) - tokens.begin());
  }

  std::unique_ptr<Tokenizer> tokenizer_ = MakeTokenizer(TinySentencePieceVocab()).value();
};

TEST_F(TokenConstraints, AllowEndTokensExactlyWhereATextCanEnd) {
  TokenConstraint constraint = Make("root ::= \"hell\" \"o\"?");
  const auto allows = [&](std::string_view token) {
    return constraint.Allowed().value()->Has(Id(token));
  };
  EXPECT_TRUE(allows("h") && allows("he") && allows("hell") && allows("hello"));
  EXPECT_FALSE(allows("</s>") || allows("ll") || allows("▁hello") || allows("<s>"));
  EXPECT_EQ(constraint.Advance(Id("</s>")).message(),
            "token 2 ends the answer before the grammar does");
  ASSERT_TRUE(constraint.Advance(Id("hell")).ok());
  EXPECT_TRUE(allows("o") && allows("</s>") && allows("<|im_end|>"));
  EXPECT_FALSE(allows("<s>") || allows("<unk>"));
  EXPECT_TRUE(constraint.CanEnd().value());
  ASSERT_TRUE(constraint.Advance(Id("o")).ok());
  EXPECT_TRUE(constraint.IsDone().value());
  EXPECT_EQ(constraint.Allowed().value()->Count(), 2U);  // the end tokens
  EXPECT_TRUE(constraint.Advance(Id("</s>")).ok());
}

TEST_F(TokenConstraints, RefuseATokenThatDoesNotFitAndStayWhereTheyAre) {
  TokenConstraint constraint = Make("root ::= \"abc\"");
  EXPECT_FALSE(constraint.Advance(Id("bc")).ok());
  EXPECT_FALSE(constraint.Advance(Id("<s>")).ok());
  EXPECT_FALSE(constraint.Advance(-1).ok());
  EXPECT_FALSE(constraint.Advance(100'000).ok());
  EXPECT_TRUE(constraint.Advance(Id("ab")).ok());
  EXPECT_TRUE(constraint.Advance(Id("c")).ok());
  EXPECT_TRUE(constraint.IsDone().value());
}

TEST_F(TokenConstraints, CopiesGoOnByThemselvesAndShareTheirMasks) {
  TokenConstraint constraint = Make("root ::= \"a\" [bc]*");
  ASSERT_TRUE(constraint.Advance(Id("a")).ok());
  TokenConstraint copy = constraint;
  ASSERT_TRUE(copy.Advance(Id("bc")).ok());
  EXPECT_EQ(*copy.Allowed().value(), *constraint.Allowed().value());
}

TEST(TokenConstraintErrors, AVocabularyWithoutTheTextIsAnError) {
  const std::vector<std::string_view> texts = {"a", "b"};
  TokenConstraint constraint(
      std::make_shared<TokenMasks>(Automaton::Compile(ParseGbnf("root ::= \"ac\"").value()).value(),
                                   std::make_shared<const VocabTrie>(texts, TokenSet(2))));
  EXPECT_TRUE(constraint.Allowed().ok());
  ASSERT_TRUE(constraint.Advance(0).ok());
  EXPECT_FALSE(constraint.Allowed().ok());
}

TEST_F(TokenConstraints, SpecialTokensAreTextOfThoseAnswersOnlyThatShowThem) {
  const TokenId mark = Id("<s>");
  const auto vocab = MakeVocabTrie(*tokenizer_, {&mark, 1});
  const auto automaton = Automaton::Compile(ParseGbnf("root ::= \"<s>a\" | \"b\"").value()).value();
  TokenConstraint with(std::make_shared<TokenMasks>(automaton, vocab), true);
  EXPECT_TRUE(with.Allowed().value()->Has(mark));
  ASSERT_TRUE(with.Advance(mark).ok());
  EXPECT_TRUE(with.Allowed().value()->Has(Id("a")));
  TokenConstraint without(std::make_shared<TokenMasks>(automaton, vocab));
  EXPECT_FALSE(without.Allowed().value()->Has(mark));
  EXPECT_FALSE(without.Advance(mark).ok());
  EXPECT_TRUE(without.Advance(Id("b")).ok());
}

}  // namespace
}  // namespace troupe
