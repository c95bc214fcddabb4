#include "text/grammar/lazy_grammar.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "base/rng.h"
#include "testing/test_seed.h"
#include "text/grammar/gbnf.h"
#include "text/grammar/matcher.h"

namespace troupe {
namespace {

bool Fits(const Grammar& grammar, std::string_view text) {
  Matcher matcher(Automaton::Compile(grammar).value());
  return matcher.Accept(text).value() && matcher.CanEnd().value();
}

TEST(LazyGrammar, IsFreeUntilATriggerAndAfterItsText) {
  const std::vector<std::string> triggers = {"<call>"};
  const Grammar grammar =
      AfterTriggers(ParseGbnf("root ::= [0-9]+ \"</call>\"").value(), triggers).value();
  for (const char* text : {"", "no call é", "<cal", "<<call>12</call> and <call>3</call>",
                           "<cal<call>1</call>", "call> <call", "<call>5</call><call>6</call>"}) {
    EXPECT_TRUE(Fits(grammar, text)) << text;
  }
  for (const char* text :
       {"<call>", "<call>x", "a <call>12", "<call>1</call><call>x</call>", "\xFF"}) {
    EXPECT_FALSE(Fits(grammar, text)) << text;
  }
  EXPECT_TRUE(Fits(ParseGbnf(ToString(grammar)).value(), "a <call>12</call>"));
}

TEST(LazyGrammar, StaysSmallHoweverLongTheAnswerIs) {
  const std::vector<std::string> triggers = {"<call>"};
  Matcher matcher(
      Automaton::Compile(AfterTriggers(ParseGbnf("root ::= \"x\"").value(), triggers).value())
          .value());
  for (int i = 0; i < 5000; ++i) ASSERT_TRUE(matcher.Accept("free text <call>x ").value());
  EXPECT_LE(matcher.tops().size(), 4U);
  EXPECT_LE(matcher.pool().size(), 1100U);
}

// With the first trigger that ends soonest, as a search from left to right finds it.
TEST(LazyGrammar, FindsOverlappingTriggersAsASearchDoes) {
  Rng rng(TestSeed());
  for (int round = 0; round < 300; ++round) {
    std::vector<std::string> triggers;
    for (std::uint64_t n = 1 + rng.Below(3); n > 0; --n) {
      std::string trigger;
      for (std::uint64_t m = 1 + rng.Below(4); m > 0; --m) trigger += "ab\u00e9"[rng.Below(2)];
      if (rng.Below(4) == 0) trigger += "\u00e9";
      triggers.push_back(trigger);
    }
    const Grammar grammar = AfterTriggers(ParseGbnf("root ::= \"!\"").value(), triggers).value();
    std::string text;
    for (int i = 0; i < 12; ++i) {
      const std::uint64_t kind = rng.Below(9);
      text += kind == 0 ? "\u00e9" : kind == 1 ? "!" : kind < 6 ? "a" : "b";
    }
    bool expected = true;
    std::size_t free_from = 0;
    for (std::size_t end = 1; end <= text.size() && expected; ++end) {
      const std::string_view free = std::string_view(text).substr(free_from, end - free_from);
      const bool is_call = std::ranges::any_of(
          triggers, [&](const std::string& trigger) { return free.ends_with(trigger); });
      if (!is_call) continue;
      expected = text.substr(end, 1) == "!";
      free_from = end + 1;
    }
    ASSERT_EQ(Fits(grammar, text), expected) << text << "\n" << ToString(grammar);
  }
}

TEST(LazyGrammar, MayWaitForOneTriggerAndEndAfterIt) {
  const std::vector<std::string> triggers = {"</think>"};
  const Grammar after = ParseGbnf("root ::= [0-9]+").value();
  const Grammar once = AfterTriggers(after, triggers, {.repeats = false}).value();
  EXPECT_TRUE(Fits(once, "free"));
  EXPECT_TRUE(Fits(once, "free </think>12"));
  EXPECT_FALSE(Fits(once, "free </think>12 "));
  const Grammar must =
      AfterTriggers(after, triggers, {.repeats = false, .may_be_missing = false}).value();
  EXPECT_FALSE(Fits(must, "free"));
  EXPECT_FALSE(Fits(must, ""));
  EXPECT_TRUE(Fits(must, "<</think>1"));
}

TEST(LazyGrammar, RefusesTriggersThatAreNone) {
  const Grammar grammar = ParseGbnf("root ::= \"x\"").value();
  using Triggers = std::vector<std::string>;
  for (const Triggers& triggers :
       {Triggers{}, Triggers{""}, Triggers{"\xFF"}, Triggers{std::string(5000, 'x')}}) {
    EXPECT_EQ(AfterTriggers(grammar, triggers).status().code(), Code::kInvalidArgument);
  }
}

}  // namespace
}  // namespace troupe
