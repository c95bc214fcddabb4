#include "runtime/model_files.h"

#include <string_view>

#include "expert/prefetch/worth_prefetch.h"
#include "gguf/split.h"
#include "runtime/buddy_profile.h"
#include "runtime/container_path.h"
#include "runtime/group_gate_file.h"
#include "runtime/model_profile.h"
#include "runtime/quality_curve.h"
#include "runtime/score_tables_file.h"

namespace troupe {
namespace {

void AddParts(const std::string& path, std::vector<ModelFile>& files) {
  std::optional<SplitName> name = ParseSplitName(path);
  if (!name) return files.push_back({path, IdentityOf(path)});
  for (name->part = 1; name->part <= name->count; ++name->part) {
    const std::string part = FormatSplitName(*name);
    files.push_back({part, IdentityOf(part)});
  }
}

// `named` as an option has it: a path, "none", or empty for the file beside the model.
void AddOne(const std::string& named, const std::string& beside, std::vector<ModelFile>& files) {
  if (named == "none") return;
  const std::string& path = named.empty() ? beside : named;
  files.push_back({path, IdentityOf(path)});
}

}  // namespace

std::vector<ModelFile> LookAtModelFiles(const std::string& path, const OffloadOptions& options) {
  std::vector<ModelFile> files;
  AddParts(path, files);
  AddOne(options.container, ContainerPathFor(path), files);
  AddOne(options.profile, ProfilePathFor(path), files);
  if (WorthPrefetch::IsMeant(options.predictor)) {
    AddOne(options.score_tables, ScoresPathFor(path), files);
  }
  if (!options.gate.choice.exact()) AddOne(options.gate.file, GroupsPathFor(path), files);
  if (options.exact()) return files;
  AddOne(options.buddies, BuddiesPathFor(path), files);
  AddOne(options.quality_curve, QualityPathFor(path), files);
  return files;
}

}  // namespace troupe
