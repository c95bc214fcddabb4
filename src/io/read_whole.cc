#include "io/read_whole.h"

#include <zstd.h>

#include <cstddef>
#include <filesystem>
#include <fstream>
#include <memory>

namespace troupe {
namespace {

constexpr std::size_t kMostBytes = std::size_t{1} << 30;

Result<std::string> Decompress(const std::string& path, const std::string& compressed) {
  const std::unique_ptr<ZSTD_DStream, std::size_t (*)(ZSTD_DStream*)> stream(ZSTD_createDStream(),
                                                                             ZSTD_freeDStream);
  ZSTD_inBuffer in{compressed.data(), compressed.size(), 0};
  std::string text;
  std::size_t hint = 1;  // 0: a frame is complete
  while (in.pos < in.size) {
    const std::size_t before = text.size();
    text.resize(before + ZSTD_DStreamOutSize());
    ZSTD_outBuffer out{text.data() + before, text.size() - before, 0};
    hint = ZSTD_decompressStream(stream.get(), &out, &in);
    text.resize(before + out.pos);
    if (ZSTD_isError(hint) != 0) {
      return DataLoss("{}: no intact zstd stream ({})", path, ZSTD_getErrorName(hint));
    }
    if (text.size() > kMostBytes) return DataLoss("{}: more than {} bytes", path, kMostBytes);
  }
  if (hint != 0) return DataLoss("{}: the zstd stream ends too early", path);
  return text;
}

}  // namespace

Result<std::string> ReadWhole(const std::string& path) {
  std::error_code error;
  const auto size = std::filesystem::file_size(path, error);
  if (error) return ErrnoStatus(error.value(), path);
  if (size > kMostBytes)
    return DataLoss("{}: {} bytes, at most {} expected", path, size, kMostBytes);
  std::ifstream file(path, std::ios::binary);
  std::string text(size, '\0');
  if (!file.read(text.data(), static_cast<std::streamsize>(size)) && size > 0) {
    return Error(Code::kUnavailable, "{}: cannot be read", path);
  }
  if (path.ends_with(".zst")) return Decompress(path, text);
  return text;
}

}  // namespace troupe
