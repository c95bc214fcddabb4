// What piece size and how many reads at once bring a disk to its speed, for experts of the sizes
// that models have: random experts of the file named by TROUPE_BENCH_FILE (which should be larger
// than what any cache of the disk holds), read past the page cache. `lone` reads one expert at a
// time, as a token does that waits for it; otherwise the queue stays full. `huge` reads into huge
// pages. The CPU column is the whole process's: what reading takes away from computing. Disks that
// others use too want --benchmark_enable_random_interleaving=true and some repetitions.
#include <benchmark/benchmark.h>
#include <malloc.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstdlib>
#include <optional>
#include <random>
#include <utility>
#include <vector>

#include "base/rng.h"
#include "io/aligned_buffer.h"
#include "io/async_reader.h"
#include "io/direct_file.h"
#include "io/thread_reader.h"
#include "io/uring_reader.h"

namespace troupe {
namespace {

constexpr std::uint64_t kBytesEachTime = 192 << 20;
enum Reader { kThreads4, kThreads8, kThreads16, kUring, kUringRegistered };
constexpr const char* kReaderNames[] = {"threads4", "threads8", "threads16", "io_uring",
                                        "io_uring, registered memory"};

Result<std::unique_ptr<AsyncReader>> Make(Reader reader, std::size_t depth) {
  switch (reader) {
    case kThreads4:
      return MakeThreadReader(depth, 4);
    case kThreads8:
      return MakeThreadReader(depth, 8);
    case kThreads16:
      return MakeThreadReader(depth, 16);
    default:
      return MakeUringReader(depth);
  }
}

// Hands in `pieces`, (offset, bytes) each, keeping the queue as full as they allow.
Status ReadAll(AsyncReader& reader, int fd,
               std::span<const std::pair<std::uint64_t, std::size_t>> pieces,
               std::span<std::byte> memory, std::size_t slice) {
  std::vector<std::size_t> free;
  for (std::size_t i = 0; i < reader.depth(); ++i) free.push_back(i);
  std::vector<ReadRequest> requests;
  std::vector<ReadAnswer> answers;
  Status status;
  while (!pieces.empty() || reader.under_way() > 0) {
    requests.clear();
    for (; !pieces.empty() && !free.empty(); pieces = pieces.subspan(1), free.pop_back()) {
      requests.push_back({.fd = fd,
                          .offset = pieces[0].first,
                          .target = memory.subspan(free.back() * slice, pieces[0].second),
                          .tag = free.back()});
    }
    reader.Submit(requests);
    answers.clear();
    reader.Collect(answers, std::nullopt);
    for (const ReadAnswer& answer : answers) {
      if (!answer.status.ok()) status = answer.status;
      free.push_back(answer.tag);
    }
  }
  return status;
}

void BM_ReadExperts(benchmark::State& state) {
  const auto kind = static_cast<Reader>(state.range(0));
  const auto expert = static_cast<std::size_t>(state.range(1)) << 10;
  const std::size_t piece = std::min(static_cast<std::size_t>(state.range(2)) << 10, expert);
  const auto depth = static_cast<std::size_t>(state.range(3));
  const bool lone = state.range(4) != 0;
  state.SetLabel(kReaderNames[kind]);

  const char* path = std::getenv("TROUPE_BENCH_FILE");
  if (path == nullptr) return state.SkipWithError("set TROUPE_BENCH_FILE to a large file");
  const auto file = DirectFile::Open(path);
  if (!file.ok()) return state.SkipWithError(file.status().message().c_str());
  if (file->size() < expert) return state.SkipWithError("the file is smaller than an expert");
  auto reader = Make(kind, depth);
  if (!reader.ok()) return state.SkipWithError(reader.status().message().c_str());
  const bool huge = state.range(5) != 0;
  ::mallopt(M_MMAP_THRESHOLD, 1 << 16);  // new pages in each case, not those of the one before
  auto memory =
      AlignedBuffer::Allocate(Bytes(depth * piece), {.alignment = kHugePage, .huge_pages = huge});
  if (!memory.ok()) return state.SkipWithError(memory.status().message().c_str());
  if (!huge) ::madvise(memory->data(), memory->capacity().count(), MADV_NOHUGEPAGE);
  std::ranges::fill(memory->bytes(), std::byte{0});  // no page is new to the reads
  if (kind == kUringRegistered && !(*reader)->RegisterMemory(memory->bytes())) {
    return state.SkipWithError("the memory could not be registered");
  }

  // Other places in each case: what is under the file may remember those of the case before.
  Rng rng(std::random_device{}());
  const std::size_t experts = kBytesEachTime / expert;
  std::vector<std::pair<std::uint64_t, std::size_t>> pieces;
  for (auto _ : state) {
    pieces.clear();
    for (std::size_t e = 0; e < experts; ++e) {
      const std::uint64_t places = (file->size() - expert) / kDirectAlignment.count() + 1;
      const std::uint64_t begin = rng.Below(places) * kDirectAlignment.count();
      for (std::size_t at = 0; at < expert; at += piece) {
        pieces.emplace_back(begin + at, std::min(piece, expert - at));
      }
    }
    const std::span<const std::pair<std::uint64_t, std::size_t>> all(pieces);
    const std::size_t together = lone ? all.size() / experts : all.size();
    for (std::size_t i = 0; i < all.size(); i += together) {
      const Status status =
          ReadAll(**reader, file->fd(), all.subspan(i, together), memory->bytes(), piece);
      if (!status.ok()) return state.SkipWithError(status.message().c_str());
    }
  }
  state.SetBytesProcessed(state.iterations() * static_cast<std::int64_t>(experts * expert));
  state.counters["expert_us"] = benchmark::Counter(
      static_cast<double>(state.iterations()) * static_cast<double>(experts) * 1e-6,
      benchmark::Counter::kIsRate | benchmark::Counter::kInvert);
  reader->reset();  // before the memory it knows of
}

void Cases(benchmark::internal::Benchmark* bench) {
  for (const int expert : {1664, 4800}) {  // KiB: 1.7 and 4.9 MB
    for (const int piece : {256, 512, 1024, 2048, 8192}) {
      for (const int depth : {1, 4, 8, 32}) {
        for (const int reader : {kThreads8, kUring, kUringRegistered}) {
          for (const int lone : {0, 1}) {
            for (const int huge : {0, 1}) bench->Args({reader, expert, piece, depth, lone, huge});
          }
        }
      }
    }
  }
}
BENCHMARK(BM_ReadExperts)
    ->ArgNames({"reader", "expert_kib", "piece_kib", "depth", "lone", "huge"})
    ->Apply(Cases)
    ->UseRealTime()
    ->MeasureProcessCPUTime()
    ->Unit(benchmark::kMillisecond)
    ->MinTime(0.1);

}  // namespace
}  // namespace troupe
