#include "kernels/attention_work.h"

#include <cstdint>

#include "base/check.h"

namespace troupe {
namespace {

constexpr std::size_t kAlign = 16;  // floats in a cache line and in the widest vector
constexpr std::size_t kPanelFloats = 64 * 64;

// Hands out consecutive pieces; with no memory behind it, only counts.
class Divider {
 public:
  explicit Divider(float* base) : base_(base) {}

  float* Take(std::size_t floats) {
    const std::size_t at = used_;
    used_ += AlignUp(floats, kAlign);
    return base_ == nullptr ? nullptr : base_ + at;
  }
  RowMatrix TakeRows(std::size_t stride) { return {Take(AttentionRows::kMost * stride), stride}; }
  std::size_t used() const { return used_; }

 private:
  float* base_;
  std::size_t used_ = 0;
};

AttentionWork DivideBy(const KvLayout& layout, Divider& divider) {
  static_assert(sizeof(SoftmaxState) == 2 * sizeof(float));
  AttentionWork work{};
  work.panel = divider.Take(kPanelFloats);
  work.other_panel = divider.Take(layout.values_in_keys ? kPanelFloats : 0);
  work.q = divider.TakeRows(layout.k_dim);
  work.scores = divider.TakeRows(Attention::kBlock);
  work.block_out = divider.TakeRows(layout.v_dim);
  work.total_out = divider.TakeRows(layout.v_dim);
  work.block_state = reinterpret_cast<SoftmaxState*>(divider.Take(2 * AttentionRows::kMost));
  work.total_state = reinterpret_cast<SoftmaxState*>(divider.Take(2 * AttentionRows::kMost));
  return work;
}

}  // namespace

std::size_t AttentionWork::Floats(const KvLayout& layout) {
  Divider counter(nullptr);
  DivideBy(layout, counter);
  return counter.used() + kAlign;  // the start may have to move up to its alignment
}

AttentionWork AttentionWork::Divide(const KvLayout& layout, float* scratch) {
  TROUPE_DCHECK(scratch != nullptr);
  const auto address = reinterpret_cast<std::uintptr_t>(scratch);
  const std::size_t bytes_up = AlignUp(address, kAlign * sizeof(float)) - address;
  Divider divider(scratch + bytes_up / sizeof(float));
  return DivideBy(layout, divider);
}

}  // namespace troupe
