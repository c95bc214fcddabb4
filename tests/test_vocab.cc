#include "test_vocab.h"

#include <fmt/core.h>
#include <zstd.h>

#include <span>
#include <utility>

#include "gguf/header.h"
#include "io/byte_source.h"
#include "io/text_file.h"
#include "runtime/vocab_loader.h"

namespace troupe {
namespace {

Result<std::string> Decompress(std::string_view name, std::string_view compressed) {
  const auto size = ZSTD_getFrameContentSize(compressed.data(), compressed.size());
  if (size == ZSTD_CONTENTSIZE_ERROR || size == ZSTD_CONTENTSIZE_UNKNOWN) {
    return DataLoss("{}: no zstd frame that states its size", name);
  }
  std::string content(size, '\0');
  const std::size_t written =
      ZSTD_decompress(content.data(), content.size(), compressed.data(), compressed.size());
  if (ZSTD_isError(written) != 0) return DataLoss("{}: {}", name, ZSTD_getErrorName(written));
  return content;
}

}  // namespace

Result<std::string> ReadTestFile(std::string_view path) {
  return ReadWholeText(fmt::format("{}/tests/data/{}", TROUPE_SOURCE_DIR, path), 64_MiB);
}

namespace {

Result<Metadata> LoadTestMetadata(const std::string& path) {
  TROUPE_ASSIGN_OR_RETURN(const std::string compressed, ReadTestFile(path));
  TROUPE_ASSIGN_OR_RETURN(const std::string file, Decompress(path, compressed));
  TROUPE_ASSIGN_OR_RETURN(GgufHeader header,
                          ParseGguf(SpanSource(path, std::as_bytes(std::span(file)))));
  return std::move(header.metadata);
}

std::string PathOfTestVocab(std::string_view name) {
  return fmt::format("tokenizers/ggml-vocab-{}.gguf.zst", name);
}

}  // namespace

Result<Vocab> LoadTestVocab(std::string_view name) {
  TROUPE_ASSIGN_OR_RETURN(const Metadata metadata, LoadTestMetadata(PathOfTestVocab(name)));
  return LoadVocab(metadata, PathOfTestVocab(name));
}

Result<std::unique_ptr<Tokenizer>> LoadTestTokenizer(std::string_view name) {
  TROUPE_ASSIGN_OR_RETURN(Vocab vocab, LoadTestVocab(name));
  return MakeTokenizer(std::move(vocab));
}

Result<std::unique_ptr<Tokenizer>> LoadTestTokenizer(std::string_view name,
                                                     std::string_view pre_tokenizer) {
  TROUPE_ASSIGN_OR_RETURN(Metadata metadata, LoadTestMetadata(PathOfTestVocab(name)));
  metadata.Set("tokenizer.ggml.pre", std::string(pre_tokenizer));
  TROUPE_ASSIGN_OR_RETURN(Vocab vocab, LoadVocab(metadata, PathOfTestVocab(name)));
  return MakeTokenizer(std::move(vocab));
}

}  // namespace troupe
