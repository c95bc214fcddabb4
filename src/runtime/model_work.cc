#include "runtime/model_work.h"

#include <algorithm>

namespace troupe {
namespace {

LoadShape LoadOf(const PlannedModel& model, ExpertId id, const ExpertLayout& layout) {
  LoadShape load{
      .bytes = Bytes(layout.SlotBytes()), .extents = 1, .piece = model.plan.loader.piece};
  if (model.store == nullptr) return load;  // never loaded
  std::vector<Extent> extents;
  model.store->Locate(id, extents);
  constexpr std::uint64_t kAlign = kDirectAlignment.count();
  std::erase_if(extents, [](const Extent& extent) { return extent.bytes == 0; });
  std::uint64_t bytes = 0;
  for (const Extent& extent : extents) {  // widened as direct reads are
    bytes += AlignUp(extent.offset + extent.bytes, kAlign) - extent.offset / kAlign * kAlign;
  }
  load.bytes = Bytes(bytes);
  load.extents = static_cast<std::uint32_t>(extents.size());
  return load;
}

}  // namespace

std::string ShapeKey(const ExpertLayout& layout) {
  std::string key;
  for (const ExpertMatrix& matrix : layout.matrices) {
    if (matrix.rows == 0) continue;
    if (!key.empty()) key += ", ";
    key += fmt::format("{} {}x{}", Name(matrix.type), matrix.rows, matrix.cols);
  }
  return key;
}

std::vector<LocalWork> LocalWorkOf(const ExpertLayouts& layouts, const CostModel& costs) {
  std::vector<LocalWork> local(layouts.size());
  for (std::size_t l = 0; l < layouts.size(); ++l) {
    if (layouts[l].empty()) continue;
    const ExpertCost* cost = costs.Find(ShapeKey(layouts[l]));
    if (cost == nullptr) return {};
    local[l] = {.first_row_seconds = cost->first_row.value,
                .further_row_seconds = cost->further_row.value};
  }
  return local;
}

std::vector<ExpertLayout> DistinctShapes(const GgufModel& file, const ExpertLayouts& layouts) {
  std::vector<ExpertLayout> shapes;
  for (const ExpertLayout& layout : layouts) {
    const bool known = std::any_of(shapes.begin(), shapes.end(), [&](const ExpertLayout& other) {
      return ShapeKey(other) == ShapeKey(layout);
    });
    if (!layout.empty() && !known) shapes.push_back(layout);
  }
  if (!shapes.empty()) return shapes;
  const TensorInfo* gate = file.Find("blk.0.ffn_gate.weight");
  const TensorInfo* up = file.Find("blk.0.ffn_up.weight");
  const TensorInfo* down = file.Find("blk.0.ffn_down.weight");
  if (gate != nullptr && up != nullptr && down != nullptr) {
    shapes.push_back(ExpertLayout::For(*gate, *up, *down));
  }
  return shapes;
}

ModelWork WorkOf(const PlannedModel& model) {
  const ModelFacts& facts = model.facts;
  ModelWork work;
  work.head = facts.tied_output ? facts.embedding : facts.output;
  // Of the embedding a token reads one row, unless it is the output matrix, too.
  const Bytes beside = facts.tied_output ? facts.embedding : facts.embedding + facts.output;
  work.dense = model.measure.bytes.dense > beside ? model.measure.bytes.dense - beside : Bytes();
  work.experts_per_layer = model.plan.needs.experts_per_layer;
  work.experts_per_token = model.plan.needs.experts_per_token;

  const ExpertLayouts& layouts = model.measure.experts;
  for (std::uint32_t layer = 0; layer < layouts.size(); ++layer) {
    if (layouts[layer].empty()) continue;
    const std::string shape = ShapeKey(layouts[layer]);
    const auto same = std::find_if(work.experts.begin(), work.experts.end(),
                                   [&](const ExpertLayers& kind) { return kind.shape == shape; });
    if (same != work.experts.end()) {
      ++same->layers;
      continue;
    }
    work.experts.push_back({.layers = 1,
                            .shape = shape,
                            .bytes = Bytes(layouts[layer].SlotBytes()),
                            .load = LoadOf(model, {.layer = layer, .expert = 0}, layouts[layer])});
  }
  if (const std::vector<ExpertLayout> shapes = DistinctShapes(model.file, layouts);
      !shapes.empty()) {
    work.like = ShapeKey(shapes.front());
    work.like_bytes = Bytes(shapes.front().SlotBytes());
  }
  return work;
}

}  // namespace troupe
