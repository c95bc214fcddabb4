#include "io/text_file.h"

#include <span>

#include "io/atomic_file.h"
#include "io/file.h"

namespace troupe {

Result<std::string> ReadWholeText(const std::string& path, Bytes most) {
  TROUPE_ASSIGN_OR_RETURN(const ReadFile file, ReadFile::Open(path));
  if (Bytes(file.size()) > most) {
    return DataLoss("{}: {}, at most {} expected", path, ToString(Bytes(file.size())),
                    ToString(most));
  }
  std::string text(file.size(), '\0');
  TROUPE_RETURN_IF_ERROR(file.ReadAt(0, std::as_writable_bytes(std::span(text))));
  return text;
}

Status WriteWholeText(const std::string& path, std::string_view text) {
  TROUPE_ASSIGN_OR_RETURN(AtomicFileWriter file, AtomicFileWriter::Create(path));
  TROUPE_RETURN_IF_ERROR(file.Append(std::as_bytes(std::span(text))));
  return file.Commit();
}

}  // namespace troupe
