#include "split/codec/cut_basis.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "split/codec/random_states_for_test.h"
#include "testing/test_seed.h"

namespace troupe {
namespace {

using testing::HasSubstr;

TEST(CutBasis, WhatCannotBeOneIsRefused) {
  Rng rng(TestSeed());
  const CutBasis good = *RandomBasis(24, 5, rng, {3, 17});
  ASSERT_TRUE(CheckBasis(good).ok()) << CheckBasis(good).message();
  const auto refusal = [&good](const auto& change) {
    CutBasis bad = good;
    change(bad);
    const Status status = CheckBasis(bad);
    EXPECT_EQ(status.code(), Code::kInvalidArgument);
    return status.message();
  };
  EXPECT_THAT(refusal([](CutBasis& b) { b.width = 0; }), HasSubstr("width 0, 1 to"));
  EXPECT_THAT(refusal([](CutBasis& b) { b.kept = {3, 24}; }), HasSubstr("channel 24 kept apart"));
  EXPECT_THAT(refusal([](CutBasis& b) { b.kept = {17, 3}; }), HasSubstr("rising"));
  EXPECT_THAT(refusal([](CutBasis& b) { b.kept.assign(24, 0); }), HasSubstr("fewer expected"));
  EXPECT_THAT(refusal([](CutBasis& b) { b.mean.pop_back(); }), HasSubstr("a mean of 23"));
  EXPECT_THAT(refusal([](CutBasis& b) { b.mean[0] = NAN; }), HasSubstr("not finite"));
  EXPECT_THAT(refusal([](CutBasis& b) { b.mean[17] = 1; }), HasSubstr("kept apart"));
  EXPECT_THAT(refusal([](CutBasis& b) { b.directions.pop_back(); }), HasSubstr("119 numbers"));
  const auto stretch = [](CutBasis& b) {
    for (std::size_t c = 24; c < 48; ++c) b.directions[c] *= 1.1f;
  };
  EXPECT_THAT(refusal(stretch), HasSubstr("number 1"));
  EXPECT_THAT(refusal([](CutBasis& b) { b.finders[30] = NAN; }), HasSubstr("number 1"));
  EXPECT_THAT(refusal([](CutBasis& b) { b.finders[27] = 1; }), HasSubstr("number 1"));
  EXPECT_THAT(refusal([](CutBasis& b) { b.finders.pop_back(); }), HasSubstr("119 numbers of f"));
  EXPECT_THAT(refusal([](CutBasis& b) { b.directions.resize(24 * 23); }), HasSubstr("22 at most"));
}

TEST(CutBasis, ARankThatItDoesNotHaveIsRefused) {
  Rng rng(TestSeed());
  const CutBasis basis = *RandomBasis(24, 5, rng, {3, 17});
  EXPECT_TRUE(CheckCode({.rank = 5}, basis).ok());
  EXPECT_TRUE(CheckCode({}, basis).ok());
  EXPECT_THAT(CheckCode({.rank = 23}, basis).message(), HasSubstr("larger than the 22 channels"));
  EXPECT_THAT(CheckCode({.rank = 6}, basis).message(), HasSubstr("for which 5 were fitted"));
}

TEST(CutBasis, ADigestIsOfWhatACodeUses) {
  Rng rng(TestSeed());
  const CutBasis basis = *RandomBasis(24, 5, rng, {3, 17});
  CutBasis other = basis;
  other.directions[30] += 1e-6f;
  const StateCode exact, all{.form = StateForm::kInt8}, some{.rank = 2, .form = StateForm::kInt8};
  EXPECT_EQ(DigestOf(basis, exact), 0u);
  EXPECT_EQ(DigestOf(basis, all), DigestOf(other, all));
  EXPECT_NE(DigestOf(basis, some), DigestOf(other, some));
  other = basis;
  other.finders[30] += 1e-6f;
  EXPECT_NE(DigestOf(basis, some), DigestOf(other, some));
  other = basis;
  other.kept = {3, 18};
  EXPECT_NE(DigestOf(basis, all), DigestOf(other, all));
  other = basis;
  other.layer = 4;
  EXPECT_NE(DigestOf(basis, all), DigestOf(other, all));
  other = basis;
  other.mean[1] += 1;
  EXPECT_NE(DigestOf(basis, some), DigestOf(other, some));
}

}  // namespace
}  // namespace troupe
