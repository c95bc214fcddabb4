#include "fetch/model_folder.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <string>
#include <system_error>
#include <utility>

#include "fetch/fetch_settings.h"
#include "fetch/part_file.h"
#include "fetch/plan/hub_files.h"
#include "gguf/split.h"
#include "io/file.h"
#include "io/temporary_name.h"
#include "io/text_file.h"

namespace troupe {
namespace {

namespace fs = std::filesystem;

constexpr Bytes kLargestRecord = 16_MiB;
constexpr std::string_view kModelEnding = ".gguf", kJsonEnding = ".json";

std::string Lower(std::string_view text) {
  std::string lower(text);
  for (char& c : lower) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return lower;
}

Bytes HereOf(const PulledModel& model) {
  Bytes here;
  for (const PulledFile& file : model.record.files) {
    const std::string path = model.FilePath(file);
    const std::optional<FileIdentity> found = IdentityOf(path);
    if (found && found->size == file.bytes) {
      here += Bytes(file.bytes);
    } else {  // at least a byte is missing: it has not been checked
      here += Bytes(
          std::min(SizeOfPartFile(path), file.bytes - std::min<std::uint64_t>(1, file.bytes)));
    }
  }
  return here;
}

std::optional<PulledModel> ReadModel(const std::string& record_path) {
  const Result<std::string> text = ReadWholeText(record_path, kLargestRecord);
  if (!text.ok()) return std::nullopt;
  Result<PullRecord> record = ParsePullRecord(record_path, *text);
  if (!record.ok()) return std::nullopt;
  PulledModel model{.record_path = record_path, .record = *std::move(record), .here = {}};
  model.here = HereOf(model);
  return model;
}

// Of "hf.co/o/r:Q4" both "r:Q4" and, without the type, "o/r".
bool IsCalled(const std::string& name, const std::string& text, bool with_variant) {
  const std::string whole = with_variant ? name : name.substr(0, name.find(':'));
  return whole == text ||
         (whole.ends_with(text) && !text.empty() && whole[whole.size() - text.size() - 1] == '/');
}

bool IsWord(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-' || c == '_';
  });
}

// "experts", "profile.json": what "m." goes on with. "7b.1.experts" is not of 7b, but of 7b.1.
bool IsEndingOfOurs(std::string_view rest) {
  if (rest.ends_with(kJsonEnding)) rest.remove_suffix(kJsonEnding.size());
  return IsWord(rest) && rest != "gguf" && rest != "part" && rest != "pull";
}

// What Troupe has written for a model file: its name with another ending.
std::vector<fs::path> BesideIt(const std::string& path) {
  std::vector<fs::path> found;
  const std::optional<SplitName> split = ParseSplitName(path);
  const std::string prefix =
      split ? split->prefix
            : path.substr(0, path.size() - std::min(path.size(), kModelEnding.size()));
  const std::string stem = fs::path(prefix).filename().string() + ".";
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(FolderOf(path), error)) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with(stem) && IsEndingOfOurs(std::string_view(name).substr(stem.size())) &&
        entry.is_regular_file(error)) {
      found.push_back(entry.path());
    }
  }
  return found;
}

Status RemoveFile(const std::string& path, Bytes& freed) {
  const std::optional<FileIdentity> found = IdentityOf(path);
  if (!found) return OkStatus();
  if (::unlink(path.c_str()) != 0) return ErrnoStatus(errno, fmt::format("{}: removing it", path));
  freed += Bytes(found->size);
  return OkStatus();
}

void RemoveEmptyFolders(const std::string& root, fs::path folder) {
  std::error_code error;
  while (folder != fs::path(root) && folder.string().size() > root.size()) {
    if (!fs::is_empty(folder, error) || error || !fs::remove(folder, error)) return;
    folder = folder.parent_path();
  }
}

bool NeededByOthers(const std::vector<PulledModel>& models, const PulledModel& model,
                    const std::string& path) {
  return std::ranges::any_of(models, [&](const PulledModel& other) {
    if (other.record_path == model.record_path) return false;
    return std::ranges::any_of(
        other.record.files, [&](const PulledFile& file) { return other.FilePath(file) == path; });
  });
}

// How to get what is no file and no model that is here, if it is written as a name of one: with a
// host or a tag, or as repositories of GGUF files are called. Nothing: it may be a file's name.
std::optional<std::string> NameToGet(const std::string& text) {
  if (text.ends_with(".gguf") || !ParseModelName(text).ok()) return std::nullopt;
  if (text.find_first_of("/:") != std::string::npos) return text;
  if (text.ends_with("-GGUF")) return "hf.co/OWNER/" + text;
  return std::nullopt;
}

// Of "hf.co/o/r:Q4" "r": what a user types of it.
std::string ShortName(const std::string& name) {
  const std::string whole = name.substr(0, name.find(':'));
  return whole.substr(whole.rfind('/') + 1);
}

// Names of models that are here and begin as the text does, which is no whole part of a name; none
// for what can be a file's name alone.
std::vector<std::string> MeantNames(const std::string& folder, const std::string& text) {
  std::vector<std::string> names;
  if (text.ends_with(kModelEnding) || text.find('/') != std::string::npos) return names;
  for (const PulledModel& model : ListModels(folder)) {
    std::string name = ShortName(model.record.name);
    if (Lower(name).starts_with(Lower(text))) names.push_back(std::move(name));
  }
  std::ranges::sort(names);
  names.erase(std::unique(names.begin(), names.end()), names.end());
  return names;
}

}  // namespace

Bytes PulledModel::size() const {
  Bytes sum;
  for (const PulledFile& file : record.files) sum += Bytes(file.bytes);
  return sum;
}

std::string PulledModel::FilePath(const PulledFile& file) const {
  return fmt::format("{}/{}", FolderOf(record_path), file.path);
}

std::string PulledModel::type() const {
  if (record.name.starts_with("hf.co/")) return TypeInFileName(record.files.front().path);
  const std::size_t colon = record.name.find(':');
  return colon == std::string::npos ? std::string() : record.name.substr(colon + 1);
}

std::int64_t PulledModel::got() const {
  constexpr std::int64_t kNanos = 1'000'000'000;
  std::optional<FileIdentity> found = IdentityOf(path());
  if (!found) found = IdentityOf(record_path);
  return found ? found->modified_ns / kNanos : 0;
}

std::vector<FileBeside> FilesBeside(const PulledModel& model) {
  std::vector<FileBeside> found;
  for (const fs::path& path : BesideIt(model.path())) {
    const std::optional<FileIdentity> file = IdentityOf(path.string());
    if (!file) continue;
    std::string name = path.filename().string();
    if (name.ends_with(kJsonEnding)) name.resize(name.size() - kJsonEnding.size());
    found.push_back({.ending = name.substr(name.rfind('.') + 1), .bytes = Bytes(file->size)});
  }
  std::ranges::sort(found, {}, &FileBeside::ending);
  return found;
}

std::string PullRecordPath(const std::string& folder, const ModelName& name) {
  std::string variant = name.variant;
  std::ranges::replace(variant, '/', '+');
  return fmt::format("{}/{}/{}{}", folder, name.Repository(), variant, kPullRecordEnding);
}

std::vector<PulledModel> ListModels(const std::string& folder) {
  std::vector<PulledModel> models;
  std::error_code error;
  const auto skip = fs::directory_options::skip_permission_denied;
  for (auto it = fs::recursive_directory_iterator(folder, skip, error);
       !error && it != fs::recursive_directory_iterator(); it.increment(error)) {
    const std::string path = it->path().string();
    if (!path.ends_with(kPullRecordEnding)) continue;
    if (std::optional<PulledModel> model = ReadModel(path)) models.push_back(*std::move(model));
  }
  std::ranges::sort(models, {}, [](const PulledModel& model) { return model.record.name; });
  return models;
}

Result<std::optional<PulledModel>> FindModel(const std::string& folder, std::string_view text) {
  const Result<ModelName> name = ParseModelName(text);
  const std::string whole = name.ok() ? Lower(name->ToString()) : std::string();
  const std::string wanted =
      Lower(name.ok() && text.find("://") != std::string_view::npos ? name->ToString()
                                                                    : std::string(text));
  std::vector<PulledModel> found;
  for (PulledModel& model : ListModels(folder)) {
    const std::string called = Lower(model.record.name);
    if (called == whole) return std::optional(std::move(model));
    const bool with_variant = wanted.find(':') != std::string::npos;
    if (IsCalled(called, wanted, with_variant)) found.push_back(std::move(model));
  }
  if (found.size() == 1) return std::optional(std::move(found.front()));
  if (found.empty()) return std::optional<PulledModel>();
  std::vector<std::string> names;
  for (const PulledModel& model : found) names.push_back(model.record.name);
  return InvalidArgument("'{}' may be {}: say which", text, fmt::join(names, " or "));
}

Result<std::string> ModelPathFor(const std::string& text) {
  if (IdentityOf(text)) return text;
  const std::string folder = ModelFolder();
  if (folder.empty() || text.empty()) return text;
  TROUPE_ASSIGN_OR_RETURN(const std::optional<PulledModel> found, FindModel(folder, text));
  if (!found) {
    const std::optional<std::string> name = NameToGet(text);
    const std::vector<std::string> meant =
        name ? std::vector<std::string>() : MeantNames(folder, text);
    if (!meant.empty()) {
      return Error(Code::kNotFound, "{}: no such file or model; did you mean {}? (troupe list)",
                   text, fmt::join(meant, " or "));
    }
    if (!name) return text;
    return Error(Code::kNotFound,
                 "{}: no such file or model here (`troupe list`); `troupe pull {}` gets it", text,
                 *name);
  }
  if (found->whole()) return found->path();
  return Error(Code::kUnavailable, "{}: only {} of {} are here; `troupe pull {}` goes on",
               found->record.name, ToString(found->here), ToString(found->size()),
               found->record.name);
}

Result<Removal> RemoveModel(const std::string& folder, const PulledModel& model) {
  const std::vector<PulledModel> models = ListModels(folder);
  Removal removal;
  std::vector<std::string> own;
  for (const PulledFile& file : model.record.files) {
    const std::string path = model.FilePath(file);
    (NeededByOthers(models, model, path) ? removal.kept : own).push_back(path);
  }
  // First what may be under way, so that nothing is lost if it is.
  for (const std::string& path : own) {
    const std::uint64_t part = SizeOfPartFile(path);
    TROUPE_RETURN_IF_ERROR(RemovePartFile(path));
    removal.freed += Bytes(part);
  }
  // The record goes before the files: without it they are nobody's, with it they would be missing.
  if (::unlink(model.record_path.c_str()) != 0) {
    return ErrnoStatus(errno, fmt::format("{}: removing it", model.record_path));
  }
  for (const std::string& path : own) {
    for (const fs::path& beside : BesideIt(path)) {
      TROUPE_RETURN_IF_ERROR(RemoveFile(beside.string(), removal.freed));
    }
    TROUPE_RETURN_IF_ERROR(RemoveFile(path, removal.freed));
    RemoveEmptyFolders(folder, fs::path(FolderOf(path)));
  }
  RemoveEmptyFolders(folder, fs::path(FolderOf(model.record_path)));
  return removal;
}

}  // namespace troupe
