#include "store/verify_container.h"

#include <fmt/core.h>

#include <algorithm>
#include <span>
#include <utility>

#include "base/first_error.h"
#include "base/thread_pool.h"
#include "io/file.h"
#include "store/container_format.h"

namespace troupe {
namespace {

constexpr std::size_t kExpertsAtOnce = 32;  // between two calls of go_on

struct ExpertToCheck {
  std::size_t precision = 0;
  const ContainerLayer* layer = nullptr;
  std::uint32_t expert = 0;
  bool whole = false;
};

std::vector<ExpertToCheck> ExpertsOf(const ContainerIndex& index) {
  std::vector<ExpertToCheck> experts;
  for (std::size_t p = 0; p < index.precisions.size(); ++p) {
    for (const ContainerLayer& layer : index.precisions[p]) {
      for (std::uint32_t e = 0; e < index.experts; ++e) experts.push_back({p, &layer, e});
    }
  }
  return experts;
}

// The padding behind an expert counts as well: every byte of the file is somebody's.
Status CheckExpert(const ReadFile& file, ExpertToCheck& expert, std::vector<std::byte>& buffer) {
  const ContainerLayer& layer = *expert.layer;
  buffer.resize(layer.Stride());
  TROUPE_RETURN_IF_ERROR(file.ReadAt(layer.OffsetOf(expert.expert), buffer));
  const auto bytes = std::span<const std::byte>(buffer);
  const auto padding = bytes.subspan(layer.expert_bytes);
  expert.whole =
      ContainerChecksum(bytes.first(layer.expert_bytes)) == layer.checksums[expert.expert] &&
      std::ranges::all_of(padding, [](std::byte b) { return b == std::byte{0}; });
  return OkStatus();
}

}  // namespace

Result<ContainerVerdict> VerifyContainer(
    const std::string& path, const ModelFingerprint& model, std::size_t threads,
    const std::function<bool(Bytes done, Bytes total)>& go_on) {
  TROUPE_ASSIGN_OR_RETURN(const ReadFile file, ReadFile::Open(path));
  TROUPE_ASSIGN_OR_RETURN(const ContainerIndex index, ReadContainerIndex(file));
  std::vector<ExpertToCheck> experts = ExpertsOf(index);
  ContainerVerdict verdict = {
      .experts = experts.size(), .damaged = {}, .of_model = index.model == model};
  ThreadPool pool(threads);
  std::vector<std::vector<std::byte>> buffers(pool.threads());
  Bytes done;
  for (std::size_t first = 0; first < experts.size(); first += kExpertsAtOnce) {
    const std::size_t count = std::min(kExpertsAtOnce, experts.size() - first);
    FirstError error;
    pool.Run(count, [&](std::size_t task, std::size_t thread) {
      error.Note(task, CheckExpert(file, experts[first + task], buffers[thread]));
    });
    TROUPE_RETURN_IF_ERROR(error.Take());
    for (std::size_t i = first; i < first + count; ++i) done += Bytes(experts[i].layer->Stride());
    if (go_on && !go_on(done, Bytes(file.size()))) return Error(Code::kCancelled, "stopped");
  }
  for (const ExpertToCheck& expert : experts) {
    if (expert.whole) continue;
    verdict.damaged.push_back(fmt::format("layer {}, expert {}{}", expert.layer->layer,
                                          expert.expert,
                                          expert.precision > 0 ? " (low copy)" : ""));
  }
  return verdict;
}

}  // namespace troupe
