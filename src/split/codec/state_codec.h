// Writes rows of the residual stream for the other side of a cut, and reads them there. Exact codes
// give back every bit. Others lose what lies outside of the directions that cross and what the bits
// cannot say, and always the same: sums are in a fixed order of fused multiply-adds, on every
// machine. Massive channels cross as they are. One thread each.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/status.h"
#include "split/codec/cut_basis.h"
#include "split/codec/state_code.h"
#include "split/codec/state_frame.h"

namespace troupe {

// A copy has the table of what it was copied from.
class StateEncoder {
 public:
  // kInvalidArgument: a basis that cannot be, or a rank that it does not have.
  static Result<StateEncoder> Create(std::shared_ptr<const CutBasis> basis, StateCode code);

  const StateCode& code() const { return code_; }
  // Of a row before an entropy coder: no message is longer than its head and such rows.
  std::size_t row_bytes() const { return frame_.row_bytes(); }

  // 1 to kMostStateRows rows of the basis' width, of which the first is at position `first` of its
  // sequence, as a message (state_frame.h). By an entropy coder only where that is shorter.
  std::vector<std::byte> Encode(std::uint32_t first, std::span<const float> rows);

 private:
  StateEncoder(std::shared_ptr<const CutBasis> basis, StateCode code);
  std::vector<std::byte> EncodePlain(std::span<const float> rows);
  // Of some rows at once, so that the finders are read once for them.
  void Project(std::span<const float> rows);

  std::shared_ptr<const CutBasis> basis_;
  StateCode code_;
  StateFrame frame_;                   // of the next message, before an entropy coder
  std::vector<std::uint32_t> others_;  // channels that are not kept apart
  std::shared_ptr<const std::vector<float>> columns_;  // of the finders: [others][rank]
  std::vector<float> sizes_;                           // of the rows that were projected
  std::vector<float> numbers_;                         // what crosses of each of them
};

class StateDecoder {
 public:
  static Result<StateDecoder> Create(std::shared_ptr<const CutBasis> basis, StateCode code);

  struct States {
    std::uint32_t first = 0;  // position of the first row
    std::vector<float> rows;
  };
  // kInvalidArgument: rows of another cut, code or basis. Where an entropy coder is expected they
  // may come without. Beside Decode it may be asked by others.
  Status CheckFrame(const StateFrame& frame) const;
  // As CheckFrame. kDataLoss: this is no such message, or a number that comes out is not finite.
  Result<States> Decode(std::span<const std::byte> message);

 private:
  StateDecoder(std::shared_ptr<const CutBasis> basis, StateCode code);
  // Of some rows, for which the directions are read once.
  void DecodeSome(std::span<const std::byte> in, std::span<float> rows);
  // What the bytes of a row say: its channels, or, in a slot, its size and its numbers.
  void Unpack(std::span<const std::byte> in, std::span<float> row, std::size_t slot);
  void Combine(std::span<float> rows);

  std::shared_ptr<const CutBasis> basis_;
  StateCode code_;
  std::uint64_t digest_;
  std::vector<std::uint32_t> others_;
  std::vector<float> sizes_;    // of the rows under way
  std::vector<float> numbers_;  // and what crossed of each of them
};

}  // namespace troupe
