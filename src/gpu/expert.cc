#include "gpu/expert.h"

#include <algorithm>
#include <limits>
#include <vector>

#include "base/check.h"
#include "quant/activations.h"

namespace troupe {
namespace {

Bytes FloatBytes(std::uint64_t rows, std::uint64_t cols) {
  return Bytes(rows * cols * sizeof(float));
}
// None where the width has no 8-bit form.
Bytes GroupBytes(std::uint32_t rows, std::uint32_t cols) {
  return cols % kGroupCols == 0 ? Bytes(ActivationBytes(rows, cols)) : Bytes(0);
}
Bytes ListBytes(std::uint32_t rows) { return Bytes(std::uint64_t{rows} * sizeof(std::uint32_t)); }

// Work that waits for what came before it in its lane fails where that has failed. Where work
// cannot be handed in, what was handed in before it ends first: the caller takes its memory back.
class Chain {
 public:
  explicit Chain(std::span<const GpuEventPtr> after) : after_(after.begin(), after.end()) {}

  Status Add(Result<GpuEventPtr> work) {
    if (!work.ok()) {
      for (const GpuEventPtr& event : after_) (void)event->Wait();
      return work.status();
    }
    after_.assign(1, std::move(work).value());
    return OkStatus();
  }
  std::span<const GpuEventPtr> after() const { return after_; }
  const GpuEventPtr& last() const { return after_.back(); }

 private:
  std::vector<GpuEventPtr> after_;
};

}  // namespace

Bytes GpuExpertMlp::BytesFor(const Shape& shape) {
  return 2 * FloatBytes(shape.rows, shape.width) + GroupBytes(shape.rows, shape.width) +
         2 * FloatBytes(shape.rows, shape.ff) + GroupBytes(shape.rows, shape.ff) +
         ListBytes(shape.rows);
}

Result<GpuExpertMlp> GpuExpertMlp::Create(GpuKernels& kernels, const Shape& shape) {
  TROUPE_CHECK(shape.rows > 0 && shape.width > 0 && shape.ff > 0);
  constexpr std::uint64_t kMost = std::numeric_limits<std::uint32_t>::max();
  TROUPE_CHECK(std::uint64_t{shape.rows} * std::max(shape.width, shape.ff) <= kMost);
  GpuExpertMlp mlp(kernels, shape);
  const auto allocate = [&](std::unique_ptr<GpuBuffer>& buffer, Bytes size) {
    if (size == Bytes(0)) return OkStatus();
    auto made = kernels.device().Allocate(size);
    if (made.ok()) buffer = std::move(made).value();
    return made.status();
  };
  TROUPE_RETURN_IF_ERROR(allocate(mlp.x_, FloatBytes(shape.rows, shape.width)));
  TROUPE_RETURN_IF_ERROR(allocate(mlp.x_groups_, GroupBytes(shape.rows, shape.width)));
  TROUPE_RETURN_IF_ERROR(allocate(mlp.rows_, ListBytes(shape.rows)));
  TROUPE_RETURN_IF_ERROR(allocate(mlp.hidden_, FloatBytes(shape.rows, shape.ff)));
  TROUPE_RETURN_IF_ERROR(allocate(mlp.ups_, FloatBytes(shape.rows, shape.ff)));
  TROUPE_RETURN_IF_ERROR(allocate(mlp.hidden_groups_, GroupBytes(shape.rows, shape.ff)));
  TROUPE_RETURN_IF_ERROR(allocate(mlp.out_, FloatBytes(shape.rows, shape.width)));
  return mlp;
}

Result<GpuEventPtr> GpuExpertMlp::SetRows(std::span<const float> x) {
  TROUPE_CHECK(!x.empty() && x.size() % shape_.width == 0 &&
               x.size() / shape_.width <= shape_.rows);
  const auto count = static_cast<std::uint32_t>(x.size() / shape_.width);
  set_ = nullptr;
  count_ = 0;
  Chain chain({});
  TROUPE_RETURN_IF_ERROR(chain.Add(kernels_->device().CopyIn(GpuLane::kCompute, std::as_bytes(x),
                                                             *x_, Bytes(0), chain.after())));
  if (x_groups_ != nullptr) {
    TROUPE_RETURN_IF_ERROR(chain.Add(kernels_->Quantize(
        {.values = x_.get(), .groups = x_groups_.get(), .count = count, .cols = shape_.width},
        chain.after())));
  }
  set_ = chain.last();
  count_ = count;
  return set_;
}

Result<GpuEventPtr> GpuExpertMlp::Run(const GpuMlp& expert, std::span<const std::uint32_t> rows,
                                      std::span<float> out, std::span<const GpuEventPtr> after) {
  TROUPE_CHECK(!rows.empty() && rows.size() <= shape_.rows);
  TROUPE_CHECK(out.size() == rows.size() * shape_.width);
  for (const std::uint32_t row : rows) TROUPE_CHECK(row < count_);
  const bool takes_up = TakesUp(expert.form);
  TROUPE_CHECK(expert.gate.cols == shape_.width && expert.gate.rows == shape_.ff);
  if (takes_up) TROUPE_CHECK(expert.up.cols == shape_.width && expert.up.rows == shape_.ff);
  TROUPE_CHECK(expert.down.cols == shape_.ff && expert.down.rows == shape_.width);
  const auto count = static_cast<std::uint32_t>(rows.size());
  const GpuRows x{x_.get(), x_groups_.get(), count_, shape_.width};
  const GpuRows hidden{hidden_.get(), hidden_groups_.get(), count, shape_.ff};
  std::vector<GpuEventPtr> all_after(after.begin(), after.end());
  all_after.push_back(set_);  // where the rows are not there, no answer to them is
  Chain chain(all_after);
  TROUPE_RETURN_IF_ERROR(chain.Add(kernels_->device().CopyIn(GpuLane::kCompute, std::as_bytes(rows),
                                                             *rows_, Bytes(0), chain.after())));
  TROUPE_RETURN_IF_ERROR(chain.Add(kernels_->Multiply(expert.gate, expert.gate_bias, x, rows_.get(),
                                                      count, *hidden_, chain.after())));
  if (takes_up) {
    TROUPE_RETURN_IF_ERROR(chain.Add(kernels_->Multiply(expert.up, expert.up_bias, x, rows_.get(),
                                                        count, *ups_, chain.after())));
  }
  TROUPE_RETURN_IF_ERROR(chain.Add(kernels_->Combine(
      expert.form, *hidden_, takes_up ? *ups_ : *hidden_, count * shape_.ff, chain.after())));
  if (WantsGroups(expert.down.type)) {
    TROUPE_RETURN_IF_ERROR(chain.Add(kernels_->Quantize(hidden, chain.after())));
  }
  TROUPE_RETURN_IF_ERROR(chain.Add(kernels_->Multiply(expert.down, expert.down_bias, hidden,
                                                      nullptr, count, *out_, chain.after())));
  TROUPE_RETURN_IF_ERROR(chain.Add(kernels_->device().CopyOut(
      GpuLane::kCompute, *out_, Bytes(0), std::as_writable_bytes(out), chain.after())));
  return chain.last();
}

}  // namespace troupe
