#include "store/container_store.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "io/file.h"
#include "store/running_checksum.h"

namespace troupe {

namespace {

static_assert(kContainerAlignment % kDirectAlignment.count() == 0,
              "experts are read straight into slots");

Status CheckBelongs(const std::string& path, const ContainerIndex& index,
                    const ModelFingerprint& model, std::uint32_t panel_layout,
                    std::size_t precision) {
  if (index.model != model) {
    return Error(Code::kFailedPrecondition,
                 "{}: packed from another model (fingerprint {}, {} expected), or the model has "
                 "changed: `troupe inspect MODEL --verify` tells; {}",
                 path, ToString(index.model), ToString(model), kPackAgain);
  }
  if (index.panel_layout != panel_layout) {
    return Error(Code::kFailedPrecondition,
                 "{}: has panels of layout {}, this troupe reads layout {}; {}", path,
                 index.panel_layout, panel_layout, kPackAgain);
  }
  if (precision >= index.precisions.size()) {
    return Error(
        Code::kFailedPrecondition,
        "{}: holds no experts of lower precision; `troupe pack MODEL --low TYPE` adds them", path);
  }
  return OkStatus();
}

}  // namespace

ContainerStore::ContainerStore(ContainerStore&&) noexcept = default;
ContainerStore& ContainerStore::operator=(ContainerStore&&) noexcept = default;
ContainerStore::~ContainerStore() = default;

ContainerStore::ContainerStore(DirectFile file, ContainerIndex index, std::size_t precision)
    : file_(std::move(file)), index_(std::move(index)), precision_(precision) {
  const std::vector<ContainerLayer>& layers = index_.precisions.at(precision_);
  positions_.assign(layers.back().layer + 1, -1);
  for (std::size_t l = 0; l < layers.size(); ++l) {
    positions_[layers[l].layer] = static_cast<std::int32_t>(l);
  }
  verified_ = std::make_unique<VerifiedOnce>(layers.size() * index_.experts);
}

Result<ContainerStore> ContainerStore::Open(const std::string& path, const ModelFingerprint& model,
                                            std::uint32_t panel_layout, std::size_t precision) {
  TROUPE_ASSIGN_OR_RETURN(DirectFile experts, DirectFile::Open(path));
  // The index is read through the page cache, which asks for no alignment.
  TROUPE_ASSIGN_OR_RETURN(const ReadFile file, ReadFile::Open(path));
  if (file.identity() != experts.identity()) {
    return Error(Code::kUnavailable, "{}: changed while it was opened; try again", path);
  }
  TROUPE_ASSIGN_OR_RETURN(ContainerIndex index, ReadContainerIndex(file));
  TROUPE_RETURN_IF_ERROR(CheckBelongs(path, index, model, panel_layout, precision));
  return ContainerStore(std::move(experts), std::move(index), precision);
}

std::uint64_t ContainerStore::verified() const { return verified_->count(); }

std::size_t ContainerStore::PositionOf(std::uint32_t layer) const {
  TROUPE_CHECK(layer < positions_.size() && positions_[layer] >= 0);
  return static_cast<std::size_t>(positions_[layer]);
}

const ContainerLayer& ContainerStore::LayerOf(ExpertId id) const {
  TROUPE_CHECK(id.expert < index_.experts);
  return index_.precisions[precision_][PositionOf(id.layer)];
}

void ContainerStore::Locate(ExpertId id, std::vector<Extent>& extents) const {
  const ContainerLayer& layer = LayerOf(id);
  extents.push_back({.file = 0, .offset = layer.OffsetOf(id.expert), .bytes = layer.Stride()});
}

// Of an expert's bytes without the padding behind them.
class ContainerStore::Check final : public ArrivalCheck {
 public:
  Check(ContainerStore& store, ExpertId id)
      : store_(store), id_(id), left_(store.LayerOf(id).expert_bytes) {}

  void Add(std::size_t, std::span<const std::byte> bytes) override {
    const std::size_t count = std::min<std::size_t>(left_, bytes.size());
    sum_.Add(bytes.first(count));
    left_ -= count;
  }

  Status Finish() override {
    TROUPE_CHECK(left_ == 0);
    const ContainerLayer& layer = store_.LayerOf(id_);
    if (sum_.value() != layer.checksums[id_.expert]) {
      return DataLoss("{}, byte {}: {}: checksum {:016x}, {:016x} expected: it is damaged; {}",
                      store_.file_.path(), layer.OffsetOf(id_.expert), ToString(id_), sum_.value(),
                      layer.checksums[id_.expert], kPackAgain);
    }
    store_.verified_->Note(store_.NumberOf(id_));
    return OkStatus();
  }

 private:
  ContainerStore& store_;
  ExpertId id_;
  std::uint64_t left_;
  RunningChecksum sum_;
};

std::size_t ContainerStore::NumberOf(ExpertId id) const {
  TROUPE_CHECK(id.expert < index_.experts);
  return PositionOf(id.layer) * index_.experts + id.expert;
}

std::unique_ptr<ArrivalCheck> ContainerStore::BeginCheck(ExpertId id) {
  if (verified_->Has(NumberOf(id))) return nullptr;
  return std::make_unique<Check>(*this, id);
}

// The file has it as a slot holds it.
Status ContainerStore::Finish(ExpertId, std::span<const std::span<const std::byte>>,
                              std::span<std::byte>) {
  return OkStatus();
}

}  // namespace troupe
