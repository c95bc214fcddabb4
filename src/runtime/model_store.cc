#include "runtime/model_store.h"

#include <filesystem>
#include <utility>

#include "quant/panel.h"
#include "runtime/checked_experts.h"
#include "runtime/container_layouts.h"
#include "runtime/container_path.h"
#include "store/container_store.h"
#include "store/gguf_store.h"
#include "store/model_fingerprint.h"

namespace troupe {
namespace {

Result<std::unique_ptr<ExpertStore>> OpenInPlace(const GgufModel& model,
                                                 const ExpertLayouts& layouts,
                                                 std::shared_ptr<const WeightChecks> sums) {
  std::vector<std::string> paths;
  for (const ReadFile& file : model.files()) paths.push_back(file.path());
  std::vector<std::vector<GgufExpertPart>> layers(layouts.size());
  for (std::size_t layer = 0; layer < layouts.size(); ++layer) {
    for (const ExpertMatrix& matrix : layouts[layer].matrices) {
      if (matrix.tensor == nullptr) break;  // a dense layer
      const std::uint64_t row = RowBytes(matrix.type, matrix.cols).count();
      layers[layer].push_back({.file = matrix.tensor->file,
                               .offset = matrix.tensor->offset + matrix.FirstRow(0) * row,
                               .bytes = matrix.SourceBytes(),
                               .stride = matrix.tensor_rows * row});
    }
  }
  TROUPE_ASSIGN_OR_RETURN(
      GgufStore store, GgufStore::Open(
                           paths, std::move(layers),
                           [layouts](ExpertId id, std::span<const std::span<const std::byte>> parts,
                                     std::span<std::byte> slot) {
                             layouts[id.layer].Pack(parts, slot);
                             return OkStatus();
                           },
                           std::make_unique<CheckedExperts>(std::move(sums), layouts)));
  // Headers were read through one opening and experts will be through another: of the same file.
  for (std::size_t i = 0; i < paths.size(); ++i) {
    if (store.files()[i].identity() == model.files()[i].identity()) continue;
    return Error(Code::kUnavailable, "{}: the file changed while it was being opened", paths[i]);
  }
  return std::unique_ptr<ExpertStore>(std::make_unique<GgufStore>(std::move(store)));
}

}  // namespace

Result<std::string> FindContainer(const GgufModel& model, const std::string& wanted) {
  if (wanted == "none") return std::string();
  if (!wanted.empty()) return wanted;
  std::string beside = ContainerPathFor(model.path());
  std::error_code ignored;
  return std::filesystem::exists(beside, ignored) ? beside : std::string();
}

Result<std::unique_ptr<ExpertStore>> OpenModelStore(const GgufModel& model,
                                                    const ExpertLayouts& layouts,
                                                    const std::string& container,
                                                    std::shared_ptr<const WeightChecks> sums) {
  if (container.empty()) return OpenInPlace(model, layouts, std::move(sums));
  TROUPE_ASSIGN_OR_RETURN(const ModelFingerprint fingerprint, FingerprintModel(model));
  TROUPE_ASSIGN_OR_RETURN(ContainerStore store,
                          ContainerStore::Open(container, fingerprint, kPanelLayoutVersion));
  TROUPE_ASSIGN_OR_RETURN(const ExpertLayouts packed,
                          LayoutsIn(store.index(), 0, layouts, container));
  for (std::size_t layer = 0; layer < layouts.size(); ++layer) {
    for (std::size_t m = 0; m < layouts[layer].matrices.size(); ++m) {
      const TensorType found = packed[layer].matrices[m].type;
      const TensorType expected = layouts[layer].matrices[m].type;
      if (found == expected) continue;
      return DataLoss(
          "{}: layer {}: experts of type {}, the model has {}; `troupe pack` makes the "
          "container anew",
          container, layer, Name(found), Name(expected));
    }
  }
  return std::unique_ptr<ExpertStore>(std::make_unique<ContainerStore>(std::move(store)));
}

Result<LowExperts> OpenLowExperts(const GgufModel& model, const ExpertLayouts& layouts,
                                  const std::string& container) {
  if (container.empty()) {
    return Error(Code::kFailedPrecondition,
                 "{}: its experts have no low copies; `troupe pack MODEL --low TYPE` makes them",
                 model.path());
  }
  constexpr std::size_t kLowPrecision = 1;
  TROUPE_ASSIGN_OR_RETURN(const ModelFingerprint fingerprint, FingerprintModel(model));
  TROUPE_ASSIGN_OR_RETURN(
      ContainerStore store,
      ContainerStore::Open(container, fingerprint, kPanelLayoutVersion, kLowPrecision));
  TROUPE_ASSIGN_OR_RETURN(ExpertLayouts low,
                          LayoutsIn(store.index(), kLowPrecision, layouts, container));
  const Bytes most = OffloadedExperts::SlotBytes(layouts), found = OffloadedExperts::SlotBytes(low);
  if (found > most) {
    return DataLoss(
        "{}: low copies of {}, at most {} expected; `troupe pack` makes the container "
        "anew",
        container, ToString(found), ToString(most));
  }
  return LowExperts{.layouts = std::move(low),
                    .store = std::make_unique<ContainerStore>(std::move(store))};
}

}  // namespace troupe
