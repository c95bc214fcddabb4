// Loads experts from a GGUF in place: gate, up and down lie in three places, so a load is three
// reads and a step that puts them together.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "store/expert_store.h"

namespace troupe {

// The three parts of every expert of a layer: expert e's part p is at offset + e * stride. A part
// may be of no bytes.
struct GgufExpertPart {
  std::uint32_t file = 0;
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;
  std::uint64_t stride = 0;
};

class GgufStore final : public ExpertStore {
 public:
  // Puts the parts of an expert together in a slot; thread-safe.
  using Assemble = std::function<Status(
      ExpertId id, std::span<const std::span<const std::byte>> parts, std::span<std::byte> slot)>;
  // How experts are compared with what was recorded of them, and how many were. Thread-safe.
  class Checks {
   public:
    virtual ~Checks() = default;
    virtual std::unique_ptr<ArrivalCheck> Begin(ExpertId id) = 0;  // as BeginCheck
    virtual std::uint64_t verified() const = 0;
  };

  // `layers`: three parts a layer, none for a layer without experts.
  static Result<GgufStore> Open(std::span<const std::string> paths,
                                std::vector<std::vector<GgufExpertPart>> layers, Assemble assemble,
                                std::unique_ptr<Checks> checks = nullptr);  // null: none are

  std::string_view name() const override { return "GGUF in place"; }
  std::span<const DirectFile> files() const override { return files_; }
  void Locate(ExpertId id, std::vector<Extent>& extents) const override;
  bool direct() const override { return false; }
  std::unique_ptr<ArrivalCheck> BeginCheck(ExpertId id) override {
    return checks_ == nullptr ? nullptr : checks_->Begin(id);
  }
  Status Finish(ExpertId id, std::span<const std::span<const std::byte>> parts,
                std::span<std::byte> slot) override;
  std::uint64_t verified() const override { return checks_ == nullptr ? 0 : checks_->verified(); }

 private:
  GgufStore(std::vector<DirectFile> files, std::vector<std::vector<GgufExpertPart>> layers,
            Assemble assemble, std::unique_ptr<Checks> checks);

  std::vector<DirectFile> files_;
  std::vector<std::vector<GgufExpertPart>> layers_;
  Assemble assemble_;
  std::unique_ptr<Checks> checks_;
};

}  // namespace troupe
