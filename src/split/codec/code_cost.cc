#include "split/codec/code_cost.h"

#include <algorithm>
#include <cstddef>
#include <limits>
#include <vector>

#include "base/rng.h"

namespace troupe {
namespace {

constexpr std::size_t kTimedRows = 16;
constexpr int kTimes = 3;

}  // namespace

Result<CodeCost> MeasureCode(const std::shared_ptr<const CutBasis>& basis, const StateCode& code,
                             const Clock& clock) {
  TROUPE_ASSIGN_OR_RETURN(StateEncoder encoder, StateEncoder::Create(basis, code));
  TROUPE_ASSIGN_OR_RETURN(StateDecoder decoder, StateDecoder::Create(basis, code));
  std::vector<float> rows(kTimedRows * basis->width);
  // All rows take the same time, except by an entropy coder: spread about as models' are.
  Rng rng(1);
  for (float& x : rows) x = static_cast<float>(rng.Normal());
  const auto a_row = [](Nanos from, Nanos to) {
    return static_cast<double>(to - from) * 1e-9 / kTimedRows;
  };
  constexpr double kNever = std::numeric_limits<double>::infinity();
  CodeCost cost{.encode_seconds = kNever, .decode_seconds = kNever};
  for (int i = 0; i < kTimes; ++i) {
    const Nanos began = clock.Now();
    const std::vector<std::byte> message = encoder.Encode(0, rows);
    const Nanos written = clock.Now();
    TROUPE_RETURN_IF_ERROR(decoder.Decode(message).status());
    cost.encode_seconds = std::min(cost.encode_seconds, a_row(began, written));
    cost.decode_seconds = std::min(cost.decode_seconds, a_row(written, clock.Now()));
  }
  return cost;
}

}  // namespace troupe
