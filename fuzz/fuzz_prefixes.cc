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
constexpr std::size_t kHeaderBytes = 80, kRecordBytes = 24, kRecordsAt = 12;
constexpr std::size_t kStatesAt = 64, kStateRecordBytes = 16;

std::unique_ptr<KvPool> NewPool() {
  ModelConfig config;
  config.layers = 2;
  config.attention = {.heads = 1, .kv_heads = 1, .key_dim = 16, .value_dim = 16};
  config.width = 16;
  config.short_conv_taps = 2;
  config.recurrent = {true, false};
  return KvPool::Create(config, {0, 2}, {.context = 16, .sequences = 8}).value();
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
  KeptStates states;
  const auto report = ReadPrefixes(file.path(), kFuzzedModel, {cache, states, *pool});
  if (!report.ok()) {
    TROUPE_CHECK(report.status().message().find('\n') == std::string::npos);
    TROUPE_CHECK(cache.pages() == 0 && pool->free_positions() == 8 * 16);
    TROUPE_CHECK(states.size() == 0 && pool->states()->free_places() == 2 * 8);
    return;
  }
  for (const KeptStates::Entry& state : states.All()) {
    TROUPE_CHECK(cache.KnownOf(state.tokens) == state.tokens.size());
  }
  TROUPE_CHECK(report->pages == cache.pages() && cache.All().size() == report->pages);
}

// With a header that is right but for the numbers of records, and right checksums.
std::vector<std::byte> SealedPrefixes(std::span<const std::byte> bytes) {
  std::vector<std::byte> sealed(bytes.begin(), bytes.end());
  if (sealed.size() < kHeaderBytes) return sealed;
  const auto pool = NewPool();
  struct {
    std::array<char, 8> magic{'T', 'R', 'P', 'R', 'E', 'F', 'I', 'X'};
    std::uint32_t version = 2, records = 0;
    std::array<std::uint64_t, 2> model = kFuzzedModel.words;
    std::uint32_t type = 0, positions = 16, first = 0, end = 2;
    std::uint64_t page_bytes = 0, state_bytes = 0;
    std::uint32_t states = 0, zero = 0;
    std::uint64_t checksum = 0;
  } header;
  static_assert(sizeof header == kHeaderBytes);
  std::memcpy(&header.records, sealed.data() + kRecordsAt, sizeof header.records);
  header.records %= 16;
  std::memcpy(&header.states, sealed.data() + kStatesAt, sizeof header.states);
  header.states %= 8;
  header.page_bytes = pool->page_bytes();
  header.state_bytes = pool->states()->state_bytes();
  header.checksum = XXH3_64bits(&header, kHeaderBytes - 8);
  std::memcpy(sealed.data(), &header, kHeaderBytes);
  std::size_t at = kHeaderBytes;
  for (std::uint32_t i = 0; i < header.records && at + kRecordBytes <= sealed.size(); ++i) {
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
  while (at + kStateRecordBytes <= sealed.size()) {
    std::uint64_t tokens = 0;
    std::memcpy(&tokens, sealed.data() + at, sizeof tokens);
    const std::size_t text = std::size_t{tokens % 64} * 4;
    if (sealed.size() - at - kStateRecordBytes < text + header.state_bytes) break;
    const std::byte* const state = sealed.data() + at + kStateRecordBytes + text;
    const std::uint64_t front = XXH3_64bits(sealed.data() + at, 8);
    const std::uint64_t of_text = XXH3_64bits_withSeed(state - text, text, front);
    const std::uint64_t sum = XXH3_64bits_withSeed(state, header.state_bytes, of_text);
    std::memcpy(sealed.data() + at + 8, &sum, sizeof sum);
    at += kStateRecordBytes + text + header.state_bytes;
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
