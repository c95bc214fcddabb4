// Any bytes as a file of prefixes: read into a cache, or refused by one line with nothing kept. As
// no fuzzer finds a checksum, each input is also tried with the header and the checksums it needs.
#include <sys/mman.h>
#include <unistd.h>
#include <xxhash.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/check.h"
#include "runtime/prefix_file.h"

namespace troupe {
namespace {

constexpr ModelFingerprint kFuzzedModel{{1, 2}};
constexpr std::size_t kHeaderBytes = 64, kRecordBytes = 24, kRecordsAt = 12;

std::unique_ptr<KvPool> NewPool() {
  ModelConfig config;
  config.layers = 1;
  config.attention = {.heads = 1, .kv_heads = 1, .key_dim = 16, .value_dim = 16};
  return KvPool::Create(config, {0, 1}, {.context = 16, .sequences = 8}).value();
}

// A file without a name on a disk.
class MemoryFile {
 public:
  explicit MemoryFile(std::span<const std::byte> bytes) : fd_(::memfd_create("fuzz", MFD_CLOEXEC)) {
    TROUPE_CHECK(::write(fd_, bytes.data(), bytes.size()) == static_cast<ssize_t>(bytes.size()));
  }
  ~MemoryFile() { ::close(fd_); }
  std::string path() const { return "/proc/self/fd/" + std::to_string(fd_); }

 private:
  int fd_;
};

void ReadAll(std::span<const std::byte> bytes) {
  const MemoryFile file(bytes);
  const auto pool = NewPool();
  PrefixCache cache(*pool);
  const auto report = ReadPrefixes(file.path(), kFuzzedModel, cache, *pool);
  if (!report.ok()) {
    TROUPE_CHECK(report.status().message().find('\n') == std::string::npos);
    TROUPE_CHECK(cache.pages() == 0 && pool->free_positions() == 8 * 16);
    return;
  }
  TROUPE_CHECK(report->pages == cache.pages() && cache.All().size() == report->pages);
}

// With a header that is right but for the number of records, and right checksums.
std::vector<std::byte> SealedPrefixes(std::span<const std::byte> bytes) {
  std::vector<std::byte> sealed(bytes.begin(), bytes.end());
  if (sealed.size() < kHeaderBytes) return sealed;
  const auto pool = NewPool();
  struct {
    std::array<char, 8> magic{'T', 'R', 'P', 'R', 'E', 'F', 'I', 'X'};
    std::uint32_t version = 1, records = 0;
    std::array<std::uint64_t, 2> model = kFuzzedModel.words;
    std::uint32_t type = 0, positions = 16, first = 0, end = 1;
    std::uint64_t page_bytes = 0, checksum = 0;
  } header;
  static_assert(sizeof header == kHeaderBytes);
  std::memcpy(&header.records, sealed.data() + kRecordsAt, sizeof header.records);
  header.records %= 16;
  header.page_bytes = pool->page_bytes();
  header.checksum = XXH3_64bits(&header, kHeaderBytes - 8);
  std::memcpy(sealed.data(), &header, kHeaderBytes);
  for (std::size_t at = kHeaderBytes; at + kRecordBytes <= sealed.size();) {
    std::uint32_t tokens = 0;
    std::memcpy(&tokens, sealed.data() + at + 4, sizeof tokens);
    const std::size_t text = std::size_t{tokens % 17} * 4;
    if (sealed.size() - at - kRecordBytes < text + pool->page_bytes()) break;
    const std::byte* const page = sealed.data() + at + kRecordBytes + text;
    const std::uint64_t front = XXH3_64bits(sealed.data() + at, 16);
    const std::uint64_t of_text = XXH3_64bits_withSeed(page - text, text, front);
    const std::uint64_t sum = XXH3_64bits_withSeed(page, pool->page_bytes(), of_text);
    std::memcpy(sealed.data() + at + 16, &sum, sizeof sum);
    at += kRecordBytes + text + pool->page_bytes();
  }
  return sealed;
}

}  // namespace
}  // namespace troupe

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto bytes = std::as_bytes(std::span(data, size));
  troupe::ReadAll(bytes);
  troupe::ReadAll(troupe::SealedPrefixes(bytes));
  return 0;
}
