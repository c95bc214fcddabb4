#include "text/grammar/grammar.h"

#include <gtest/gtest.h>

#include "text/grammar/automaton.h"
#include "text/grammar/gbnf.h"
#include "text/grammar/grammar_builder.h"
#include "text/grammar/json_grammar.h"
#include "text/grammar/matcher.h"

namespace troupe {
namespace {

using Item = GrammarItem;

std::string Error(const Grammar& grammar, const GrammarLimits& limits = {}) {
  const Status status = Validate(grammar, limits);
  return status.ok() ? "no error" : std::string(status.message());
}

TEST(Grammar, PrintsAsGbnf) {
  Grammar grammar;
  grammar.rules.resize(2);
  grammar.rules[0] = {
      "start",
      {{Item::Text("a\"\n"), Item::Rule(1).Times(2, 5)},
       {Item::Set({{'a', 'z'}, {'-', '-'}, {0x1F600, 0x1F600}}).Times(0, kUnbounded)},
       {}}};
  grammar.rules[1] = {"rest", {{Item::Rule(0), Item::Text("x").Times(3, kUnbounded)}}};
  EXPECT_EQ(ToString(grammar),
            "root ::= \"a\\\"\\n\" rest{2,5} | [\\x2Da-z\\U0001F600]* | \"\"\n"
            "rest ::= root \"x\"{3,}\n");
}

TEST(Grammar, SetsOfCodePointsMergeAndComplement) {
  const CodePointSet set = Normalized({{'x', 'z'}, {'a', 'c'}, {'d', 'f'}, {'b', 'b'}});
  EXPECT_EQ(set, (CodePointSet{{'a', 'f'}, {'x', 'z'}}));
  EXPECT_EQ(Complement(set), (CodePointSet{{0, 'a' - 1}, {'g', 'w'}, {'z' + 1, kLastCodePoint}}));
  EXPECT_EQ(Complement(Complement(set)), set);
  EXPECT_EQ(Complement({}), (CodePointSet{{0, kLastCodePoint}}));
}

TEST(Grammar, LeftRecursionIsAnErrorThatNamesTheRulesAndTheLine) {
  const auto message = [](std::string_view text) {
    const auto grammar = ParseGbnf(text);
    return grammar.ok() ? "no error" : std::string(grammar.status().message());
  };
  EXPECT_EQ(message("root ::= root \"a\" | \"b\""),
            "line 1: rule 'root' begins with itself: root -> root");
  EXPECT_EQ(message("root ::= \"x\" a\na ::= [0-9]* b\nb ::= (\"\" | \"y\") a | \"z\""),
            "line 2: rule 'a' begins with itself: a -> b -> a");
  EXPECT_EQ(message("root ::= (root?)* \"x\""),
            "line 1: rule 'root' begins with itself: root -> root-1 -> root");
  EXPECT_EQ(message("root ::= \"a\" root | \"b\""), "no error");
}

TEST(Grammar, ARootThatMatchesNothingIsAnError) {
  Grammar grammar;
  grammar.rules = {{"a", {{Item::Text("x"), Item::Rule(0)}}, "#/here"}};
  EXPECT_EQ(Error(grammar), "#/here: rule 'a' matches no text of any length");
  grammar.rules[0].alternatives.push_back({Item::Text("y")});
  EXPECT_EQ(Error(grammar), "no error");
}

TEST(Grammar, WhatIsWrongWithARuleIsAnErrorThatNamesIt) {
  Grammar grammar;
  EXPECT_EQ(Error(grammar), "a grammar without a root rule");
  grammar.rules = {{"a", {{Item::Rule(3)}}}};
  EXPECT_EQ(Error(grammar), "rule 'a' refers to rule 3, but there are 1");
  grammar.rules = {{"a", {{Item::Text("x").Times(3, 2)}}}};
  EXPECT_EQ(Error(grammar), "rule 'a': repetition {3,2} ends before it begins");
  grammar.rules = {{"a", {{Item::Text("\xFF")}}}};
  EXPECT_EQ(Error(grammar), "rule 'a': byte 0 of a text is not valid UTF-8");
}

TEST(Grammar, LimitsRefuseWhatIsTooLarge) {
  Grammar grammar;
  grammar.rules = {{"a", {{Item::Text("xyz").Times(0, 50)}}}, {"b", {{Item::Set({{'a', 'b'}})}}}};
  EXPECT_EQ(Error(grammar), "no error");
  EXPECT_EQ(Error(grammar, {.rules = 1}), "a grammar of 2 rules, at most 1 allowed");
  EXPECT_EQ(Error(grammar, {.repetitions = 49}),
            "rule 'a': a repetition of 50, at most 49 allowed");
  for (const GrammarLimits& limits :
       {GrammarLimits{.items = 3}, GrammarLimits{.text_bytes = 2}, GrammarLimits{.ranges = 0}}) {
    EXPECT_EQ(Validate(grammar, limits).code(), Code::kResourceExhausted);
  }
}

TEST(Automaton, RefusesAGrammarOfTooManyStates) {
  const Grammar grammar = ParseGbnf("root ::= \"abcdefghij\" [\u0100-\uFFF0]{5}").value();
  EXPECT_TRUE(Automaton::Compile(grammar).ok());
  const auto refused = Automaton::Compile(grammar, 8);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.status().code(), Code::kResourceExhausted);
}

TEST(Automaton, CountsInsteadOfUnrolling) {
  const auto few = Automaton::Compile(ParseGbnf("root ::= [a-z]{2,3}").value()).value();
  const auto many = Automaton::Compile(ParseGbnf("root ::= [a-z]{2000,900000}").value()).value();
  EXPECT_EQ(few->size(), many->size());
}

TEST(Automaton, AnEnumerationIsReadAsOneTree) {
  std::string text = "root ::= \"\"";
  for (int i = 0; i < 5000; ++i) text += fmt::format(" | \"choice {}\"", i);
  const auto automaton = Automaton::Compile(ParseGbnf(text).value()).value();
  EXPECT_LT(automaton->size(), 12'000U);  // 5000 texts of 10 bytes each would take 50,000
}

TEST(Automaton, BytesThatNoRuleTellsApartHaveOneClass) {
  const auto automaton = Automaton::Compile(ParseGbnf("root ::= [a-y] | \"z\"").value()).value();
  EXPECT_EQ(automaton->ClassOf('a'), automaton->ClassOf('y'));
  EXPECT_NE(automaton->ClassOf('y'), automaton->ClassOf('z'));
  EXPECT_EQ(automaton->ClassOf('0'), automaton->ClassOf('A'));
  EXPECT_EQ(automaton->classes(), 4U);
}

TEST(GrammarBuilder, GrammarsPutTogetherKeepTheirOwnRules) {
  GrammarBuilder builder;
  const GrammarItem first = builder.AddGrammar(ParseGbnf("root ::= x x\nx ::= \"a\"").value());
  const GrammarItem second = builder.AddGrammar(ParseGbnf("root ::= x\nx ::= \"b\"").value());
  const std::size_t before = builder.rules();
  const GrammarItem json = builder.AddGrammar(JsonObjectGrammar());
  EXPECT_EQ(builder.rules(), before);  // the rules for JSON are there already
  const RuleId root = builder.Add("root", {{first, second, json}}).rule;
  const Grammar grammar = std::move(builder).Take(root);
  EXPECT_TRUE(Validate(grammar).ok());
  Matcher matcher(Automaton::Compile(ParseGbnf(ToString(grammar)).value()).value());
  EXPECT_TRUE(matcher.Accept("aab{}").value());
  EXPECT_TRUE(matcher.IsDone().value());
}

}  // namespace
}  // namespace troupe
