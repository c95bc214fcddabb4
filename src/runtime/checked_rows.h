// The logits that a check of drafts looks at: of the last sure row and of every guess of an entry
// of a pass. They are computed some rows at a time, in order, and as far as somebody looks: what
// follows a wrong guess is of no use.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

namespace troupe {

class CheckedRows {
 public:
  // Computes the logits of these rows of the pass, side by side.
  using Compute = std::function<void(std::span<const std::uint32_t> rows, float* logits)>;

  // A pass begins to be checked. At most so many rows at a time fit into the buffer.
  void Begin(std::span<float> buffer, std::size_t vocabulary);
  // The pass's entries in order; `count` rows of it are checked, 0 of one without a draft.
  void AddEntry(std::uint32_t first_row, std::uint32_t count);
  bool any() const { return !rows_.empty(); }

  // Valid until the next call.
  std::span<const float> Of(std::size_t entry, std::size_t row, const Compute& compute);
  // Rows whose logits were computed, since the beginning.
  std::uint64_t computed() const { return computed_; }

 private:
  std::span<float> buffer_;
  std::size_t vocabulary_ = 0;
  std::vector<std::uint32_t> rows_;          // that may be looked at, of all entries
  std::vector<std::size_t> first_of_entry_;  // among them
  std::size_t first_ = 0, count_ = 0;        // of those in the buffer
  std::uint64_t computed_ = 0;
};

}  // namespace troupe
