#include "text/grammar/mask_memory.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/rng.h"
#include "testing/test_seed.h"
#include "text/grammar/gbnf.h"
#include "text/grammar/token_mask.h"

namespace troupe {
namespace {

// 6,400 tokens: what is found at a place takes 800 bytes and more.
std::shared_ptr<const VocabTrie> ManyTokens() {
  std::vector<std::string> texts(6400, "a");
  for (std::size_t i = 0; i < texts.size(); ++i) texts[i] += static_cast<char>('a' + i % 26);
  const std::vector<std::string_view> views(texts.begin(), texts.end());
  return std::make_shared<const VocabTrie>(views, TokenSet(texts.size()));
}

std::shared_ptr<const Automaton> AutomatonOf(const char* gbnf) {
  return Automaton::Compile(ParseGbnf(gbnf).value()).value();
}

constexpr const char* kLong = "root ::= \"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\"";
constexpr const char* kDigits = "root ::= [a-c]{4,90}";

TEST(MaskMemory, TheGrammarsThatWereNotAskedForLongestForget) {
  const auto memory = std::make_shared<MaskMemory>(20_KiB);
  const auto vocab = ManyTokens();
  TokenMasks first(AutomatonOf(kLong), vocab, {}, memory);
  TokenMasks second(AutomatonOf(kLong), vocab, {}, memory);
  Matcher at_first(first.automaton()), at_second(second.automaton());
  for (int i = 0; i < 8; ++i) {
    ASSERT_TRUE(first.Allowed(at_first).ok());
    ASSERT_TRUE(at_first.Accept("a").value());
  }
  EXPECT_EQ(first.places_kept(), 8u);
  for (int i = 0; i < 16; ++i) {
    ASSERT_TRUE(second.Allowed(at_second).ok());
    ASSERT_TRUE(at_second.Accept("a").value());
  }
  EXPECT_EQ(first.places_kept(), 0u);
  EXPECT_EQ(second.places_kept(), 16u);  // its own limit is what bounds the one that is asked
  // What was forgotten is found again.
  EXPECT_EQ(first.Allowed(at_first)->Count(), first.Allowed(Matcher(first.automaton()))->Count());
  EXPECT_EQ(first.places_kept(), 2u);
}

TEST(MaskMemory, WhatIsFoundIsTheSameHoweverLittleThereIs) {
  Rng rng(TestSeed());
  const auto vocab = ManyTokens();
  const auto memory = std::make_shared<MaskMemory>(Bytes(1));
  std::vector<std::unique_ptr<TokenMasks>> sharing, alone;
  std::vector<Matcher> at;
  for (const char* gbnf : {kLong, kDigits, "root ::= \"ab\" root | \"c\""}) {
    const auto automaton = AutomatonOf(gbnf);
    sharing.push_back(std::make_unique<TokenMasks>(automaton, vocab, TokenMaskLimits(), memory));
    alone.push_back(std::make_unique<TokenMasks>(automaton, vocab));
    at.emplace_back(automaton);
  }
  for (int round = 0; round < 200; ++round) {
    const std::size_t i = rng.Below(at.size());
    ASSERT_EQ(sharing[i]->Allowed(at[i]).value(), alone[i]->Allowed(at[i]).value());
    const char byte = "abc"[rng.Below(3)];
    ASSERT_TRUE(at[i].Accept({&byte, 1}).ok());
  }
}

TEST(MaskMemory, GrammarsMayGoOnAnotherThread) {
  const auto memory = std::make_shared<MaskMemory>(4_KiB);
  const auto vocab = ManyTokens();
  const auto automaton = AutomatonOf(kDigits);
  TokenMasks stays(automaton, vocab, {}, memory);
  for (int round = 0; round < 100; ++round) {
    auto goes = std::make_unique<TokenMasks>(automaton, vocab, TokenMaskLimits(), memory);
    ASSERT_TRUE(goes->Allowed(Matcher(automaton)).ok());
    std::thread other([gone = std::move(goes)]() mutable { gone.reset(); });
    ASSERT_TRUE(stays.Allowed(Matcher(automaton)).ok());
    other.join();
  }
}

}  // namespace
}  // namespace troupe
