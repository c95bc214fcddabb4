// Finds what a codec of states goes by (split/codec/cut_basis.h) in recorded rows of the residual
// stream at a cut and behind the last layer: which channels are massive, and which numbers of a row
// say the most of the others, by both sides of EC2MoE's Eq. 8. Closed form. Pure.
//
// With y a row as a share of its size, less the mean, and z what the model's output is computed
// from, B is the matrix by which y tells z best (least squares): what the rest of the model does to
// small changes of y, on average. What is lost is counted as
//   (y - y')^T M (y - y'),  M = (1 - weight) I + weight B^T B * width / trace(B^T B),
// so that weight 0 is the error of states (PCA), 1 that of what is predicted further on. The best
// numbers of any rank are the eigenvectors of M^(1/2) covariance(y) M^(1/2).
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/bytes.h"
#include "base/status.h"
#include "split/codec/cut_basis.h"

namespace troupe {

struct CutFitOptions {
  // A channel is massive if its root mean square is more than this many times the median channel's.
  double massive = 8;
  std::size_t most_kept = 32;  // of them; the largest
};

// What was recorded of a text.
struct CutRows {
  std::uint32_t width = 0;
  std::span<const float> states;  // at the cut
  // Of the same tokens: what their logits are computed from. Empty: fits are of weight 0 alone.
  std::span<const float> outputs;
};

struct CutFit {
  CutBasis basis;                // with all numbers there are
  std::vector<double> variance;  // of each of them, falling
};

// The sums over rows that fits of any weight are made of.
class CutFitter {
 public:
  // Beside the rows, for the memory plan; fits counted.
  static Bytes BytesFor(std::size_t width);

  // At least as many rows as they are wide; finite.
  static Result<CutFitter> Create(std::uint32_t layer, const CutRows& rows,
                                  const CutFitOptions& options = {});
  CutFitter(CutFitter&&) noexcept;
  ~CutFitter();

  // REQUIRES: weight is 0, or there were outputs.
  Result<CutFit> Fit(double weight) const;

 private:
  struct Sums;
  explicit CutFitter(std::unique_ptr<Sums> sums);
  std::unique_ptr<Sums> sums_;
};

}  // namespace troupe
