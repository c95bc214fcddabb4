// The models that `troupe pull` has got, as they lie in a folder: which there are, which one a name
// means, and their removal. hf.co/OWNER/REPO/ and ollama.com/OWNER/NAME/ hold the files and a
// record of each model (plan/pull_record.h).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "base/status.h"
#include "fetch/plan/model_name.h"
#include "fetch/plan/pull_record.h"

namespace troupe {

struct PulledModel {
  std::string record_path;
  PullRecord record;
  Bytes here;  // of what it is to have

  // Every file is there under its name, which it gets once it is checked.
  bool whole() const { return here == size(); }
  Bytes size() const;
  std::string FilePath(const PulledFile& file) const;
  std::string path() const { return FilePath(record.files.front()); }
  std::string type() const;  // "Q4_K_M"; of ollama the tag
  // When its first file came, in seconds since 1970: that of the record before it is there.
  std::int64_t got() const;
};

// What Troupe has put beside it.
struct FileBeside {
  std::string ending;  // "experts", "profile"
  Bytes bytes;

  bool operator==(const FileBeside&) const = default;
};
std::vector<FileBeside> FilesBeside(const PulledModel& model);

// Where the record of a model lies, and its files beside it.
std::string PullRecordPath(const std::string& folder, const ModelName& name);

// By their names. Records that cannot be read are left out.
std::vector<PulledModel> ListModels(const std::string& folder);

// The one that `text` means: its whole name, or the end of it from a slash on, with or without the
// type where there is one only. Nothing: none. kInvalidArgument: several.
Result<std::optional<PulledModel>> FindModel(const std::string& folder, std::string_view text);

// The file to open for what a user calls a model. A file of that name comes first; then the models
// that were got; else it stays as it is. An error: it is got in part, the name means several, or
// none that is here, and is no file's.
Result<std::string> ModelPathFor(const std::string& text);

struct Removal {
  Bytes freed;
  std::vector<std::string> kept;  // files that another model needs as well
};
// With what Troupe has put beside it: containers, profiles. kUnavailable: it is just being got.
Result<Removal> RemoveModel(const std::string& folder, const PulledModel& model);

}  // namespace troupe
