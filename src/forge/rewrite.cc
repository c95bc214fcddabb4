#include "forge/rewrite.h"

#include <filesystem>
#include <system_error>

namespace troupe {

Status CheckNotInPlace(const GgufModel& model, const std::string& path) {
  for (const ReadFile& file : model.files()) {
    std::error_code ignored;  // a path that does not exist is no file of the model's
    if (std::filesystem::equivalent(file.path(), path, ignored)) {
      return InvalidArgument("{}: it is the file to be read; another name expected", path);
    }
  }
  return OkStatus();
}

Metadata MetadataAsOneFile(const GgufModel& model) {
  Metadata metadata = model.metadata();
  for (const char* key : {"split.no", "split.count", "split.tensors.count"}) metadata.Erase(key);
  return metadata;
}

}  // namespace troupe
