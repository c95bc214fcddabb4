#include "troupe/output_path.h"

#include <fmt/core.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <system_error>

#include "io/atomic_file.h"

namespace troupe {

Status CheckOutput(const std::string& path) {
  return path == "-" ? OkStatus() : CheckOutputFile(path);
}

Status CheckOutputFile(const std::string& path) {
  namespace fs = std::filesystem;
  if (path == "-") {
    return InvalidArgument("-: this file is not written from beginning to end, a name expected");
  }
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (fs::is_directory(status)) return InvalidArgument("{}: is a folder, a file expected", path);
  if (fs::exists(status) && !fs::is_regular_file(status)) {
    if (::access(path.c_str(), W_OK) == 0) return OkStatus();
    return ErrnoStatus(errno, fmt::format("{}: it cannot be written", path));
  }
  fs::path folder = fs::path(path).parent_path();
  if (folder.empty()) folder = ".";
  if (!fs::is_directory(folder, error)) {
    return InvalidArgument("{}: there is no folder {}", path, folder.string());
  }
  // Begins a file and leaves nothing of it: no other question has a sure answer.
  return AtomicFileWriter::Create(path).status();
}

Status CheckPlotName(const std::string& path) {
  if (path.empty() || path.ends_with(".svg") || path.ends_with(".html")) return OkStatus();
  return InvalidArgument("--plot: '{}', expected a name that ends in .svg or .html", path);
}

}  // namespace troupe
