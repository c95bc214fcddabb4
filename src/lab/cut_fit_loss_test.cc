// The fit of a cut is in closed form, so there is no gradient in it to be wrong: what can be is the
// claim that it is the least. Here the combined loss (Eq. 8) is computed anew, slowly and in plain
// loops, and differences in random directions of all its numbers must vanish at the fit.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/rng.h"
#include "lab/cut_fit.h"
#include "testing/test_seed.h"

namespace troupe {
namespace {

using Square = std::vector<std::vector<double>>;

constexpr double kRidgeOfFit = 1e-4;  // cut_fit.cc's, of the mean variance

// a x = b by Gauss, for each column of b.
Square Solved(Square a, Square b) {
  const std::size_t n = a.size();
  for (std::size_t i = 0; i < n; ++i) {
    std::size_t pivot = i;
    for (std::size_t r = i + 1; r < n; ++r) {
      if (std::abs(a[r][i]) > std::abs(a[pivot][i])) pivot = r;
    }
    std::swap(a[i], a[pivot]);
    std::swap(b[i], b[pivot]);
    for (std::size_t r = 0; r < n; ++r) {
      if (r == i) continue;
      const double factor = a[r][i] / a[i][i];
      for (std::size_t c = i; c < n; ++c) a[r][c] -= factor * a[i][c];
      for (std::size_t c = 0; c < b[r].size(); ++c) b[r][c] -= factor * b[i][c];
    }
  }
  for (std::size_t i = 0; i < n; ++i) {
    for (double& x : b[i]) x /= a[i][i];
  }
  return b;
}

// Rows and what they lose, without any channel kept apart.
class CombinedLoss {
 public:
  CombinedLoss(const std::vector<float>& states, const std::vector<float>& outputs,
               std::size_t width, double weight)
      : width_(width), counted_(width, std::vector<double>(width)) {
    Size(states);
    const Square told = Told(outputs);  // [channel][output]: B^T
    double trace = 0;
    for (std::size_t i = 0; i < width; ++i) {
      for (std::size_t j = 0; j < width; ++j) {
        for (std::size_t o = 0; o < width; ++o) counted_[i][j] += told[i][o] * told[j][o];
      }
      trace += counted_[i][i];
    }
    for (std::size_t i = 0; i < width; ++i) {
      for (std::size_t j = 0; j < width; ++j) {
        counted_[i][j] *= weight * static_cast<double>(width) / trace;
        if (i == j) counted_[i][j] += 1 - weight;
      }
    }
  }

  // Mean of (y - y')^T M (y - y'), y' = sum of number i times direction i.
  double At(const std::vector<double>& finders, const std::vector<double>& directions) const {
    double sum = 0;
    for (const std::vector<double>& row : rows_) {
      std::vector<double> left = row;
      for (std::size_t i = 0; i < finders.size() / width_; ++i) {
        double number = 0;
        for (std::size_t c = 0; c < width_; ++c) number += row[c] * finders[i * width_ + c];
        for (std::size_t c = 0; c < width_; ++c) left[c] -= number * directions[i * width_ + c];
      }
      for (std::size_t i = 0; i < width_; ++i) {
        for (std::size_t j = 0; j < width_; ++j) sum += left[i] * counted_[i][j] * left[j];
      }
    }
    return sum / static_cast<double>(rows_.size());
  }

 private:
  void Size(const std::vector<float>& states) {
    std::vector<double> mean(width_);
    for (std::size_t at = 0; at < states.size(); at += width_) {
      std::vector<double> row(states.begin() + static_cast<std::ptrdiff_t>(at),
                              states.begin() + static_cast<std::ptrdiff_t>(at + width_));
      double squares = 0;
      for (const double x : row) squares += x * x;
      for (double& x : row) x /= std::sqrt(squares / static_cast<double>(width_));
      for (std::size_t c = 0; c < width_; ++c) mean[c] += row[c];
      rows_.push_back(std::move(row));
    }
    for (double& x : mean) x /= static_cast<double>(rows_.size());
    for (std::vector<double>& row : rows_) {
      for (std::size_t c = 0; c < width_; ++c) row[c] -= mean[c];
    }
  }

  Square Told(const std::vector<float>& outputs) const {
    Square covariance(width_, std::vector<double>(width_)), across = covariance;
    const auto count = static_cast<double>(rows_.size());
    for (std::size_t r = 0; r < rows_.size(); ++r) {
      for (std::size_t i = 0; i < width_; ++i) {
        for (std::size_t j = 0; j < width_; ++j) {
          covariance[i][j] += rows_[r][i] * rows_[r][j] / count;
          across[i][j] += rows_[r][i] * outputs[r * width_ + j] / count;
        }
      }
    }
    double trace = 0;
    for (std::size_t i = 0; i < width_; ++i) trace += covariance[i][i];
    for (std::size_t i = 0; i < width_; ++i) {
      covariance[i][i] += kRidgeOfFit * trace / static_cast<double>(width_);
    }
    return Solved(covariance, across);
  }

  std::size_t width_;
  Square rows_;     // sized, less their mean
  Square counted_;  // M
};

// States with a mean, correlated; outputs that they tell by a matrix that weighs channels unlike
// each other, and by no more than noise beside it.
struct Recorded {
  Recorded(std::size_t count, std::size_t width, Rng& rng) {
    Square mix(width, std::vector<double>(width)), tell = mix;
    for (std::size_t i = 0; i < width; ++i) {
      for (std::size_t j = 0; j < width; ++j) {
        mix[i][j] = (i == j ? 2 : 0) + rng.Normal() / (1.0 + static_cast<double>(j));
        tell[i][j] = 0.3 * rng.Normal() + (i == j ? 1 + static_cast<double>(i % 3) : 0);
      }
    }
    for (std::size_t r = 0; r < count; ++r) {
      std::vector<double> state(width, 0.5);
      for (std::size_t j = 0; j < width; ++j) {
        const double amount = rng.Normal();
        for (std::size_t i = 0; i < width; ++i) state[i] += mix[i][j] * amount;
      }
      for (std::size_t o = 0; o < width; ++o) {
        double output = 0.1 * rng.Normal();
        for (std::size_t i = 0; i < width; ++i) output += tell[o][i] * state[i];
        outputs.push_back(static_cast<float>(output));
      }
      for (const double x : state) states.push_back(static_cast<float>(x));
    }
  }
  std::vector<float> states, outputs;
};

struct Projection {
  std::vector<double> finders, directions;

  // Of length 1, all together.
  static Projection Random(std::size_t numbers, Rng& rng) {
    Projection random{.finders = std::vector<double>(numbers),
                      .directions = std::vector<double>(numbers)};
    double squares = 0;
    for (std::vector<double>* of : {&random.finders, &random.directions}) {
      for (double& x : *of) {
        x = rng.Normal();
        squares += x * x;
      }
    }
    for (std::vector<double>* of : {&random.finders, &random.directions}) {
      for (double& x : *of) x /= std::sqrt(squares);
    }
    return random;
  }
  Projection Moved(double by, const Projection& along) const {
    Projection moved = *this;
    for (std::size_t i = 0; i < finders.size(); ++i) {
      moved.finders[i] += by * along.finders[i];
      moved.directions[i] += by * along.directions[i];
    }
    return moved;
  }
};

double LossOf(const CombinedLoss& loss, const Projection& projection) {
  return loss.At(projection.finders, projection.directions);
}

double Difference(const CombinedLoss& loss, const Projection& at, const Projection& along,
                  double h) {
  return (LossOf(loss, at.Moved(h, along)) - LossOf(loss, at.Moved(-h, along))) / (2 * h);
}

TEST(CutFitLoss, NoNumberOfAFitCanBeMovedToLoseLessByBothSides) {
  Rng rng(TestSeed());
  for (const double weight : {0.0, 0.3, 0.7, 0.95}) {
    const std::size_t width = 6 + rng.Below(5), rank = 1 + rng.Below(width - 1);
    const Recorded recorded(60, width, rng);
    const CutFitter fitter = CutFitter::Create(1,
                                               {.width = static_cast<std::uint32_t>(width),
                                                .states = recorded.states,
                                                .outputs = recorded.outputs},
                                               {.massive = 1e6})
                                 .value();
    const CutFit fit = fitter.Fit(weight).value();
    const CombinedLoss loss(recorded.states, recorded.outputs, width, weight);
    const auto first = [&](const std::vector<float>& rows) {
      return std::vector<double>(rows.begin(),
                                 rows.begin() + static_cast<std::ptrdiff_t>(rank * width));
    };
    const Projection best{.finders = first(fit.basis.finders),
                          .directions = first(fit.basis.directions)};
    const double least = LossOf(loss, best);
    const double all = loss.At({}, {});
    double others = 0;
    for (std::size_t i = rank; i < width; ++i) others += fit.variance[i];
    // The basis is floats, each off by 2^-24 of itself, and the loss is level there.
    EXPECT_NEAR(least, others, 1e-9 * all) << "weight " << weight;

    // Along one direction the loss is of the fourth degree: a difference over 2h is off by its
    // third derivative times h^2 / 6, and by what rounding leaves of the loss over h. Second
    // derivatives, of the order of the loss of no numbers, times the basis's own rounding are what
    // the slope at its floats is.
    constexpr double kH = 1e-4;
    const double level = 1e-5 * all;
    double steepest = 0;
    for (int round = 0; round < 40; ++round) {
      const Projection along = Projection::Random(rank * width, rng);
      EXPECT_NEAR(Difference(loss, best, along, kH), 0, level) << "weight " << weight;
      for (const double far : {1e-3, 0.1, 1.0}) {
        EXPECT_GE(LossOf(loss, best.Moved(far, along)), least - 1e-9 * all);
      }
      // Elsewhere it is not level, so a fit that was off would be seen.
      const Projection off = best.Moved(0.1, Projection::Random(rank * width, rng));
      steepest = std::max(steepest, std::abs(Difference(loss, off, along, kH)));
    }
    EXPECT_GT(steepest, 100 * level);
  }
}

TEST(CutFitLoss, AFitOfAnotherWeightIsNotLevel) {
  Rng rng(TestSeed());
  constexpr std::size_t kWide = 8, kNumbers = 3 * kWide;
  const Recorded recorded(60, kWide, rng);
  const CutFitter fitter =
      CutFitter::Create(1, {.width = kWide, .states = recorded.states, .outputs = recorded.outputs},
                        {.massive = 1e6})
          .value();
  const CombinedLoss loss(recorded.states, recorded.outputs, kWide, 0.7);
  const CutBasis basis = fitter.Fit(0.2)->basis;
  const Projection other{
      .finders = {basis.finders.begin(), basis.finders.begin() + kNumbers},
      .directions = {basis.directions.begin(), basis.directions.begin() + kNumbers}};
  double steepest = 0;
  for (int round = 0; round < 40; ++round) {
    const Projection along = Projection::Random(kNumbers, rng);
    steepest = std::max(steepest, std::abs(Difference(loss, other, along, 1e-4)));
  }
  EXPECT_GT(steepest, 1e-3 * loss.At({}, {}));
}

}  // namespace
}  // namespace troupe
