#include "text/grammar/token_mask.h"

#include <gtest/gtest.h>

#include <optional>
#include <string>

#include "base/rng.h"
#include "testing/test_seed.h"
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
