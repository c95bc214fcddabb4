// Loads experts from a packed container: one aligned read each, straight into the slot, checked
// against the container's checksum the first time, and each time once the file was written to.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "io/direct_file.h"
#include "store/container_format.h"
#include "store/expert_store.h"
#include "store/model_fingerprint.h"
#include "store/verified_once.h"

namespace troupe {

class ContainerStore final : public ExpertStore {
 public:
  // Fails if the container belongs to another model, names an older or newer version, has other
  // panels, lacks the precision (0: as the model has it, 1: the lower one), or is damaged.
  static Result<ContainerStore> Open(const std::string& path, const ModelFingerprint& model,
                                     std::uint32_t panel_layout, std::size_t precision = 0);

  ContainerStore(ContainerStore&&) noexcept;
  ContainerStore& operator=(ContainerStore&&) noexcept;
  ~ContainerStore() override;

  const ContainerIndex& index() const { return index_; }
  std::uint64_t verified() const override;

  std::string_view name() const override { return "container"; }
  std::span<const DirectFile> files() const override { return {&file_, 1}; }
  void Locate(ExpertId id, std::vector<Extent>& extents) const override;
  bool direct() const override { return true; }
  std::optional<std::uint64_t> ChecksumOf(ExpertId id) const override {
    return LayerOf(id).checksums[id.expert];
  }
  std::unique_ptr<ArrivalCheck> BeginCheck(ExpertId id) override;
  Status Finish(ExpertId id, std::span<const std::span<const std::byte>> parts,
                std::span<std::byte> slot) override;
  bool CompareEachTime() override {
    verified_->CompareEachTime();
    return true;
  }

 private:
  class Check;

  ContainerStore(DirectFile file, ContainerIndex index, std::size_t precision);

  // Its position among the layers of a precision. Asking for a layer without experts is a bug.
  std::size_t PositionOf(std::uint32_t layer) const;
  const ContainerLayer& LayerOf(ExpertId id) const;
  std::size_t NumberOf(ExpertId id) const;  // among those of a precision

  DirectFile file_;
  ContainerIndex index_;
  std::size_t precision_;
  std::vector<std::int32_t> positions_;  // by the model's layers; negative without experts
  std::unique_ptr<VerifiedOnce> verified_;
};

}  // namespace troupe
