#include "troupe/json_record.h"

#include <fmt/core.h>

#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <span>
#include <system_error>

#include "io/atomic_file.h"

namespace troupe {
namespace {

Status WriteTo(std::FILE* out, const std::string& text, const std::string& path) {
  const bool written = std::fwrite(text.data(), 1, text.size(), out) == text.size();
  if (written && std::fflush(out) == 0) return OkStatus();
  return ErrnoStatus(errno, fmt::format("{}: writing {} bytes", path, text.size()));
}

// A pipe or a device must be written to: a new file in its place is not what was meant.
bool MustBeWrittenInPlace(const std::string& path) {
  std::error_code error;
  const std::filesystem::file_status status = std::filesystem::status(path, error);
  return !error && std::filesystem::exists(status) && !std::filesystem::is_regular_file(status);
}

Status WriteInPlace(const std::string& text, const std::string& path) {
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(path.c_str(), "we"),
                                                             std::fclose);
  if (file == nullptr) return ErrnoStatus(errno, fmt::format("{}: opening it", path));
  return WriteTo(file.get(), text, path);
}

}  // namespace

Status WriteJson(const Json& record, const std::string& path) {
  const std::string text = record.Dump(2) + "\n";
  if (path == "-") return WriteTo(stdout, text, "standard output");
  if (MustBeWrittenInPlace(path)) return WriteInPlace(text, path);
  TROUPE_ASSIGN_OR_RETURN(AtomicFileWriter file, AtomicFileWriter::Create(path));
  TROUPE_RETURN_IF_ERROR(file.Append(std::as_bytes(std::span(text))));
  return file.Commit();
}

}  // namespace troupe
