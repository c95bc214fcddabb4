#include "text/sampler.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <set>

#include "base/exact_exp.h"
#include "base/rng.h"
#include "testing/test_seed.h"
#include "text/token_set.h"

namespace troupe {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

// Everything off: the plain distribution of the logits.
Sampling Plain(std::uint64_t seed = 1) {
  return {.temperature = 1, .top_k = 0, .top_p = 1, .min_p = 0, .seed = seed};
}

// A sampler with a scratch of its own, that draws one position after the other.
class LoneSampler {
 public:
  explicit LoneSampler(const Sampling& options) : sampler_(Sampler::Make(options).value()) {}

  Result<TokenId> Sample(std::span<const float> logits, const TokenSet* allowed = nullptr) {
    return sampler_.Sample(logits, position_++, scratch_, allowed);
  }
  void Accept(TokenId token) { sampler_.Accept(token); }

 private:
  Sampler sampler_;
  std::uint64_t position_ = 0;
  SamplerScratch scratch_;
};

LoneSampler Make(const Sampling& options) { return LoneSampler(options); }

std::vector<float> Logits(std::initializer_list<double> probabilities) {
  std::vector<float> logits;
  for (const double p : probabilities) logits.push_back(static_cast<float>(std::log(p)));
  return logits;
}

std::set<TokenId> Reachable(const Sampling& options, const std::vector<float>& logits) {
  LoneSampler sampler = Make(options);
  std::set<TokenId> ids;
  for (int i = 0; i < 2000; ++i) ids.insert(sampler.Sample(logits).value());
  return ids;
}

using Ids = std::set<TokenId>;

TEST(Sampler, XtcLeavesOutAllLikelyTokensButTheLeastLikelyOfThem) {
  const std::vector<float> logits = Logits({0.5, 0.25, 0.15, 0.06, 0.04});
  Sampling sampling = Plain();
  sampling.xtc = {.probability = 1, .threshold = 0.1};
  EXPECT_EQ(Reachable(sampling, logits), (Ids{2, 3, 4}));
  sampling.xtc.threshold = 0.3;  // of one likely token nothing is left out
  EXPECT_EQ(Reachable(sampling, logits), (Ids{0, 1, 2, 3, 4}));
  sampling.xtc = {.probability = 0, .threshold = 0.1};
  EXPECT_EQ(Reachable(sampling, logits), (Ids{0, 1, 2, 3, 4}));
}

TEST(Sampler, XtcHappensAsOftenAsItIsAskedTo) {
  const std::vector<float> logits = Logits({0.6, 0.4});
  Sampling sampling = Plain();
  sampling.xtc = {.probability = 0.3, .threshold = 0.1};
  LoneSampler sampler = Make(sampling);
  constexpr int kDraws = 20'000;
  int likeliest = 0;
  for (int i = 0; i < kDraws; ++i) likeliest += sampler.Sample(logits).value() == 0 ? 1 : 0;
  // 0.7 * 0.6, within five standard deviations for that number of draws.
  EXPECT_NEAR(likeliest, kDraws * 0.42, 5 * std::sqrt(kDraws * 0.42 * 0.58));
}

TEST(Sampler, XtcLeavesANumberToDrawAtLowTemperatures) {
  Sampling sampling = Plain();
  sampling.temperature = 1e-3;
  sampling.xtc = {.probability = 1, .threshold = 0.01};
  EXPECT_EQ(Reachable(sampling, Logits({0.9, 0.09, 0.01 - 1e-6, 1e-6})), (Ids{1}));
}

TEST(Sampler, XtcWithoutAThresholdLeavesTheLeastLikelyTokenThatMayBeChosen) {
  std::vector<float> logits = Logits({0.5, 0.3, 0.2, 0.1});
  logits[3] = -kInfinity;  // as a grammar bans one
  Sampling sampling = Plain();
  sampling.xtc = {.probability = 1, .threshold = 0};
  EXPECT_EQ(Reachable(sampling, logits), (Ids{2}));
}

TEST(Sampler, DryTurnsAwayFromWhatWouldBeSaidAgain) {
  Sampling sampling{.temperature = 0};
  sampling.dry.multiplier = 5;
  LoneSampler sampler = Make(sampling);
  for (const TokenId token : {0, 1, 2, 3, 0, 1}) sampler.Accept(token);
  EXPECT_EQ(sampler.Sample(Logits({0.1, 0.1, 0.6, 0.2})).value(), 3);  // 2 came after 0, 1
  sampling.dry.multiplier = 0;
  LoneSampler plain = Make(sampling);
  for (const TokenId token : {0, 1, 2, 3, 0, 1}) plain.Accept(token);
  EXPECT_EQ(plain.Sample(Logits({0.1, 0.1, 0.6, 0.2})).value(), 2);
}

TEST(Sampler, GreedyTakesTheHighestAndOfEqualOnesTheLowestId) {
  LoneSampler sampler = Make({.temperature = 0});
  EXPECT_EQ(sampler.Sample(std::vector<float>{1, 3, 2}).value(), 1);
  EXPECT_EQ(sampler.Sample(std::vector<float>{1, 3, 3, 3}).value(), 1);
  EXPECT_EQ(sampler.Sample(std::vector<float>{-kInfinity, -5}).value(), 1);
}

TEST(Sampler, ManyShareOneScratchWhichTakesNoMoreThanItSaid) {
  Rng rng(5);
  constexpr std::size_t kVocabulary = 500;
  SamplerScratch scratch(kVocabulary);
  std::vector<Sampler> sharing;
  std::vector<LoneSampler> alone;
  for (const Sampling& options : {Sampling{}, Sampling{.top_k = 0, .seed = 3}, Plain(7)}) {
    sharing.push_back(Sampler::Make(options).value());
    alone.emplace_back(options);
  }
  std::vector<float> logits(kVocabulary);
  for (std::uint64_t position = 0; position < 50; ++position) {
    for (float& logit : logits) logit = static_cast<float>(8 * rng.Uniform());
    for (std::size_t i = 0; i < sharing.size(); ++i) {
      EXPECT_EQ(sharing[i].Sample(logits, position, scratch).value(),
                alone[i].Sample(logits).value());
    }
  }
  EXPECT_EQ(scratch.size(), SamplerScratch::BytesFor(kVocabulary));
}

// What a draft's check relies on: rows of logits may be looked at in any order, twice, or not at
// all, and beside texts that went another way.
TEST(Sampler, ATokenIsAFunctionOfLogitsSeedPositionAndTheTextBefore) {
  Rng rng(TestSeed());
  for (int round = 0; round < 40; ++round) {
    Sampling options = {.temperature = rng.Below(4) == 0 ? 0 : 0.3 + rng.Uniform(),
                        .top_k = static_cast<std::uint32_t>(rng.Below(50)),
                        .top_p = 0.5 + 0.5 * rng.Uniform(),
                        .min_p = 0.1 * rng.Uniform(),
                        .seed = rng.Next()};
    if (rng.Below(2) == 0) options.penalty_window = 0;
    options.repetition_penalty = 1 + rng.Uniform();
    options.frequency_penalty = rng.Uniform();
    constexpr std::size_t kTokens = 30, kVocabulary = 60;
    std::vector<std::vector<float>> rows(kTokens, std::vector<float>(kVocabulary));
    std::vector<TokenSet> allowed(kTokens, TokenSet(kVocabulary));
    for (std::size_t at = 0; at < kTokens; ++at) {
      for (float& logit : rows[at]) logit = static_cast<float>(2 * rng.Normal());
      for (TokenId id = 0; id < static_cast<TokenId>(kVocabulary); ++id) {
        if (id == 7 || rng.Below(3) != 0) allowed[at].Insert(id);
      }
    }
    SamplerScratch scratch;
    Sampler in_order = Sampler::Make(options).value();
    std::vector<TokenId> text;
    for (std::size_t at = 0; at < kTokens; ++at) {
      text.push_back(in_order.Sample(rows[at], at, scratch, &allowed[at]).value());
      in_order.Accept(text.back());
    }
    for (int draw = 0; draw < 60; ++draw) {
      const std::size_t at = rng.Below(kTokens);
      Sampler anew = Sampler::Make(options).value();
      for (std::size_t i = 0; i < at; ++i) {
        anew.Accept(text[i]);
        if (rng.Below(4) == 0) (void)anew.Sample(rows[i], rng.Below(1000), scratch);
      }
      ASSERT_EQ(anew.Sample(rows[at], at, scratch, &allowed[at]).value(), text[at])
          << ToString(options) << " at " << at;
    }
  }
}

TEST(Sampler, LogitsThatAreNoNumbersAreAnErrorThatNamesTheToken) {
  LoneSampler sampler = Make({});
  const auto message = [&](std::vector<float> logits) {
    const auto token = sampler.Sample(logits);
    return token.ok() ? "no error" : token.status().message();
  };
  EXPECT_EQ(message({1, std::nanf(""), 2}), "the logit of token 1 of 3 is nan");
  EXPECT_EQ(message({1, kInfinity}), "the logit of token 1 of 2 is inf");
  EXPECT_EQ(message({-kInfinity, -kInfinity}), "all 2 tokens are banned");
  EXPECT_EQ(message({}), "no logits to sample from");
}

TEST(Sampler, FollowsTheDistribution) {
  const std::vector<double> expected = {0.5, 0.3, 0.15, 0.05};
  const auto logits = Logits({0.5, 0.3, 0.15, 0.05});
  LoneSampler sampler = Make(Plain());
  constexpr int kDraws = 100'000;
  std::vector<int> count(4, 0);
  for (int i = 0; i < kDraws; ++i) {
    ++count[static_cast<std::size_t>(sampler.Sample(logits).value())];
  }
  for (std::size_t i = 0; i < 4; ++i) {
    // Five standard deviations of a binomial: one run in half a million would fail if seeds varied.
    const double deviation = std::sqrt(kDraws * expected[i] * (1 - expected[i]));
    EXPECT_NEAR(count[i], kDraws * expected[i], 5 * deviation) << i;
  }
}

TEST(Sampler, TemperatureSharpensAndFlattens) {
  const auto logits = Logits({0.8, 0.2});
  const auto share_of_first = [&](double temperature) {
    Sampling options = Plain();
    options.temperature = temperature;
    LoneSampler sampler = Make(options);
    int first = 0;
    for (int i = 0; i < 20'000; ++i) first += sampler.Sample(logits).value() == 0 ? 1 : 0;
    return first / 20'000.0;
  };
  // p^(1/T) normalised: 0.941, 0.8, 0.667; five deviations are below 0.018.
  EXPECT_NEAR(share_of_first(0.5), 16.0 / 17, 0.018);
  EXPECT_NEAR(share_of_first(1), 0.8, 0.018);
  EXPECT_NEAR(share_of_first(2), 2.0 / 3, 0.018);
}

TEST(Sampler, TopKKeepsTheKMostLikelyAndOfEqualOnesTheLowestIds) {
  Sampling options = Plain();
  options.top_k = 2;
  EXPECT_EQ(Reachable(options, Logits({0.1, 0.4, 0.2, 0.3})), (Ids{1, 3}));
  EXPECT_EQ(Reachable(options, Logits({0.25, 0.25, 0.25, 0.25})), (Ids{0, 1}));
  options.top_k = 9;
  EXPECT_EQ(Reachable(options, Logits({0.1, 0.4, 0.2, 0.3})), (Ids{0, 1, 2, 3}));
}

TEST(Sampler, TopPKeepsTheFewestThatReachP) {
  Sampling options = Plain();
  const auto logits = Logits({0.15, 0.5, 0.05, 0.3});
  options.top_p = 0.45;
  EXPECT_EQ(Reachable(options, logits), (Ids{1}));
  options.top_p = 0.7;
  EXPECT_EQ(Reachable(options, logits), (Ids{1, 3}));
  options.top_p = 0.9;
  EXPECT_EQ(Reachable(options, logits), (Ids{0, 1, 3}));
  options.top_p = 0;  // the most likely stays
  EXPECT_EQ(Reachable(options, logits), (Ids{1}));
}

TEST(Sampler, MinPKeepsAFractionOfTheMostLikely) {
  Sampling options = Plain();
  options.min_p = 0.25;  // of 0.5: 0.125
  EXPECT_EQ(Reachable(options, Logits({0.15, 0.5, 0.05, 0.3})), (Ids{0, 1, 3}));
  options.min_p = 1;
  EXPECT_EQ(Reachable(options, Logits({0.15, 0.5, 0.05, 0.3})), (Ids{1}));
}

TEST(Sampler, TopPComesBeforeTemperatureAndAfterTopK) {
  Sampling options = Plain();
  options.temperature = 50;  // nearly uniform; after it, top-p 0.7 would keep three of four
  options.top_p = 0.7;
  EXPECT_EQ(Reachable(options, Logits({0.15, 0.5, 0.05, 0.3})), (Ids{1, 3}));
  options.top_k = 2;  // of these two the first has 0.625: still short of 0.7
  options.top_p = 0.6;
  EXPECT_EQ(Reachable(options, Logits({0.15, 0.5, 0.05, 0.3})), (Ids{1}));
}

TEST(Sampler, PenaltiesWeighWhatTheTextHasAlready) {
  Sampling options = {.temperature = 0, .repetition_penalty = 2};
  LoneSampler repetition = Make(options);
  EXPECT_EQ(repetition.Sample(std::vector<float>{3, 2, -1}).value(), 0);
  repetition.Accept(0);  // 3 becomes 1.5
  EXPECT_EQ(repetition.Sample(std::vector<float>{3, 2, -1}).value(), 1);
  // A negative logit is multiplied: -1 becomes -2.
  EXPECT_EQ(repetition.Sample(std::vector<float>{-1, -1.5, -3}).value(), 1);

  LoneSampler frequency = Make({.temperature = 0, .frequency_penalty = 0.4});
  frequency.Accept(0);
  EXPECT_EQ(frequency.Sample(std::vector<float>{3, 2.3F}).value(), 0);  // 2.6
  frequency.Accept(0);
  EXPECT_EQ(frequency.Sample(std::vector<float>{3, 2.3F}).value(), 1);  // 2.2

  LoneSampler presence = Make({.temperature = 0, .presence_penalty = 0.5});
  for (int i = 0; i < 9; ++i) presence.Accept(0);
  EXPECT_EQ(presence.Sample(std::vector<float>{3, 2.4F}).value(), 0);  // 2.5, however often
  EXPECT_EQ(presence.Sample(std::vector<float>{3, 2.6F}).value(), 1);
}

TEST(Sampler, PenaltiesForgetWhatLeavesTheWindow) {
  LoneSampler sampler = Make({.temperature = 0, .penalty_window = 2, .presence_penalty = 1});
  const std::vector<float> logits = {3, 2.5F, 0};
  sampler.Accept(0);
  EXPECT_EQ(sampler.Sample(logits).value(), 1);
  sampler.Accept(2);
  EXPECT_EQ(sampler.Sample(logits).value(), 1);
  sampler.Accept(2);
  EXPECT_EQ(sampler.Sample(logits).value(), 0);
}

TEST(Sampler, BiasMovesAndBansTokens) {
  Sampling options = {.temperature = 0, .logit_bias = {{0, -kInfinity}, {2, 1.5F}}};
  LoneSampler sampler = Make(options);
  EXPECT_EQ(sampler.Sample(std::vector<float>{9, 2, 1}).value(), 2);
  const auto outside = sampler.Sample(std::vector<float>{9, 2});
  ASSERT_FALSE(outside.ok());
  EXPECT_EQ(outside.status().message(), "bias for token 2, but there are 2 tokens");
}

TEST(Sampler, DrawsAllowedTokensAlone) {
  TokenSet allowed(5);
  for (const TokenId id : {1, 3}) allowed.Insert(id);
  const std::vector<float> logits = {9, 1, 8, 2, 7};
  EXPECT_EQ(Make({.temperature = 0}).Sample(logits, &allowed).value(), 3);
  for (const Sampling& options : {Plain(), Sampling{}, Sampling{.top_k = 5, .top_p = 0.9}}) {
    LoneSampler sampler = Make(options);
    std::set<TokenId> ids;
    for (int i = 0; i < 500; ++i) ids.insert(sampler.Sample(logits, &allowed).value());
    EXPECT_EQ(ids, (Ids{1, 3}));
  }
  // Neither a bias nor a penalty brings a token back.
  LoneSampler biased =
      Make({.temperature = 0, .repetition_penalty = 2, .logit_bias = {{0, 1e30F}}});
  biased.Accept(2);
  EXPECT_EQ(biased.Sample(logits, &allowed).value(), 3);
  const TokenSet none(5);
  EXPECT_EQ(biased.Sample(logits, &none).status().message(), "all 5 tokens are banned");
  TokenSet shorter(2);  // ids beyond its vocabulary are not allowed
  shorter.Insert(0);
  EXPECT_EQ(biased.Sample(logits, &shorter).value(), 0);
}

TEST(Sampler, ASetOfAllTokensChangesNothing) {
  Rng rng(TestSeed());
  TokenSet all(300);
  for (TokenId id = 0; id < 300; ++id) all.Insert(id);
  for (const Sampling& options :
       {Sampling{.seed = 4}, Plain(6), Sampling{.top_p = 0.5, .seed = 1}}) {
    LoneSampler masked = Make(options);
    LoneSampler plain = Make(options);
    std::vector<float> logits(300);
    for (int i = 0; i < 50; ++i) {
      for (float& logit : logits) logit = static_cast<float>(4 * rng.Normal());
      ASSERT_EQ(masked.Sample(logits, &all).value(), plain.Sample(logits).value());
    }
  }
}

TEST(Sampler, WhatOverflowsIsAnErrorAndNoCrash) {
  LoneSampler sampler = Make({.logit_bias = {{0, 3e38F}}});
  EXPECT_FALSE(sampler.Sample(std::vector<float>{3e38F, 1}).ok());
}

TEST(Sampler, OptionsOutOfRangeAreErrorsThatNameThem) {
  const auto message = [](const Sampling& options) {
    const auto sampler = Sampler::Make(options);
    return sampler.ok() ? "no error" : sampler.status().message();
  };
  EXPECT_EQ(message({.temperature = -1}), "temperature is -1, expected 0 to 100");
  EXPECT_EQ(message({.top_p = 1.5}), "top-p is 1.5, expected 0 to 1");
  EXPECT_EQ(message({.min_p = std::nan("")}), "min-p is nan, expected 0 to 1");
  EXPECT_EQ(message({.repetition_penalty = 0}), "repetition penalty is 0, expected 0.01 to 100");
  EXPECT_EQ(message({.logit_bias = {{-1, 1.0F}}}), "bias for token -1: ids begin at 0");
  EXPECT_EQ(message({.logit_bias = {{1, kInfinity}}}),
            "bias for token 1 is inf, expected a number or -infinity");
  EXPECT_EQ(message({}), "no error");
}

TEST(Sampler, OptionsPrintWhatIsOn) {
  EXPECT_EQ(ToString(Sampling{.temperature = 0}), "greedy");
  EXPECT_EQ(ToString(Sampling()), "temperature 0.8, top-k 40, top-p 0.95, min-p 0.05, seed 0");
  const Sampling busy = {.temperature = 0.5,
                         .top_k = 0,
                         .top_p = 1,
                         .min_p = 0,
                         .repetition_penalty = 1.1,
                         .presence_penalty = 0.5,
                         .logit_bias = {{1, 2.0F}},
                         .seed = 7};
  EXPECT_EQ(ToString(busy),
            "temperature 0.5, repetition 1.1, presence 0.5 over 64 tokens, bias for 1 tokens, "
            "seed 7");
}

// Everything in the order of the header, with no shortcut: sorts all tokens, always.
class PlainSampler {
 public:
  explicit PlainSampler(const Sampling& options) : options_(options) {}

  TokenId Sample(const std::vector<float>& logits) {
    std::vector<TokenId> ids(logits.size());
    std::iota(ids.begin(), ids.end(), 0);
    std::stable_sort(ids.begin(), ids.end(), [&](TokenId a, TokenId b) {
      return logits[static_cast<std::size_t>(a)] > logits[static_cast<std::size_t>(b)];
    });
    if (options_.top_k != 0) ids.resize(std::min<std::size_t>(options_.top_k, ids.size()));
    const auto weight = [&](TokenId id, double temperature) {
      return ExactExp((static_cast<double>(logits[static_cast<std::size_t>(id)]) -
                       static_cast<double>(logits[static_cast<std::size_t>(ids[0])])) /
                      temperature);
    };
    double total = 0;
    for (const TokenId id : ids) total += weight(id, 1);
    std::size_t kept = 0;
    for (double sum = 0; kept < ids.size(); ++kept) {
      if (kept > 0 && sum >= options_.top_p * total) break;
      if (weight(ids[kept], 1) < options_.min_p) break;
      sum += weight(ids[kept], 1);
    }
    ids.resize(kept);
    total = 0;
    for (const TokenId id : ids) total += weight(id, options_.temperature);
    double left = UniformAt(options_.seed, position_++) * total;
    for (const TokenId id : ids) {
      left -= weight(id, options_.temperature);
      if (left < 0) return id;
    }
    return ids.back();
  }

 private:
  Sampling options_;
  std::uint64_t position_ = 0;
};

TEST(Sampler, ShortcutsChangeNothing) {
  Rng rng(TestSeed());
  for (int round = 0; round < 60; ++round) {
    // A top-k or a top-p below 1, so that both draw from a sorted list.
    const Sampling options = {
        .temperature = 0.5 + rng.Uniform(),
        .top_k = rng.Below(2) == 0 ? 0 : static_cast<std::uint32_t>(1 + rng.Below(100)),
        .top_p = 0.999 * rng.Uniform(),
        .min_p = rng.Below(2) == 0 ? 0 : 0.2 * rng.Uniform(),
        .seed = rng.Next()};
    LoneSampler sampler = Make(options);
    PlainSampler plain(options);
    std::vector<float> logits(2000);
    for (float& logit : logits) logit = static_cast<float>(3 * rng.Normal());
    for (int i = 0; i < 20; ++i) {
      ASSERT_EQ(sampler.Sample(logits).value(), plain.Sample(logits)) << ToString(options);
    }
  }
}

// Written down once; the same must come out on every machine and with every compiler.
TEST(Sampler, GivesTheseTokensUnderThisSeedEverywhere) {
  Sampling options = {.temperature = 1.3, .top_k = 0, .top_p = 0.98, .min_p = 0, .seed = 42};
  LoneSampler sampler = Make(options);
  std::vector<float> logits(1000);
  for (std::size_t i = 0; i < logits.size(); ++i) {
    logits[i] = static_cast<float>(i * 7919 % 1000) / 128.0F;
  }
  std::vector<TokenId> tokens;
  for (int i = 0; i < 12; ++i) tokens.push_back(sampler.Sample(logits).value());
  EXPECT_EQ(tokens,
            (std::vector<TokenId>{186, 758, 384, 852, 212, 852, 235, 200, 99, 311, 397, 951}));
}

}  // namespace
}  // namespace troupe
