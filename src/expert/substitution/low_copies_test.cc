#include "expert/substitution/low_copies.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "base/rng.h"
#include "testing/test_seed.h"

namespace troupe {
namespace {

using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr ExpertCopy kFull = ExpertCopy::kFull, kLow = ExpertCopy::kLow;

TEST(LeastPopular, TakesFromTheLeastOnUntilTheShareIsFull) {
  const std::vector<double> popularity = {50, 10, 25, 15};
  EXPECT_THAT(LeastPopular(popularity, 0), Each(false));
  EXPECT_THAT(LeastPopular(popularity, 0.09), Each(false));
  EXPECT_THAT(LeastPopular(popularity, 0.1), ElementsAre(false, true, false, false));
  EXPECT_THAT(LeastPopular(popularity, 0.25), ElementsAre(false, true, false, true));
  EXPECT_THAT(LeastPopular(popularity, 0.5), ElementsAre(false, true, true, true));
  EXPECT_THAT(LeastPopular(popularity, 1), Each(true));
}

TEST(LeastPopular, KeepsTheFirstOfEquals) {
  const std::vector<double> equal(4, 1);
  EXPECT_THAT(LeastPopular(equal, 0.5), ElementsAre(false, false, true, true));
}

TEST(LeastPopular, HoldsNoMoreThanTheShareAndNobodyMorePopularThanWhoIsLeftOut) {
  Rng rng(TestSeed());
  for (int round = 0; round < 500; ++round) {
    std::vector<double> popularity(1 + rng.Below(64));
    for (double& p : popularity) p = static_cast<double>(rng.Below(20));
    const double share = rng.Uniform();
    const std::vector<bool> low = LeastPopular(popularity, share);
    const double all = std::reduce(popularity.begin(), popularity.end());
    double held = 0, most_taken = -1, least_left = 1e9;
    for (std::size_t i = 0; i < low.size(); ++i) {
      if (low[i]) {
        held += popularity[i];
        most_taken = std::max(most_taken, popularity[i]);
      } else {
        least_left = std::min(least_left, popularity[i]);
      }
    }
    EXPECT_LE(held, share * all);
    EXPECT_LE(most_taken, least_left);
    // And no fewer than fit.
    if (least_left < 1e9) {
      EXPECT_GT(held + least_left, share * all);
    }
  }
}

TEST(LeastCopies, AreFullUnlessSomethingElseIsAskedFor) {
  EXPECT_THAT(LeastCopies(std::vector<RowKinds>{{.decode = 1}, {.decode = 9}}, {}), Each(kFull));
  EXPECT_THAT(LeastCopies(std::vector<RowKinds>{{.prompt = 1}, {.prompt = 9}}, {}), Each(kFull));
}

TEST(LeastCopies, DifferInAPromptAndAfterIt) {
  const std::vector<RowKinds> prompt = {{.prompt = 1}, {.prompt = 9}};
  const std::vector<RowKinds> decode = {{.decode = 1}, {.decode = 9}};
  EXPECT_THAT(LeastCopies(prompt, {.prefill_share = 0.2}), ElementsAre(kLow, kFull));
  EXPECT_THAT(LeastCopies(decode, {.prefill_share = 1}), Each(kFull));
  EXPECT_THAT(LeastCopies(decode, {.decode = true}), Each(kLow));
  EXPECT_THAT(LeastCopies(prompt, {.decode = true}), Each(kFull));
}

TEST(LeastCopies, InAMixedPassEveryRowMustBeContentWithTheLowCopy) {
  const std::vector<RowKinds> mixed = {
      {.prompt = 1}, {.prompt = 1, .decode = 1}, {.decode = 1}, {.prompt = 8}};
  EXPECT_THAT(LeastCopies(mixed, {.prefill_share = 0.2}), ElementsAre(kLow, kFull, kFull, kFull));
  EXPECT_THAT(LeastCopies(mixed, {.prefill_share = 0.2, .decode = true}),
              ElementsAre(kLow, kLow, kLow, kFull));
  EXPECT_THAT(LeastCopies(mixed, {.decode = true}), ElementsAre(kFull, kFull, kLow, kFull));
}

TEST(LeastCopies, WhatAnExactRowNeedsIsAlwaysFull) {
  const std::vector<RowKinds> rows = {
      {.prompt = 1, .exact = 1}, {.decode = 1, .exact = 1}, {.exact = 1}};
  EXPECT_THAT(LeastCopies(rows, {.prefill_share = 1, .decode = true}), Each(kFull));
}

TEST(LeastCopies, AnExactRowTakesNoLowCopyFromExpertsThatItDoesNotNeed) {
  const std::vector<RowKinds> rows = {{.prompt = 1},
                                      {.prompt = 1, .exact = 1},
                                      {.decode = 1},
                                      {.decode = 2, .exact = 1},
                                      {.prompt = 8}};
  EXPECT_THAT(LeastCopies(rows, {.prefill_share = 0.2, .decode = true}),
              ElementsAre(kLow, kFull, kLow, kFull, kFull));
}

TEST(ParseLowCopies, ReadsWhatToStringWrites) {
  for (const LowCopyOptions& options :
       {LowCopyOptions{}, LowCopyOptions{.prefill_share = 0.25}, LowCopyOptions{.decode = true},
        LowCopyOptions{.prefill_share = 1, .decode = true}}) {
    EXPECT_EQ(ParseLowCopies(ToString(options)).value(), options) << ToString(options);
  }
}

TEST(ParseLowCopies, SaysWhatWasExpected) {
  for (const char* text : {"", "prefill", "prefill=", "prefill=1.1", "prefill=-0.1", "prefill=nan",
                           "decode,", "prefill=0.5x", "all"}) {
    EXPECT_THAT(ParseLowCopies(text).status().message(), HasSubstr("expected")) << text;
  }
}

}  // namespace
}  // namespace troupe
