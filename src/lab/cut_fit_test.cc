#include "lab/cut_fit.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>

#include "split/codec/random_states_for_test.h"
#include "testing/test_seed.h"

namespace troupe {
namespace {

using testing::HasSubstr;

constexpr std::uint32_t kFitWidth = 24;

// Rows that vary along few directions, and hardly along others.
std::vector<float> FlatRows(std::size_t count, std::size_t directions, Rng& rng) {
  const std::vector<float> along = RandomDirections(directions, kFitWidth, {}, rng);
  std::vector<float> rows(count * kFitWidth);
  for (std::size_t r = 0; r < count; ++r) {
    for (std::size_t c = 0; c < kFitWidth; ++c) {
      rows[r * kFitWidth + c] = static_cast<float>(2 + 0.01 * rng.Normal());
    }
    for (std::size_t i = 0; i < directions; ++i) {
      const double amount = rng.Normal() * 3 / (1.0 + static_cast<double>(i));
      for (std::size_t c = 0; c < kFitWidth; ++c) {
        rows[r * kFitWidth + c] += static_cast<float>(amount * along[i * kFitWidth + c]);
      }
    }
  }
  return rows;
}

// By states alone: what comes out is the states again, and has no weight.
Result<CutFit> PlainFit(std::uint32_t layer, const std::vector<float>& rows,
                        const CutFitOptions& options = {}) {
  TROUPE_ASSIGN_OR_RETURN(
      const CutFitter fitter,
      CutFitter::Create(layer, {.width = kFitWidth, .states = rows, .outputs = rows}, options));
  return fitter.Fit(0);
}

// The mean square of what rows, as shares of their size and less the mean, hold beside these
// directions: slow, in double.
double HeldBeside(const CutBasis& basis, std::span<const float> directions,
                  std::span<const float> rows) {
  const std::size_t width = basis.width, count = rows.size() / width;
  double sum = 0;
  for (std::size_t r = 0; r < count; ++r) {
    double size = 0;
    std::vector<double> row(width);
    for (std::size_t c = 0; c < width; ++c) {
      row[c] = std::ranges::count(basis.kept, c) > 0 ? 0 : rows[r * width + c];
      size += row[c] * row[c];
    }
    size = std::sqrt(size / static_cast<double>(width - basis.kept.size()));
    for (std::size_t c = 0; c < width; ++c) row[c] = row[c] / size - basis.mean[c];
    for (std::size_t i = 0; i < directions.size() / width; ++i) {
      double number = 0;
      for (std::size_t c = 0; c < width; ++c) number += row[c] * directions[i * width + c];
      for (std::size_t c = 0; c < width; ++c) row[c] -= number * directions[i * width + c];
    }
    for (const double x : row) sum += x * x;
  }
  return sum / static_cast<double>(count);
}

TEST(CutFit, FewDirectionsHoldWhatVariesAlongFew) {
  Rng rng(TestSeed());
  const CutFit fit = PlainFit(2, FlatRows(400, 3, rng)).value();
  EXPECT_EQ(fit.basis.layer, 2u);
  ASSERT_EQ(fit.basis.ranks(), kFitWidth);
  ASSERT_TRUE(CheckBasis(fit.basis).ok()) << CheckBasis(fit.basis).message();
  double first = 0, all = 0;
  for (std::size_t i = 0; i < kFitWidth; ++i) {
    // Rows as shares of their size vary along their mean as well.
    first += i < 4 ? fit.variance[i] : 0;
    all += fit.variance[i];
  }
  EXPECT_GT(first, 0.99 * all);
  EXPECT_TRUE(std::ranges::is_sorted(fit.variance, std::greater()));
}

TEST(CutFit, DirectionsAreAtRightAngles) {
  Rng rng(TestSeed());
  const CutBasis basis = PlainFit(1, FlatRows(100, 5, rng))->basis;
  for (std::size_t i = 0; i < basis.ranks(); ++i) {
    for (std::size_t j = 0; j < i; ++j) {
      double product = 0;
      for (std::size_t c = 0; c < kFitWidth; ++c) {
        product += double{basis.Direction(i)[c]} * basis.Direction(j)[c];
      }
      EXPECT_NEAR(product, 0, 1e-6);
    }
  }
}

TEST(CutFit, WhatARankLosesIsTheVarianceOfTheOthersAndLessThanAnyOtherDirectionsLose) {
  Rng rng(TestSeed());
  const std::vector<float> rows = FlatRows(200, 12, rng);
  const CutFit fit = PlainFit(1, rows).value();
  for (const std::size_t rank : {1, 5, 11, 20}) {
    double others = 0;
    for (std::size_t i = rank; i < kFitWidth; ++i) others += fit.variance[i];
    const auto best = std::span(fit.basis.directions).first(rank * kFitWidth);
    const double lost = HeldBeside(fit.basis, best, rows);
    EXPECT_NEAR(lost, others, 1e-5) << "rank " << rank;  // directions are floats
    for (int round = 0; round < 20; ++round) {
      const auto other = RandomDirections(rank, kFitWidth, {}, rng);
      EXPECT_GE(HeldBeside(fit.basis, other, rows), lost - 1e-5);
    }
  }
}

TEST(CutFit, MassiveChannelsAreKeptApartTheLargestOnesIfThereAreMany) {
  Rng rng(TestSeed());
  std::vector<float> rows = FlatRows(100, 12, rng);
  for (std::size_t r = 0; r < 100; ++r) {
    rows[r * kFitWidth + 7] *= 100;
    rows[r * kFitWidth + 20] *= 200;
    if (r % 50 == 0) rows[r * kFitWidth + 3] = 3000;  // of few tokens alone
  }
  const CutBasis basis = PlainFit(1, rows)->basis;
  EXPECT_EQ(basis.kept, (std::vector<std::uint32_t>{3, 7, 20}));
  EXPECT_EQ(basis.ranks(), kFitWidth - 3);
  EXPECT_TRUE(CheckBasis(basis).ok()) << CheckBasis(basis).message();
  const auto two = PlainFit(1, rows, {.most_kept = 2})->basis.kept;
  EXPECT_EQ(two, (std::vector<std::uint32_t>{3, 20}));
  EXPECT_TRUE(PlainFit(1, rows, {.massive = 1e6})->basis.kept.empty());
}

// Least squares, slow: what is left of the outputs' squares if they are told by these numbers.
double LeftOfOutputs(const CutBasis& basis, std::size_t rank, std::span<const float> states,
                     const std::vector<double>& outputs) {
  const std::size_t width = basis.width, count = outputs.size();
  // Numbers of the basis are uncorrelated: each tells its part by itself.
  std::vector<std::vector<double>> numbers(rank, std::vector<double>(count));
  double output_mean = 0;
  for (const double z : outputs) output_mean += z / static_cast<double>(count);
  for (std::size_t r = 0; r < count; ++r) {
    double size = 0;
    for (std::size_t c = 0; c < width; ++c) {
      size += double{states[r * width + c]} * states[r * width + c];
    }
    size = std::sqrt(size / static_cast<double>(width));
    for (std::size_t i = 0; i < rank; ++i) {
      for (std::size_t c = 0; c < width; ++c) {
        numbers[i][r] += (states[r * width + c] / size - basis.mean[c]) * basis.Finder(i)[c];
      }
    }
  }
  double left = 0;
  for (const double z : outputs) left += (z - output_mean) * (z - output_mean);
  for (const std::vector<double>& number : numbers) {
    double along = 0, square = 0;
    for (std::size_t r = 0; r < count; ++r) {
      along += number[r] * (outputs[r] - output_mean);
      square += number[r] * number[r];
    }
    left -= along * along / square;
  }
  return left;
}

TEST(CutFit, ByOutputsTheFirstNumbersAreThoseThatTellThem) {
  Rng rng(TestSeed());
  const std::vector<float> states = FlatRows(400, 12, rng);
  // The output is a channel that hardly varies, and so would be among the last to cross.
  std::vector<float> outputs(states.size());
  std::vector<double> told;
  for (std::size_t r = 0; r < 400; ++r) {
    double size = 0;
    for (std::size_t c = 0; c < kFitWidth; ++c) {
      size += double{states[r * kFitWidth + c]} * states[r * kFitWidth + c];
    }
    const double output = (states[r * kFitWidth] - states[r * kFitWidth + 1]) / std::sqrt(size);
    outputs[r * kFitWidth + 5] = static_cast<float>(output);
    told.push_back(output);
  }
  const CutFitter fitter =
      CutFitter::Create(1, {.width = kFitWidth, .states = states, .outputs = outputs}).value();
  const CutBasis by_states = fitter.Fit(0)->basis, by_output = fitter.Fit(1)->basis;
  ASSERT_TRUE(CheckBasis(by_output).ok()) << CheckBasis(by_output).message();
  const double whole = LeftOfOutputs(by_states, 0, states, told);
  const double left = LeftOfOutputs(by_output, 1, states, told);
  EXPECT_LT(left, 0.01 * whole);
  EXPECT_GT(LeftOfOutputs(by_states, 1, states, told), 10 * left);
  // All numbers say the same, whatever they were fitted by.
  EXPECT_NEAR(LeftOfOutputs(by_output, kFitWidth, states, told),
              LeftOfOutputs(by_states, kFitWidth, states, told), 1e-3 * whole);
}

TEST(CutFit, ANumberOfAnyFitIsFoundAlongItsOwnDirectionAlone) {
  Rng rng(TestSeed());
  const std::vector<float> states = FlatRows(200, 12, rng), outputs = FlatRows(200, 12, rng);
  const CutFitter fitter =
      CutFitter::Create(1, {.width = kFitWidth, .states = states, .outputs = outputs}).value();
  for (const double weight : {0.3, 1.0}) {
    const CutBasis basis = fitter.Fit(weight)->basis;
    for (std::size_t i = 0; i < kFitWidth; ++i) {
      for (std::size_t j = 0; j < kFitWidth; ++j) {
        double product = 0;
        for (std::size_t c = 0; c < kFitWidth; ++c) {
          product += double{basis.Finder(i)[c]} * basis.Direction(j)[c];
        }
        EXPECT_NEAR(product, i == j ? 1 : 0, 1e-4);
      }
    }
  }
}

TEST(CutFit, TooFewRowsAndThoseThatAreNotFiniteAreRefused) {
  Rng rng(TestSeed());
  std::vector<float> rows = FlatRows(kFitWidth - 1, 3, rng);
  EXPECT_THAT(PlainFit(1, rows).status().message(),
              HasSubstr("23 tokens to fit a cut on, at least 24"));
  rows.resize(kFitWidth * kFitWidth, std::numeric_limits<float>::infinity());
  EXPECT_EQ(PlainFit(1, rows).status().code(), Code::kDataLoss);
}

}  // namespace
}  // namespace troupe
