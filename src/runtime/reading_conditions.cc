#include "runtime/reading_conditions.h"

#include <filesystem>
#include <span>

#include "expert/prefetch/worth_prefetch.h"
#include "io/file.h"
#include "io/text_file.h"
#include "runtime/buddy_profile.h"
#include "runtime/model_profile.h"
#include "runtime/score_tables_file.h"
#include "store/container_format.h"

namespace troupe {
namespace {

constexpr Bytes kMostRecordBytes = 512_MiB;  // of a file that calibration leaves

std::string Hex(std::uint64_t hash) { return fmt::format("{:016x}", hash); }

Result<std::string> HashOf(const std::string& named, const std::string& beside) {
  if (named == "none") return named;
  std::error_code ignored;
  if (named.empty() && !std::filesystem::exists(beside, ignored)) return std::string("none");
  return HashOfFile(named.empty() ? beside : named);
}

}  // namespace

Result<std::string> HashOfFile(const std::string& path) {
  TROUPE_ASSIGN_OR_RETURN(const std::string text, ReadWholeText(path, kMostRecordBytes));
  return Hex(ContainerChecksum(std::as_bytes(std::span(text))));
}

Result<std::string> HashOfProfile(const std::string& model, const std::string& named) {
  return HashOf(named, ProfilePathFor(model));
}

Result<std::string> HashOfBuddies(const std::string& model, const std::string& named) {
  return HashOf(named, BuddiesPathFor(model));
}

Result<std::string> HashOfScoreTables(const std::string& model, const std::string& named) {
  return HashOf(named, ScoresPathFor(model));
}

Result<std::string> HashOfContainer(const std::string& path) {
  if (path.empty()) return std::string("none");
  TROUPE_ASSIGN_OR_RETURN(const ReadFile file, ReadFile::Open(path));
  TROUPE_ASSIGN_OR_RETURN(const ContainerIndex index, ReadContainerIndex(file));
  return Hex(ContainerChecksum(EncodeContainerIndex(index)));
}

Result<std::string> DescribeReading(const std::string& model, const std::string& container,
                                    const OffloadOptions& offload) {
  TROUPE_ASSIGN_OR_RETURN(const std::string experts, HashOfContainer(container));
  TROUPE_ASSIGN_OR_RETURN(const std::string profile, HashOfProfile(model, offload.profile));
  std::string scores;
  if (WorthPrefetch::IsMeant(offload.predictor)) {
    TROUPE_ASSIGN_OR_RETURN(scores, HashOfScoreTables(model, offload.score_tables));
    scores = ", scores " + scores;
  }
  return fmt::format(
      "container {}, --cache-share {}, --shallow {}, profile {}{}, {}", experts,
      offload.sharing == CacheSharing::kGlobal ? "global" : "layer",
      offload.shallow_layers ? fmt::format("{}", *offload.shallow_layers) : "as profiled", profile,
      scores, offload.prefetch.governed ? "governed" : "ungoverned");
}

}  // namespace troupe
