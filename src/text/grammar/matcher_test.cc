#include "text/grammar/matcher.h"

#include <gtest/gtest.h>

#include <string>

#include "text/grammar/gbnf.h"

namespace troupe {
namespace {

Matcher Make(std::string_view gbnf, StackLimits limits = {}) {
  return Matcher(Automaton::Compile(ParseGbnf(gbnf).value()).value(), limits);
}

TEST(Matcher, KnowsWhenATextCanEndAndWhenItMust) {
  Matcher matcher = Make("root ::= \"a\" \"b\"? | \"abc\"");
  EXPECT_FALSE(matcher.CanEnd().value());
  EXPECT_TRUE(matcher.Accept("a").value());
  EXPECT_TRUE(matcher.CanEnd().value());
  EXPECT_FALSE(matcher.IsDone().value());
  EXPECT_TRUE(matcher.Accept("bc").value());
  EXPECT_TRUE(matcher.IsDone().value());
  EXPECT_FALSE(matcher.Accept("c").value());
}

TEST(Matcher, StaysWhereItWasWhenBytesDoNotFit) {
  Matcher matcher = Make("root ::= \"abc\"");
  EXPECT_FALSE(matcher.Accept("abx").value());
  EXPECT_TRUE(matcher.Accept("ab").value());
  EXPECT_TRUE(matcher.Accept("").value());
  EXPECT_TRUE(matcher.Accept("c").value());
  EXPECT_TRUE(matcher.CanEnd().value());
}

TEST(Matcher, ACopyGoesOnByItself) {
  Matcher matcher = Make("root ::= \"(\" root \")\" | [0-9]+");
  EXPECT_TRUE(matcher.Accept("((").value());
  Matcher copy = matcher;
  EXPECT_TRUE(copy.Accept("1))").value());
  EXPECT_TRUE(copy.IsDone().value());
  EXPECT_TRUE(matcher.Accept("(2)").value());
  EXPECT_FALSE(matcher.CanEnd().value());
  EXPECT_TRUE(matcher.Accept("))").value());
  EXPECT_TRUE(matcher.IsDone().value());
}

TEST(Matcher, ReadsCharactersByteByByte) {
  Matcher matcher = Make("root ::= [\u00e0-\u00ff\u20ac]");
  const auto first = matcher.AllowedBytes().value();
  EXPECT_EQ(first.count(), 2U);
  EXPECT_TRUE(first[0xC3] && first[0xE2]);
  EXPECT_TRUE(matcher.Accept("\xC3").value());
  EXPECT_FALSE(matcher.CanEnd().value());
  EXPECT_EQ(matcher.AllowedBytes().value().count(), 0x20U);
  EXPECT_TRUE(matcher.Accept("\xBF").value());
  EXPECT_TRUE(matcher.IsDone().value());
}

TEST(Matcher, CountsRepetitionsOfRulesAndCharacters) {
  Matcher matcher = Make("root ::= pair{2,1000} \"!\"\npair ::= [a-z]{3,900} \";\"");
  std::string text;
  for (int i = 0; i < 1000; ++i)
    text += std::string(static_cast<std::size_t>(3 + i % 800), 'x') + ";";
  EXPECT_TRUE(matcher.Accept(text).value());
  EXPECT_FALSE(matcher.Accept("xxx").value());
  EXPECT_TRUE(matcher.Accept("!").value());
  EXPECT_FALSE(Make("root ::= pair{2,1000} \"!\"\npair ::= \"x\" \";\"").Accept("x;!").value());
}

TEST(Matcher, ALongListTakesNoMoreMemoryThanAShortOne) {
  Matcher matcher = Make(
      "root ::= item rest\nrest ::= \"\" | \",\" item rest\nitem ::= [0-9]+ | \"[\" root \"]\"");
  EXPECT_TRUE(matcher.Accept("1,[2,[3").value());
  const std::size_t few = matcher.pool().size();
  for (int i = 0; i < 20'000; ++i) ASSERT_TRUE(matcher.Accept(",12345").value());
  EXPECT_LE(matcher.pool().size(), few + 1024);
  EXPECT_TRUE(matcher.Accept("]],1").value());
  EXPECT_TRUE(matcher.CanEnd().value());
}

TEST(Matcher, EveryAcceptedBeginningHasAnEnd) {
  // "ac..." would never end, so that 'c' is refused at once.
  Matcher matcher =
      Make("root ::= \"a\" (\"b\" | \"c\" never) []?\nnever ::= \"x\" never | \"y\" []");
  EXPECT_TRUE(matcher.Accept("a").value());
  EXPECT_EQ(matcher.AllowedBytes().value().count(), 1U);
  EXPECT_FALSE(matcher.Accept("c").value());
}

TEST(Matcher, RepetitionsOfWhatMayBeEmptyEnd) {
  Matcher matcher = Make("root ::= (\"a\"? \"b\"?)* inner{5} \"c\"\ninner ::= \"i\"?");
  EXPECT_TRUE(matcher.Accept("abbaii").value());
  EXPECT_TRUE(matcher.Accept("c").value());
  EXPECT_TRUE(matcher.IsDone().value());
}

TEST(Matcher, ManyWaysToReadATextCostLittleWhenTheyDifferOnlyBelow) {
  // After n letters 2^n stacks differ.
  Matcher matcher = Make("root ::= \"a\" root \"b\" | \"a\" root \"c\" | \"d\"");
  for (int i = 0; i < 200; ++i) ASSERT_TRUE(matcher.Accept("a").value());
  EXPECT_LT(matcher.pool().size(), 1500U);
  std::string rest = "d";
  for (int i = 0; i < 200; ++i) rest += i % 3 == 0 ? 'b' : 'c';
  EXPECT_TRUE(matcher.Accept(rest).value());
  EXPECT_TRUE(matcher.IsDone().value());
}

TEST(Matcher, AmbiguityBeyondTheLimitsIsAnErrorAndNoEndlessWork) {
  // Each rule calls the next in two ways before anything is read.
  std::string gbnf = "root ::= r0";
  for (int i = 0; i < 40; ++i) {
    gbnf += fmt::format("\nr{} ::= r{} \"x\" | r{} \"y\"", i, i + 1, i + 1);
  }
  gbnf += "\nr40 ::= \"a\"";
  EXPECT_EQ(Make(gbnf).Accept("a").status().code(), Code::kResourceExhausted);
  EXPECT_EQ(Make(gbnf, {.stacks = 1U << 30}).Accept("a").status().code(), Code::kResourceExhausted);
  EXPECT_EQ(Make(gbnf, {.stacks = 1U << 30, .work = 1000}).CanEnd().status().code(),
            Code::kResourceExhausted);
}

TEST(Matcher, FewCellsAreEnoughForALongTextAtOnce) {
  Matcher matcher = Make("root ::= (\"(\" root \")\" | [a-z])*", {.cells = 600});
  std::string text;
  for (int i = 0; i < 5000; ++i) text += i % 2 == 0 ? "((a)b)" : "c";
  EXPECT_TRUE(matcher.Accept(text).value());
  EXPECT_LT(matcher.pool().bytes(), 200_KiB);
}

}  // namespace
}  // namespace troupe
