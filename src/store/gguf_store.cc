#include "store/gguf_store.h"

#include <utility>

#include "base/check.h"

namespace troupe {

GgufStore::GgufStore(std::vector<DirectFile> files, std::vector<std::vector<GgufExpertPart>> layers,
                     Assemble assemble, std::unique_ptr<Checks> checks)
    : files_(std::move(files)),
      layers_(std::move(layers)),
      assemble_(std::move(assemble)),
      checks_(std::move(checks)) {}

Result<GgufStore> GgufStore::Open(std::span<const std::string> paths,
                                  std::vector<std::vector<GgufExpertPart>> layers,
                                  Assemble assemble, std::unique_ptr<Checks> checks) {
  std::vector<DirectFile> files;
  files.reserve(paths.size());
  for (const std::string& path : paths) {
    TROUPE_ASSIGN_OR_RETURN(DirectFile file, DirectFile::Open(path));
    files.push_back(std::move(file));
  }
  for (const std::vector<GgufExpertPart>& parts : layers) {
    TROUPE_CHECK(parts.empty() || parts.size() == 3);
    for (const GgufExpertPart& part : parts) TROUPE_CHECK(part.file < files.size());
  }
  return GgufStore(std::move(files), std::move(layers), std::move(assemble), std::move(checks));
}

void GgufStore::Locate(ExpertId id, std::vector<Extent>& extents) const {
  TROUPE_CHECK(id.layer < layers_.size() && !layers_[id.layer].empty());
  for (const GgufExpertPart& part : layers_[id.layer]) {
    extents.push_back(
        {.file = part.file, .offset = part.offset + id.expert * part.stride, .bytes = part.bytes});
  }
}

Status GgufStore::Finish(ExpertId id, std::span<const std::span<const std::byte>> parts,
                         std::span<std::byte> slot) {
  TROUPE_CHECK(id.layer < layers_.size() && parts.size() == layers_[id.layer].size());
  return assemble_(id, parts, slot);
}

}  // namespace troupe
