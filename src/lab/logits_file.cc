#include "lab/logits_file.h"

#include <array>
#include <cstring>
#include <filesystem>

namespace troupe {
namespace {

constexpr std::array<char, 8> kMagic = {'T', 'R', 'P', 'L', 'G', 'T', '0', '1'};

// Stands at the end, so that the rows can be read from the beginning by anything.
struct Footer {
  std::uint32_t rows = 0;
  std::uint32_t vocabulary = 0;
  std::array<char, 8> magic = kMagic;
};
static_assert(sizeof(Footer) == 16);

}  // namespace

Result<LogitsWriter> LogitsWriter::Create(const std::string& path, std::uint32_t vocabulary) {
  TROUPE_ASSIGN_OR_RETURN(AtomicFileWriter file, AtomicFileWriter::Create(path));
  return LogitsWriter(std::move(file), vocabulary);
}

Status LogitsWriter::Append(std::int32_t token, std::span<const float> logits) {
  TROUPE_CHECK(logits.size() == vocabulary_);
  tokens_.push_back(token);
  return file_.Append(std::as_bytes(logits));
}

Status LogitsWriter::Finish() {
  const Footer footer = {.rows = static_cast<std::uint32_t>(tokens_.size()),
                         .vocabulary = vocabulary_};
  TROUPE_RETURN_IF_ERROR(file_.Append(std::as_bytes(std::span(tokens_))));
  TROUPE_RETURN_IF_ERROR(file_.Append(std::as_bytes(std::span(&footer, 1))));
  return file_.Commit();
}

Result<LogitsReader> LogitsReader::Open(const std::string& path) {
  TROUPE_ASSIGN_OR_RETURN(ReadFile file, ReadFile::Open(path));
  const std::uint64_t size = file.size();
  if (size < sizeof(Footer)) {
    return DataLoss("{}: {} bytes are too few for saved logits", path, size);
  }
  Footer footer;
  TROUPE_RETURN_IF_ERROR(
      file.ReadAt(size - sizeof(Footer), std::as_writable_bytes(std::span(&footer, 1))));
  if (footer.magic != kMagic) {
    return InvalidArgument("{}: does not end in '{}', expected logits saved by 'troupe eval'", path,
                           std::string_view(kMagic.data(), kMagic.size()));
  }
  const std::uint64_t row_bytes = 4 * (std::uint64_t{footer.vocabulary} + 1);
  if (footer.vocabulary == 0 || footer.rows * row_bytes != size - sizeof(Footer)) {
    return DataLoss("{}: {} bytes, expected {} for {} rows over a vocabulary of {}", path, size,
                    footer.rows * row_bytes + sizeof(Footer), footer.rows, footer.vocabulary);
  }
  std::vector<std::int32_t> tokens(footer.rows);
  TROUPE_RETURN_IF_ERROR(file.ReadAt(std::uint64_t{footer.rows} * footer.vocabulary * 4,
                                     std::as_writable_bytes(std::span(tokens))));
  return LogitsReader(std::move(file), footer.vocabulary, std::move(tokens));
}

Result<LogitsReader> LogitsReader::OpenAndUnlink(const std::string& path) {
  Result<LogitsReader> reader = Open(path);
  std::error_code ignored;
  std::filesystem::remove(path, ignored);
  return reader;
}

Status LogitsReader::Read(std::size_t row, std::span<float> logits) const {
  TROUPE_CHECK(row < tokens_.size() && logits.size() == vocabulary_);
  return file_.ReadAt(std::uint64_t{row} * vocabulary_ * 4, std::as_writable_bytes(logits));
}

}  // namespace troupe
