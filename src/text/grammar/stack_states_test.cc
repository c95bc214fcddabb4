#include "text/grammar/stack_states.h"

#include <gtest/gtest.h>

#include <string>

#include "base/rng.h"
#include "testing/test_seed.h"
#include "text/grammar/gbnf.h"
#include "text/grammar/random_grammar_for_test.h"

namespace troupe {
namespace {

TEST(StackStates, StepAsAMatcherDoes) {
  Rng rng(TestSeed());
  int compared = 0;
  for (int round = 0; round < 200; ++round) {
    const Grammar grammar = RandomGrammar(rng);
    const auto automaton = Automaton::Compile(grammar).value();
    if (automaton->start() == Automaton::kReturnNode) continue;  // the empty text alone
    StackStates states(automaton, 10'000);
    for (int text = 0; text < 10; ++text) {
      Matcher matcher(automaton);
      StackStates::State state = states.At(automaton->start(), 0, 0);
      for (int step = 0; step < 10; ++step) {
        const char byte = "abc\xC3\xA9"[rng.Below(5)];
        const auto accepted = matcher.Accept({&byte, 1});
        const auto next = states.Step(state, static_cast<std::uint8_t>(byte));
        if (!accepted.ok() || !next.ok()) break;  // too ambiguous
        ASSERT_EQ(*next != StackStates::kNone, *accepted) << ToString(grammar);
        ++compared;
        if (!*accepted) break;
        state = *next;
        const auto can_end = matcher.CanEnd();
        if (!can_end.ok()) break;
        ASSERT_EQ(states.ReachesBottom(state).value(), *can_end);
      }
    }
  }
  EXPECT_GT(compared, 1000);
}

TEST(StackStates, AreFewHoweverLongTheTextIs) {
  const auto automaton =
      Automaton::Compile(ParseGbnf("root ::= \"\\\"\" ([^\"\\\\] | \"\\\\\" .)* \"\\\"\"").value())
          .value();
  StackStates states(automaton, 50);
  StackStates::State state = states.At(automaton->start(), 0, 0);
  for (const char byte : "\"" + std::string(10'000, 'x') + "\\\"é") {
    state = states.Step(state, static_cast<std::uint8_t>(byte)).value();
    ASSERT_NE(state, StackStates::kNone);
  }
  EXPECT_LT(states.size(), 12U);
  states.Clear();
  EXPECT_EQ(states.size(), 1U);
}

}  // namespace
}  // namespace troupe
