#include "store/container_writer.h"

#include <utility>
#include <vector>

#include "base/check.h"

namespace troupe {

ContainerWriter::ContainerWriter(AtomicFileWriter file, ContainerIndex index, Bytes total)
    : file_(std::move(file)), index_(std::move(index)), total_(total) {}

Result<ContainerWriter> ContainerWriter::Create(std::string path, ContainerIndex index) {
  for (std::vector<ContainerLayer>& layers : index.precisions) {
    for (ContainerLayer& layer : layers) layer.checksums.clear();
  }
  const Bytes total(PlaceExperts(index));
  TROUPE_ASSIGN_OR_RETURN(AtomicFileWriter file, AtomicFileWriter::Create(std::move(path)));
  TROUPE_RETURN_IF_ERROR(file.Reserve(total));
  // The index comes last; until then its place is empty.
  TROUPE_RETURN_IF_ERROR(file.Append(std::vector<std::byte>(ContainerDataOffset(index))));
  return ContainerWriter(std::move(file), std::move(index), total);
}

Status ContainerWriter::Append(std::span<const std::byte> expert) {
  TROUPE_CHECK(precision_ < index_.precisions.size());
  ContainerLayer& layer = index_.precisions[precision_][layer_];
  TROUPE_CHECK(expert.size() == layer.expert_bytes);
  TROUPE_CHECK(file_.size() == layer.OffsetOf(static_cast<std::uint32_t>(layer.checksums.size())));
  layer.checksums.push_back(ContainerChecksum(expert));
  TROUPE_RETURN_IF_ERROR(file_.Append(expert));
  TROUPE_RETURN_IF_ERROR(file_.Append(std::vector<std::byte>(layer.Stride() - expert.size())));
  if (layer.checksums.size() < index_.experts) return OkStatus();
  if (++layer_ == index_.precisions[precision_].size()) {
    layer_ = 0;
    ++precision_;
  }
  return OkStatus();
}

Status ContainerWriter::Seal() {
  TROUPE_CHECK(precision_ == index_.precisions.size());  // else experts are missing
  TROUPE_CHECK(file_.size() == total_.count());
  TROUPE_RETURN_IF_ERROR(file_.WriteAt(0, EncodeContainerIndex(index_)));
  return file_.Seal().status();
}

Status ContainerWriter::Finish() {
  TROUPE_RETURN_IF_ERROR(Seal());
  return Publish();
}

}  // namespace troupe
