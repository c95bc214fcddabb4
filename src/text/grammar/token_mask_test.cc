#include "text/grammar/token_mask.h"

#include <gtest/gtest.h>

#include <optional>
#include <string>

#include "base/rng.h"
#include "testing/test_seed.h"
#include "text/grammar/answer_mask_limits.h"
#include "text/grammar/gbnf.h"
#include "text/grammar/random_grammar_for_test.h"

namespace troupe {
namespace {

std::shared_ptr<const VocabTrie> TrieOf(const std::vector<std::string>& texts) {
  const std::vector<std::string_view> views(texts.begin(), texts.end());
  return std::make_shared<const VocabTrie>(views, TokenSet(texts.size()));
}

// By trying each token. Nothing if the grammar is too ambiguous, which random ones may be.
std::optional<TokenSet> TriedIfPossible(const VocabTrie& vocab, const Matcher& matcher) {
  TokenSet allowed(vocab.vocabulary());
  for (std::size_t i = 0; i < vocab.vocabulary(); ++i) {
    const auto token = static_cast<TokenId>(i);
    Matcher copy = matcher;
    const Result<bool> accepted = copy.Accept(vocab.TextOf(token));
    if (!accepted.ok()) return std::nullopt;
    if (*accepted && !vocab.TextOf(token).empty()) allowed.Insert(token);
  }
  return allowed;
}

TokenSet Tried(const VocabTrie& vocab, const Matcher& matcher) {
  return TriedIfPossible(vocab, matcher).value();
}

std::string Missing(const VocabTrie& vocab, const TokenSet& one, const TokenSet& other) {
  std::string out;
  for (std::size_t i = 0; i < vocab.vocabulary(); ++i) {
    const auto token = static_cast<TokenId>(i);
    if (one.Has(token) != other.Has(token)) {
      out += fmt::format("{}'{}' ", other.Has(token) ? "-" : "+", vocab.TextOf(token));
    }
  }
  return out;
}

TEST(TokenMasks, AreWhatTryingEachTokenFindsForRandomGrammarsAndVocabularies) {
  Rng rng(TestSeed());
  std::uint64_t compared = 0;
  for (int round = 0; round < 150; ++round) {
    std::vector<std::string> texts = {"a", "b", "c", "\xC3", "\xA9", "\xAA", "\u00e9a"};
    for (int i = 0; i < 60; ++i) {
      std::string text;
      for (std::uint64_t n = rng.Below(7); n > 0; --n) {
        text +=
            rng.Below(8) == 0 ? "\u00ea" : std::string(1, static_cast<char>('a' + rng.Below(3)));
      }
      texts.push_back(text);
    }
    const auto vocab = TrieOf(texts);
    const Grammar grammar = RandomGrammar(rng);
    const auto automaton = Automaton::Compile(grammar).value();
    // Some keep little, so that places are dropped and found again.
    const TokenMaskLimits limits = {.kept = Bytes(rng.Below(2) * 100'000), .states_kept = 20};
    TokenMasks masks(automaton, vocab, limits);
    for (int text = 0; text < 3; ++text) {
      Matcher matcher(automaton);
      for (int step = 0; step < 15; ++step) {
        const auto tried = TriedIfPossible(*vocab, matcher);
        const auto allowed = masks.Allowed(matcher);
        if (!allowed.ok() || !tried) break;
        ASSERT_EQ(*allowed, *tried) << ToString(grammar) << Missing(*vocab, *allowed, *tried);
        ++compared;
        if (allowed->Count() == 0) break;
        TokenId token = 0;
        while (!allowed->Has(token) || rng.Below(4) != 0) {
          token = static_cast<TokenId>(rng.Below(texts.size()));
        }
        ASSERT_TRUE(matcher.Accept(vocab->TextOf(token)).value());
      }
    }
  }
  EXPECT_GT(compared, 500U);
}

TEST(TokenMasks, CountersThatATokenCannotExhaustAreOnePlace) {
  const auto automaton =
      Automaton::Compile(ParseGbnf("root ::= \"[\" [a-z]{5,1000} \"]\"").value()).value();
  const auto vocab = TrieOf({"[", "]", "a", "aa", "aaa]", "a]", "[a"});
  TokenMasks masks(automaton, vocab);
  Matcher matcher(automaton);
  EXPECT_EQ(masks.Allowed(matcher).value(), Tried(*vocab, matcher));
  ASSERT_TRUE(matcher.Accept("[").value());
  for (int i = 0; i < 1000; ++i) {
    ASSERT_EQ(masks.Allowed(matcher).value(), Tried(*vocab, matcher)) << i;
    ASSERT_TRUE(matcher.Accept("a").value());
  }
  EXPECT_EQ(masks.Allowed(matcher).value(), Tried(*vocab, matcher));
  // The longest token has 4 bytes: 5 needs and 5 rooms differ at most, and the brackets.
  EXPECT_LE(masks.places_walked(), 14U);
}

TEST(TokenMasks, APlaceIsWalkedOnceWhateverTheStackBelowIt) {
  const auto automaton =
      Automaton::Compile(ParseGbnf("root ::= \"(\" root \")\" | [0-9]+").value()).value();
  const auto vocab = TrieOf({"(", ")", "1", "1)", "1))", "1)))", "))", "(1", "(("});
  TokenMasks masks(automaton, vocab);
  Matcher matcher(automaton);
  for (int depth = 0; depth < 50; ++depth) {
    ASSERT_TRUE(matcher.Accept("(").value());
    Matcher inner = matcher;
    ASSERT_TRUE(inner.Accept("1").value());
    ASSERT_EQ(masks.Allowed(inner).value(), Tried(*vocab, inner)) << depth;
    ASSERT_EQ(masks.Allowed(matcher).value(), Tried(*vocab, matcher)) << depth;
  }
  EXPECT_LE(masks.places_walked(), 4U);
}

TEST(TokenMasks, WhatIsKeptStaysWithinItsLimit) {
  const auto vocab = TrieOf(std::vector<std::string>(6400, "a"));  // 800 bytes a set
  const auto automaton = Automaton::Compile(ParseGbnf("root ::= \"aaaaaaaaaaaa\"").value()).value();
  TokenMasks masks(automaton, vocab, {.kept = 2_KiB});
  Matcher matcher(automaton);
  for (int i = 0; i < 12; ++i) {
    EXPECT_EQ(masks.Allowed(matcher).value().Count(), 6400U);
    EXPECT_LE(masks.places_kept(), 3U);  // one more than fits, until the next
    ASSERT_TRUE(matcher.Accept("a").value());
  }
  EXPECT_EQ(masks.Allowed(matcher).value().Count(), 0U);
}

TEST(TokenMasks, WorkIsTheSameWhateverWasFoundBefore) {
  Rng rng(TestSeed());
  int failed = 0, compared = 0;
  for (int round = 0; round < 100; ++round) {
    std::vector<std::string> texts = {"a", "b", "c", "\xC3", "\xA9"};
    for (int i = 0; i < 40; ++i) {
      std::string text;
      for (std::uint64_t n = 1 + rng.Below(6); n > 0; --n) text += "abc"[rng.Below(3)];
      texts.push_back(text);
    }
    const auto vocab = TrieOf(texts);
    const auto automaton = Automaton::Compile(RandomGrammar(rng)).value();
    // Few enough that states are dropped between masks, and in the midst of one.
    const TokenMaskLimits limits = {
        .states_kept = 30, .states_at_most = 60, .work = 500 + rng.Below(20'000)};
    TokenMasks asked_before(automaton, vocab, limits);
    for (int text = 0; text < 3; ++text) {
      Matcher matcher(automaton);
      for (int step = 0; step < 15; ++step) {
        TokenMasks fresh(automaton, vocab, limits);
        const Result<TokenSet> alone = fresh.Allowed(matcher),
                               later = asked_before.Allowed(matcher);
        ASSERT_EQ(alone.status(), later.status());
        ++compared;
        failed += !alone.ok();
        if (alone.ok()) {
          ASSERT_EQ(*alone, *later);
          ASSERT_EQ(fresh.work(), asked_before.work());
        }
        const Result<bool> taken = matcher.Accept(texts[rng.Below(texts.size())]);
        if (!taken.ok()) break;
      }
    }
  }
  EXPECT_GT(failed, 20);
  EXPECT_GT(compared - failed, 500);
}

TEST(TokenMasks, AreNotMadeWhereTheyTakeTooMuchWork) {
  Rng rng(TestSeed());
  std::vector<std::string> texts = {" ", "\""};
  for (int i = 0; i < 4000; ++i) {
    std::string text = rng.Below(2) == 0 ? " " : "";
    for (std::uint64_t n = 1 + rng.Below(8); n > 0; --n) {
      text += static_cast<char>('a' + rng.Below(26));
    }
    texts.push_back(text);
  }
  const auto vocab = TrieOf(texts);
  const auto work_of = [&](const char* grammar) -> Result<std::uint64_t> {
    const auto automaton = Automaton::Compile(ParseGbnf(grammar).value()).value();
    TokenMasks masks(automaton, vocab, kAnswerMaskLimits);
    Matcher matcher(automaton, kAnswerMaskLimits.stacks);
    for (const char letter : std::string("the kernel of the machine")) {
      TROUPE_RETURN_IF_ERROR(masks.Allowed(matcher).status());
      if (!matcher.Accept({&letter, 1}).value()) return Error(Code::kInternal, "does not fit");
    }
    return masks.work();
  };
  const auto costly = work_of("root ::= ([a-z]{0,50} [a-z]{0,50} [ ]?){0,500}");
  EXPECT_EQ(costly.status().code(), Code::kResourceExhausted);
  for (const char* grammar : {"root ::= [a-z ]{0,500}", "root ::= ([a-z]{1,20} \" \"){1,50}",
                              "root ::= word (\" \" word)*\nword ::= [a-z]+"}) {
    EXPECT_LT(work_of(grammar).value(), kAnswerMaskLimits.work / 4) << grammar;
  }
}

TEST(TokenMasks, TooManyStatesAreAnError) {
  std::string word;
  for (int i = 0; i < 200; ++i) word += 'a';
  const auto automaton = Automaton::Compile(ParseGbnf("root ::= [a-z]{300}").value()).value();
  TokenMasks masks(automaton, TrieOf({word}), {.states_at_most = 100});
  EXPECT_EQ(masks.Allowed(Matcher(automaton)).status().code(), Code::kResourceExhausted);
}

TEST(TokenMasks, StatesThatTakeTooMuchMemoryAreAnError) {
  const auto automaton = Automaton::Compile(ParseGbnf("root ::= [a-z]{300}").value()).value();
  const auto allowed = [&](Bytes states) {
    TokenMasks masks(automaton, TrieOf({std::string(200, 'a')}), {.states_bytes = states});
    return masks.Allowed(Matcher(automaton)).status();
  };
  EXPECT_EQ(allowed(4_KiB).code(), Code::kResourceExhausted);
  EXPECT_TRUE(allowed(1_MiB).ok());
}

}  // namespace
}  // namespace troupe
