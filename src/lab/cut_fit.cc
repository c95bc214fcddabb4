#include "lab/cut_fit.h"

#include <Eigen/Cholesky>
#include <Eigen/Eigenvalues>
#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>

#include "base/check.h"

namespace troupe {
namespace {

using RowMajor = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

constexpr std::size_t kRowsInDouble = 256;  // at a time
// Of the mean variance: added to find B, and the least that M counts any direction for, so that
// what nobody needs further on is not blown up on its way back.
constexpr double kRidge = 1e-4, kLeastOfM = 1e-3;

// Root mean square of each channel.
std::vector<double> ChannelSizes(std::size_t width, std::span<const float> rows) {
  std::vector<double> sizes(width);
  for (std::size_t i = 0; i < rows.size(); ++i) sizes[i % width] += double{rows[i]} * rows[i];
  const auto count = static_cast<double>(rows.size() / width);
  for (double& size : sizes) size = std::sqrt(size / count);
  return sizes;
}

std::vector<std::uint32_t> MassiveChannels(const std::vector<double>& sizes,
                                           const CutFitOptions& options) {
  std::vector<double> sorted = sizes;
  const auto middle = sorted.begin() + static_cast<std::ptrdiff_t>(sorted.size() / 2);
  std::ranges::nth_element(sorted, middle);
  std::vector<std::uint32_t> massive;
  for (std::uint32_t channel = 0; channel < sizes.size(); ++channel) {
    if (sizes[channel] > options.massive * *middle) massive.push_back(channel);
  }
  std::ranges::stable_sort(massive, std::greater(),
                           [&sizes](std::uint32_t channel) { return sizes[channel]; });
  massive.resize(std::min({massive.size(), options.most_kept, sizes.size() - 1}));
  std::ranges::sort(massive);
  return massive;
}

// Some channels of the rows [first, first + count).
RowMajor SomeOf(std::span<const float> rows, std::size_t width,
                const std::vector<std::uint32_t>& channels, std::size_t first, std::size_t count) {
  RowMajor part(count, channels.size());
  for (Eigen::Index r = 0; r < part.rows(); ++r) {
    const float* const row = rows.data() + (first + static_cast<std::size_t>(r)) * width;
    for (Eigen::Index c = 0; c < part.cols(); ++c) {
      part(r, c) = row[channels[static_cast<std::size_t>(c)]];
    }
  }
  return part;
}

// Rows as shares of their size.
RowMajor SizedStates(const CutRows& rows, const std::vector<std::uint32_t>& channels,
                     std::size_t first, std::size_t count) {
  RowMajor part = SomeOf(rows.states, rows.width, channels, first, count);
  for (Eigen::Index r = 0; r < part.rows(); ++r) {
    const double size = std::sqrt(part.row(r).squaredNorm() / static_cast<double>(part.cols()));
    if (size > 0) part.row(r) /= size;
  }
  return part;
}

// use(first, count) for all rows, some at a time.
template <typename Use>
void ForParts(std::size_t count, Use use) {
  for (std::size_t at = 0; at < count; at += kRowsInDouble) {
    use(at, std::min(kRowsInDouble, count - at));
  }
}

// B^T: how a channel of sized rows tells each one of the outputs.
Eigen::MatrixXd TellOutputs(const CutRows& rows, const std::vector<std::uint32_t>& channels,
                            const Eigen::RowVectorXd& mean, const Eigen::MatrixXd& covariance) {
  const std::size_t count = rows.states.size() / rows.width;
  std::vector<std::uint32_t> all(rows.width);
  std::iota(all.begin(), all.end(), 0u);
  Eigen::MatrixXd across = Eigen::MatrixXd::Zero(mean.size(), rows.width);
  ForParts(count, [&](std::size_t first, std::size_t some) {
    // The mean of one side alone is enough.
    RowMajor states = SizedStates(rows, channels, first, some);
    states.rowwise() -= mean;
    across.noalias() += states.transpose() * SomeOf(rows.outputs, rows.width, all, first, some);
  });
  across /= static_cast<double>(count);
  Eigen::MatrixXd ridged = covariance;
  const double mean_variance = ridged.trace() / static_cast<double>(ridged.rows());
  ridged.diagonal().array() += kRidge * std::max(mean_variance, 1e-30);
  return ridged.ldlt().solve(across);
}

Status CheckRows(const CutRows& rows) {
  const std::size_t width = rows.width;
  TROUPE_CHECK(width >= 1 && rows.states.size() % width == 0 &&
               (rows.outputs.empty() || rows.outputs.size() == rows.states.size()));
  if (rows.states.size() / width < width) {
    return InvalidArgument(
        "{} tokens to fit a cut on, at least {} expected: as many as states are wide",
        rows.states.size() / width, width);
  }
  const auto finite = [](float x) { return std::isfinite(x); };
  if (!std::ranges::all_of(rows.states, finite) || !std::ranges::all_of(rows.outputs, finite)) {
    return DataLoss("the model's states hold numbers that are not finite");
  }
  return OkStatus();
}

// The matrix whose eigenvalues are f(m's).
Eigen::MatrixXd WithEigenvalues(const Eigen::SelfAdjointEigenSolver<Eigen::MatrixXd>& m,
                                const std::function<double(double)>& f) {
  return m.eigenvectors() * m.eigenvalues().unaryExpr(f).asDiagonal() *
         m.eigenvectors().transpose();
}

}  // namespace

struct CutFitter::Sums {
  std::uint32_t layer = 0, width = 0;
  std::vector<std::uint32_t> kept, others;
  Eigen::RowVectorXd mean;     // of the others, sized
  Eigen::MatrixXd covariance;  // of them
  Eigen::MatrixXd task;        // B^T B, its trace made the number of the others; or empty
};

CutFitter::CutFitter(std::unique_ptr<Sums> sums) : sums_(std::move(sums)) {}
CutFitter::CutFitter(CutFitter&&) noexcept = default;
CutFitter::~CutFitter() = default;

Bytes CutFitter::BytesFor(std::size_t width) {
  // Covariance, task, B's two sides, M and its roots, two times eigenvectors with what finding them
  // takes; finders and directions as floats, in order and as they are found.
  return Bytes(width * width * (10 * sizeof(double) + 4 * sizeof(float)) +
               3 * kRowsInDouble * width * sizeof(double));
}

Result<CutFitter> CutFitter::Create(std::uint32_t layer, const CutRows& rows,
                                    const CutFitOptions& options) {
  TROUPE_RETURN_IF_ERROR(CheckRows(rows));
  auto sums = std::make_unique<Sums>();
  sums->layer = layer;
  sums->width = rows.width;
  sums->kept = MassiveChannels(ChannelSizes(rows.width, rows.states), options);
  for (std::uint32_t channel = 0; channel < rows.width; ++channel) {
    if (!std::ranges::binary_search(sums->kept, channel)) sums->others.push_back(channel);
  }
  const auto channels = static_cast<double>(sums->others.size());
  const std::size_t count = rows.states.size() / rows.width;
  sums->mean = Eigen::RowVectorXd::Zero(static_cast<Eigen::Index>(sums->others.size()));
  ForParts(count, [&](std::size_t first, std::size_t some) {
    sums->mean += SizedStates(rows, sums->others, first, some).colwise().sum();
  });
  sums->mean /= static_cast<double>(count);
  sums->covariance = Eigen::MatrixXd::Zero(sums->mean.size(), sums->mean.size());
  ForParts(count, [&](std::size_t first, std::size_t some) {
    RowMajor states = SizedStates(rows, sums->others, first, some);
    states.rowwise() -= sums->mean;
    sums->covariance.noalias() += states.transpose() * states;
  });
  sums->covariance /= static_cast<double>(count);
  if (rows.outputs.empty()) return CutFitter(std::move(sums));
  const Eigen::MatrixXd told = TellOutputs(rows, sums->others, sums->mean, sums->covariance);
  sums->task.noalias() = told * told.transpose();
  const double trace = sums->task.trace();
  if (trace > 0) sums->task *= channels / trace;
  return CutFitter(std::move(sums));
}

Result<CutFit> CutFitter::Fit(double weight) const {
  TROUPE_CHECK(weight == 0 || sums_->task.size() > 0);
  const auto channels = static_cast<Eigen::Index>(sums_->others.size());
  Eigen::MatrixXd counted = (1 - weight) * Eigen::MatrixXd::Identity(channels, channels);
  if (weight > 0) counted += weight * sums_->task;
  const Eigen::SelfAdjointEigenSolver<Eigen::MatrixXd> m(counted);
  const auto least = [](double x) { return std::max(x, kLeastOfM); };
  const Eigen::MatrixXd root = WithEigenvalues(m, [&](double x) { return std::sqrt(least(x)); });
  const Eigen::MatrixXd back =
      WithEigenvalues(m, [&](double x) { return 1 / std::sqrt(least(x)); });
  const Eigen::SelfAdjointEigenSolver<Eigen::MatrixXd> solver(root * sums_->covariance * root);
  if (m.info() != Eigen::Success || solver.info() != Eigen::Success) {
    return Error(Code::kInternal, "what layer {}'s states vary along was not found", sums_->layer);
  }
  const Eigen::MatrixXd finders = root * solver.eigenvectors();
  const Eigen::MatrixXd directions = back * solver.eigenvectors();
  CutFit fit;
  fit.basis = {.layer = sums_->layer,
               .width = sums_->width,
               .kept = sums_->kept,
               .mean = std::vector<float>(sums_->width),
               .finders = std::vector<float>(sums_->others.size() * sums_->width),
               .directions = std::vector<float>(sums_->others.size() * sums_->width)};
  for (Eigen::Index c = 0; c < channels; ++c) {
    const std::uint32_t channel = sums_->others[static_cast<std::size_t>(c)];
    fit.basis.mean[channel] = static_cast<float>(sums_->mean(c));
    for (Eigen::Index i = 0; i < channels; ++i) {
      const std::size_t at = static_cast<std::size_t>(i) * sums_->width + channel;
      const Eigen::Index from = channels - 1 - i;  // they come by rising variance
      fit.basis.finders[at] = static_cast<float>(finders(c, from));
      fit.basis.directions[at] = static_cast<float>(directions(c, from));
    }
  }
  for (Eigen::Index i = channels - 1; i >= 0; --i) {
    fit.variance.push_back(std::max(0.0, solver.eigenvalues()(i)));
  }
  return fit;
}

}  // namespace troupe
