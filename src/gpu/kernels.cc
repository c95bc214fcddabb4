#include "gpu/kernels.h"

#include "base/check.h"
#include "gpu/kernel_source.h"
#include "quant/activations.h"
#include "quant/block_formats.h"
#include "quant/panel.h"

namespace troupe {
namespace {

static_assert(sizeof(ActivationGroup) == 48, "as exact_kernels.cl reads it");

std::uint32_t GroupsFor(std::uint32_t items) {
  return (items + kGpuGroupItems - 1) / kGpuGroupItems;
}

Bytes BytesOfFloats(std::uint64_t count) { return Bytes(count * sizeof(float)); }

bool HasBytes(const GpuBuffer* buffer, Bytes least) {
  return buffer != nullptr && buffer->size() >= least;
}

}  // namespace

bool WantsGroups(TensorType type) {
  return WithBlockType(type, []<typename Block>() {});
}

Result<GpuKernels> GpuKernels::Build(GpuDevice& device, std::span<const TensorType> types) {
  GpuKernels kernels(device);
  TROUPE_ASSIGN_OR_RETURN(auto common, device.Build(CommonSource(), kCommonKernels));
  kernels.quantize_ = std::move(common[0]);
  kernels.combine_ = std::move(common[1]);
  for (const TensorType type : types) {
    if (kernels.products_.contains(type)) continue;
    TROUPE_ASSIGN_OR_RETURN(auto product, device.Build(ProductSource(type), kProductKernels));
    kernels.products_[type] = std::move(product[0]);
  }
  return kernels;
}

Result<GpuEventPtr> GpuKernels::Quantize(const GpuRows& x, std::span<const GpuEventPtr> after) {
  TROUPE_CHECK(x.cols % kGroupCols == 0);
  TROUPE_CHECK(HasBytes(x.values, BytesOfFloats(std::uint64_t{x.count} * x.cols)));
  TROUPE_CHECK(HasBytes(x.groups, Bytes(ActivationBytes(x.count, x.cols))));
  const std::uint32_t groups = x.count * (x.cols / static_cast<std::uint32_t>(kGroupCols));
  return device_->Launch({.kernel = quantize_.get(),
                          .arguments = {x.values, groups, x.groups},
                          .groups = {GroupsFor(groups), 1},
                          .group_size = kGpuGroupItems},
                         after);
}

Result<GpuEventPtr> GpuKernels::Multiply(const GpuMatrix& w, const GpuVector& bias,
                                         const GpuRows& x, const GpuBuffer* rows,
                                         std::uint32_t count, const GpuBuffer& out,
                                         std::span<const GpuEventPtr> after) {
  const auto product = products_.find(w.type);
  TROUPE_CHECK(product != products_.end() && w.cols == x.cols && w.rows > 0 && count > 0);
  TROUPE_CHECK(w.at % kPanelRows == 0);
  TROUPE_CHECK(w.memory->size() >= Bytes(w.at + PanelBytes(w.type, w.rows, w.cols)));
  TROUPE_CHECK(out.size() >= BytesOfFloats(std::uint64_t{count} * w.rows));
  const std::uint64_t biases = bias.memory == nullptr ? 0 : bias.memory->size().count() / 4;
  TROUPE_CHECK(bias.memory == nullptr || (bias.at <= biases && w.rows <= biases - bias.at));
  // The numbers in `rows` are the caller's to keep below x.count.
  TROUPE_CHECK(rows == nullptr ? count <= x.count : rows->size() >= BytesOfFloats(count));
  const bool blocks = WantsGroups(w.type);
  const GpuBuffer* const read = blocks ? x.groups : x.values;
  const Bytes read_size = blocks ? Bytes(ActivationBytes(x.count, x.cols))
                                 : BytesOfFloats(std::uint64_t{x.count} * x.cols);
  TROUPE_CHECK(HasBytes(read, read_size));
  const auto lanes = static_cast<std::uint32_t>(kPanelRows);
  return device_->Launch(
      {.kernel = product->second.get(),
       .arguments = {w.memory, w.at, w.rows, w.cols, read, rows, count, bias.memory, bias.at, &out},
       .groups = {(w.rows + lanes - 1) / lanes, (count + kGpuTile - 1) / kGpuTile},
       .group_size = lanes * (blocks ? kGpuSlices : kGpuTile)},
      after);
}

Result<GpuEventPtr> GpuKernels::Combine(GateForm form, const GpuBuffer& gates, const GpuBuffer& ups,
                                        std::uint32_t count, std::span<const GpuEventPtr> after) {
  TROUPE_CHECK(gates.size() >= BytesOfFloats(count));
  TROUPE_CHECK(ups.size() >= BytesOfFloats(count));
  return device_->Launch({.kernel = combine_.get(),
                          .arguments = {static_cast<std::uint32_t>(form), &gates, &ups, count},
                          .groups = {GroupsFor(count), 1},
                          .group_size = kGpuGroupItems},
                         after);
}

}  // namespace troupe
