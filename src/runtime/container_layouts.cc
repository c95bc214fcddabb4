#include "runtime/container_layouts.h"

#include "base/check.h"

namespace troupe {
namespace {

Status CheckLayer(const ContainerLayer& layer, std::uint32_t experts, const ExpertLayout& model,
                  std::string_view path) {
  for (std::size_t m = 0; m < layer.types.size(); ++m) {
    const ExpertMatrix& matrix = model.matrices[m];
    if (experts != matrix.tensor->dims[2]) {
      return DataLoss("{}: layer {}: {} experts, {} expected; {}", path, layer.layer, experts,
                      matrix.tensor->dims[2], kPackAgain);
    }
    if (matrix.cols % Info(layer.types[m]).block_elems != 0) {
      return DataLoss("{}: layer {}: type {} for rows of {}, which do not fit it; {}", path,
                      layer.layer, Name(layer.types[m]), matrix.cols, kPackAgain);
    }
  }
  const std::uint64_t bytes = model.In(layer.types).SlotBytes();
  if (layer.expert_bytes != bytes) {
    return DataLoss("{}: layer {}: experts of {} bytes, {} expected; {}", path, layer.layer,
                    layer.expert_bytes, bytes, kPackAgain);
  }
  return OkStatus();
}

}  // namespace

Result<ExpertLayouts> LayoutsIn(const ContainerIndex& index, std::size_t precision,
                                const ExpertLayouts& model, std::string_view path) {
  TROUPE_CHECK(precision < index.precisions.size());
  ExpertLayouts layouts(model.size());
  auto next = index.precisions[precision].begin();
  const auto end = index.precisions[precision].end();
  for (std::uint32_t layer = 0; layer < model.size(); ++layer) {
    if (model[layer].empty()) continue;
    if (next == end || next->layer != layer) {
      return DataLoss("{}: the experts of layer {} are missing; {}", path, layer, kPackAgain);
    }
    TROUPE_RETURN_IF_ERROR(CheckLayer(*next, index.experts, model[layer], path));
    layouts[layer] = model[layer].In(next->types);
    ++next;
  }
  if (next != end) {
    return DataLoss("{}: experts of layer {}, which has none in the model; {}", path, next->layer,
                    kPackAgain);
  }
  return layouts;
}

}  // namespace troupe
