#include "text/grammar/gbnf.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <tuple>
#include <vector>

#include "text/grammar/matcher.h"

namespace troupe {
namespace {

std::string ErrorOf(std::string_view text) {
  const auto grammar = ParseGbnf(text);
  return grammar.ok() ? "no error" : std::string(grammar.status().message());
}

bool Matches(std::string_view gbnf, std::string_view text) {
  const auto grammar = ParseGbnf(gbnf);
  EXPECT_TRUE(grammar.ok()) << grammar.status().message();
  if (!grammar.ok()) return false;
  Matcher matcher(Automaton::Compile(*grammar).value());
  return matcher.Accept(text).value() && matcher.CanEnd().value();
}

// Rules are numbered as they are met, so that their order may change.
std::vector<std::string> SortedLines(const std::string& text) {
  std::vector<std::string> lines;
  for (std::size_t from = 0; from < text.size();) {
    const std::size_t end = text.find('\n', from);
    lines.push_back(text.substr(from, end - from));
    from = end + 1;
  }
  std::ranges::sort(lines);
  return lines;
}

TEST(Gbnf, EscapesNameCodePointsInTextsAndClasses) {
  EXPECT_TRUE(
      Matches(R"(root ::= "\x41\u00e9\U0001F600\n\t\r\\\"\[\]")", "A\u00e9\U0001F600\n\t\r\\\"[]"));
  EXPECT_TRUE(Matches(R"(root ::= "\xFF")", "\u00FF"));
  EXPECT_FALSE(Matches(R"(root ::= "\xFF")", "\xFF"));
  EXPECT_TRUE(Matches(R"(root ::= [\x41-\x43\]\u00e9]+)", "AC]\u00e9"));
}

TEST(Gbnf, ClassesHoldRangesAndTheirOpposites) {
  EXPECT_TRUE(Matches("root ::= [a-cx]+", "abcx"));
  EXPECT_FALSE(Matches("root ::= [a-cx]+", "d"));
  EXPECT_TRUE(Matches("root ::= [a-]+", "a-"));  // a dash before the end is itself
  EXPECT_TRUE(Matches("root ::= [-a]+", "a-"));
  EXPECT_TRUE(Matches("root ::= [^\"\\n]", "\u20AC"));
  EXPECT_FALSE(Matches("root ::= [^\"\\n]", "\n"));
  EXPECT_TRUE(Matches("root ::= .", "\n"));
  EXPECT_TRUE(Matches("root ::= .", "\U0010FFFF"));
  EXPECT_FALSE(Matches("root ::= .", "\x80"));
}

TEST(Gbnf, RepetitionsCountAllThatStandsBeforeThem) {
  EXPECT_TRUE(Matches("root ::= \"ab\"*", "abab"));
  EXPECT_FALSE(Matches("root ::= \"ab\"*", "abb"));
  for (const auto& [repetition, least, most] : {std::tuple{"*", 0, 9},
                                                {"+", 1, 9},
                                                {"?", 0, 1},
                                                {"{3}", 3, 3},
                                                {"{2,}", 2, 9},
                                                {"{ 2 , 4 }", 2, 4},
                                                {"{0}", 0, 0},
                                                {"{2}{2}", 4, 4},
                                                {"?*", 0, 9},
                                                {"{1,2}+", 1, 9}}) {
    for (int n = 0; n < 8; ++n) {
      const bool expected = n >= least && n <= most;
      const auto text = std::string(static_cast<std::size_t>(n), 'x');
      EXPECT_EQ(Matches(fmt::format("root ::= \"x\"{}", repetition), text), expected) << repetition;
      EXPECT_EQ(Matches(fmt::format("root ::= x{}\nx ::= \"x\"", repetition), text), expected);
    }
  }
}

TEST(Gbnf, GroupsAlternativesCommentsAndLinesLieWhereLlamaCppHasThem) {
  constexpr std::string_view kArithmetic = R"gbnf(# arithmetic
root  ::= (expr "=" ws term "\n")+   # one line each
expr  ::= term ([-+*/] term)*
term  ::= ident |
          num | "(" ws expr ")" ws
ident ::= [a-z] [a-z0-9_]* ws
num   ::= [0-9]+ ws
ws    ::= [ \t\n]*
)gbnf";
  EXPECT_TRUE(Matches(kArithmetic, "(x +12)*y=7\na=b\n"));
  EXPECT_FALSE(Matches(kArithmetic, "(x +12*y=7\n"));
  EXPECT_TRUE(Matches("root ::= (\n  \"a\" |\n  \"b\"\n  \"c\"\n)", "bc"));
  EXPECT_TRUE(Matches("root ::=\n \"a\"\r\n\r\nunused ::= \"b\"", "a"));
}

TEST(Gbnf, ErrorsNameThePlaceAndWhatWasExpected) {
  EXPECT_EQ(ErrorOf("root ::= \"a\nroot2 := x"),
            "line 2, column 11: found the end, expected '\"', the end of the text");
  EXPECT_EQ(ErrorOf("root := \"a\""), "line 1, column 6: found ':', expected '::='");
  EXPECT_EQ(ErrorOf("\n root ::= \"\u00e9\" )"),
            "line 2, column 15: found ')', expected '|' or the end of the rule");
  EXPECT_EQ(ErrorOf("root ::= (\"a\""), "line 1, column 14: found the end, expected ')'");
  EXPECT_EQ(ErrorOf("root ::= [a"),
            "line 1, column 12: found the end, expected ']', the end of the class");
  EXPECT_EQ(ErrorOf("root ::= [z-a]"), "line 1, column 12: a range that ends before it begins");
  EXPECT_EQ(ErrorOf("root ::= \"\\q\""),
            "line 1, column 12: found 'q', expected one of x u U n r t \\ \" [ ] - ^ / after a "
            "backslash");
  EXPECT_EQ(ErrorOf("root ::= \"\\x4\""),
            "line 1, column 14: found '\"', expected a hexadecimal digit, one of 2");
  EXPECT_EQ(ErrorOf("root ::= \"\\U00110000\""),
            "line 1, column 13: 110000 is no code point, expected at most 10FFFF");
  EXPECT_EQ(ErrorOf("root ::= a{3,2}\na ::= \"\""),
            "line 1, column 11: a repetition that ends before it begins");
  EXPECT_EQ(ErrorOf("root ::= \"a\"{99999999999}"),
            "line 1, column 14: a repetition above 1000000, which is the limit");
  EXPECT_EQ(ErrorOf("root ::= *"),
            "line 1, column 10: found '*', expected a text in quotes, a class, a group, a rule's "
            "name, '|' or the end of the rule");
  EXPECT_EQ(ErrorOf("root ::= x\ny ::= z"),
            "line 1, column 10: rule 'x' is used and nowhere defined");
  EXPECT_EQ(ErrorOf("a ::= \"\"\na ::= \"\""), "line 2, column 1: rule 'a' is defined twice");
  EXPECT_EQ(ErrorOf("a ::= \"\""), "no rule 'root', with which texts begin");
  EXPECT_EQ(ErrorOf("root ::= <think>"),
            "line 1, column 10: a reference to a token, expected text: tokens cannot be named");
  EXPECT_EQ(ErrorOf("root ::= \"\xFF\""), "line 1, column 11: a byte that is not valid UTF-8");
}

TEST(Gbnf, HostileTextsAreRefusedBeforeTheyTakeMemory) {
  EXPECT_EQ(ErrorOf("root ::= " + std::string(100'000, '(')),
            "line 1, column 210: groups nested more than 200 deep");
  GrammarLimits limits;
  limits.rules = 3;
  EXPECT_EQ(ParseGbnf("root ::= (\"a\") (\"b\") (\"c\")", limits).status().code(),
            Code::kResourceExhausted);
  limits = {.items = 3};
  EXPECT_EQ(ParseGbnf("root ::= \"a\" \"b\" \"c\" \"d\"", limits).status().code(),
            Code::kResourceExhausted);
}

TEST(Gbnf, WhatIsPrintedReadsBack) {
  for (const std::string_view text :
       {"root ::= (\"a\" | [^a-z\\]\\x00]{2,} x?)* | \"\"\nx ::= \"\\\"\\\\\\n\u00e9\" "
        "root-1\nroot-1 "
        "::= .",
        "root ::= \"x\" [] | \"y\"", "root ::= [\\uD800-\\uE000] \"\\t\\x7F\""}) {
    const Grammar grammar = ParseGbnf(text).value();
    const std::string printed = ToString(grammar);
    const auto again = ParseGbnf(printed);
    ASSERT_TRUE(again.ok()) << printed << again.status().message();
    EXPECT_EQ(SortedLines(ToString(*again)), SortedLines(printed));
  }
}

}  // namespace
}  // namespace troupe
