// Loads experts from a GGUF in place: gate, up and down lie in three places, so a load is three
// reads and a step that puts them together.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "store/expert_store.h"

namespace troupe {

// The three parts of every expert of a layer: expert e's part p is at offset + e * stride.
struct GgufExpertPart {
  std::uint32_t file = 0;
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;
  std::uint64_t stride = 0;
};

class GgufStore final : public ExpertStore {
 public:
  // Checks the parts of an expert and puts them together in a slot; thread-safe.
  using Assemble = std::function<Status(
      ExpertId id, std::span<const std::span<const std::byte>> parts, std::span<std::byte> slot)>;
  // Experts that were compared with what was recorded of them; thread-safe, null: none.
  using Verified = std::function<std::uint64_t()>;

  // `layers`: three parts a layer, none for a layer without experts.
  static Result<GgufStore> Open(std::span<const std::string> paths,
                                std::vector<std::vector<GgufExpertPart>> layers, Assemble assemble,
                                Verified verified = {});

  std::string_view name() const override { return "GGUF in place"; }
  std::span<const DirectFile> files() const override { return files_; }
  void Locate(ExpertId id, std::vector<Extent>& extents) const override;
  bool direct() const override { return false; }
  Status Finish(ExpertId id, std::span<const std::span<const std::byte>> parts,
                std::span<std::byte> slot) override;
  std::uint64_t verified() const override { return verified_ ? verified_() : 0; }

 private:
  GgufStore(std::vector<DirectFile> files, std::vector<std::vector<GgufExpertPart>> layers,
            Assemble assemble, Verified verified);

  std::vector<DirectFile> files_;
  std::vector<std::vector<GgufExpertPart>> layers_;
  Assemble assemble_;
  Verified verified_;
};

}  // namespace troupe
