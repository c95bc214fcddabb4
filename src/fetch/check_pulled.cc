#include "fetch/check_pulled.h"

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <span>
#include <system_error>
#include <utility>

#include "fetch/fetch_settings.h"
#include "fetch/model_folder.h"
#include "fetch/sha256.h"
#include "io/file.h"

namespace troupe {
namespace {

constexpr std::uint64_t kHashPieceBytes = 1 << 20;

std::optional<PulledModel> ModelWithFile(const std::string& path) {
  const std::string folder = ModelFolder();
  if (folder.empty()) return std::nullopt;
  for (PulledModel& model : ListModels(folder)) {
    for (const PulledFile& file : model.record.files) {
      std::error_code error;
      if (std::filesystem::equivalent(model.FilePath(file), path, error) && !error) {
        return std::move(model);
      }
    }
  }
  return std::nullopt;
}

Result<std::string> HashFile(const std::string& path,
                             const std::function<bool(Bytes of_file)>& go_on) {
  TROUPE_ASSIGN_OR_RETURN(const ReadFile file, ReadFile::Open(path));
  std::vector<std::byte> buffer(kHashPieceBytes);
  Sha256 hash;
  for (std::uint64_t at = 0; at < file.size(); at += kHashPieceBytes) {
    const auto piece = std::span(buffer).first(std::min(kHashPieceBytes, file.size() - at));
    TROUPE_RETURN_IF_ERROR(file.ReadAt(at, piece));
    hash.Add(piece);
    if (!go_on(Bytes(at + piece.size()))) return Error(Code::kCancelled, "stopped");
  }
  return hash.Finish();
}

}  // namespace

Result<std::optional<PulledVerdict>> CheckPulled(
    const std::string& path, const std::function<bool(Bytes done, Bytes total)>& go_on) {
  const std::optional<PulledModel> model = ModelWithFile(path);
  if (!model) return std::optional<PulledVerdict>();
  PulledVerdict verdict{.name = model->record.name, .files = 0, .damaged = {}};
  Bytes done;
  for (const PulledFile& file : model->record.files) {
    if (file.sha256.empty()) continue;
    const auto report = [&](Bytes of_file) {
      return !go_on || go_on(done + of_file, model->size());
    };
    TROUPE_ASSIGN_OR_RETURN(const std::string sum, HashFile(model->FilePath(file), report));
    ++verdict.files;
    if (sum != file.sha256) verdict.damaged.push_back(model->FilePath(file));
    done += Bytes(file.bytes);
  }
  if (verdict.files == 0) return std::optional<PulledVerdict>();
  return std::optional(std::move(verdict));
}

}  // namespace troupe
