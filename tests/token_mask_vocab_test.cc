// Token masks over real vocabularies, held to trying every token: an answer in JSON, token by
// token.
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/rng.h"
#include "base/sanitized.h"
#include "test_vocab.h"
#include "testing/test_seed.h"
#include "text/grammar/gbnf.h"
#include "text/grammar/json_schema.h"
#include "text/grammar/token_constraint.h"

namespace troupe {
namespace {

constexpr std::string_view kPeople =
    R"({"type": "object", "required": ["name", "age"], "properties": {
    "name": {"type": "string", "minLength": 1, "maxLength": 40},
    "age": {"type": "integer", "minimum": 0, "maximum": 150},
    "tags": {"type": "array", "items": {"enum": ["red", "green", "blue"]}, "maxItems": 5},
    "born": {"type": "string", "format": "date"},
    "more": {"type": "object"}}})";

// Each token is tried at each.
constexpr int kStepsOfATest = kSanitized ? 3 : 25;

void ExpectMasksAreExact(const Tokenizer& tokenizer, const Grammar& grammar, std::uint64_t seed) {
  Rng rng(seed);
  const auto masks =
      std::make_shared<TokenMasks>(Automaton::Compile(grammar).value(), MakeVocabTrie(tokenizer));
  TokenConstraint constraint(masks);
  Matcher matcher(masks->automaton());
  for (int step = 0; step < kStepsOfATest; ++step) {
    const TokenSet& allowed = *constraint.Allowed().value();
    std::vector<TokenId> texts;
    for (std::size_t i = 0; i < tokenizer.size(); ++i) {
      const auto token = static_cast<TokenId>(i);
      bool expected = false;
      if (tokenizer.IsEndOfGeneration(token)) {
        expected = matcher.CanEnd().value();
      } else if (!tokenizer.IsSpecial(token) && !tokenizer.TokenBytes(token).empty()) {
        Matcher copy = matcher;
        expected = copy.Accept(tokenizer.TokenBytes(token)).value();
        if (expected) texts.push_back(token);
      }
      ASSERT_EQ(allowed.Has(token), expected)
          << token << " '" << tokenizer.TokenBytes(token) << "'";
    }
    if (texts.empty()) break;
    const TokenId token = texts[rng.Below(texts.size())];
    ASSERT_TRUE(constraint.Advance(token).ok());
    ASSERT_TRUE(matcher.Accept(tokenizer.TokenBytes(token)).value());
  }
}

TEST(TokenMaskVocab, MasksAreExactForRealVocabularies) {
  const Grammar people = CompileJsonSchema(Json::Parse(kPeople).value()).value();
  const Grammar lines =
      ParseGbnf("root ::= (\"- \" word (\" \" word)* \"\\n\")+\nword ::= [a-zé]{1,9}").value();
  for (const char* name : {"llama-spm", "gpt-2"}) {
    const auto tokenizer = LoadTestTokenizer(name).value();
    ExpectMasksAreExact(*tokenizer, people, TestSeed());
    ExpectMasksAreExact(*tokenizer, lines, TestSeed());
  }
}

TEST(TokenMaskVocab, ATokenizedAnswerIsAllowedTokenByToken) {
  const Grammar people = CompileJsonSchema(Json::Parse(kPeople).value()).value();
  const std::string answer =
      R"({"name": "Zoé \"Z\" 東京", "age": 41, "tags": ["red", "blue"], "born": "1983-02-28", "more": {"k": [1.5]}})";
  for (const char* name : {"gpt-2", "deepseek-llm"}) {
    const auto tokenizer = LoadTestTokenizer(name).value();
    TokenConstraint constraint(std::make_shared<TokenMasks>(Automaton::Compile(people).value(),
                                                            MakeVocabTrie(*tokenizer)));
    const auto tokens = tokenizer->Encode(answer, {.add_special = false}).value();
    for (const TokenId token : tokens) {
      ASSERT_TRUE(constraint.Allowed().value()->Has(token)) << tokenizer->TokenBytes(token);
      ASSERT_TRUE(constraint.Advance(token).ok());
    }
    EXPECT_TRUE(constraint.IsDone().value());
  }
}

}  // namespace
}  // namespace troupe
