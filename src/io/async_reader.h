// Reads that go on while others compute. One thread submits and collects; the work is the kernel's
// (uring_reader.h) or a few threads' (thread_reader.h), a test's script (fake_reader.h), or any of
// them behind a link of a given speed (throttled_reader.h). What is read, in which order and what
// follows from an error is decided above (store/expert_loader.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/status.h"

namespace troupe {

struct ReadRequest {
  int fd = -1;  // of a regular file: others may never answer
  std::uint64_t offset = 0;
  // Stays valid until the answer is collected. In huge pages it is one segment for the disk and not
  // hundreds: on a virtual disk that trebles the speed (async_reader_bench, `huge`).
  std::span<std::byte> target;
  std::uint64_t tag = 0;  // comes back with the answer
};

struct ReadAnswer {
  std::uint64_t tag = 0;
  Status status;          // says what the system said; place and file are the caller's to add
  std::size_t bytes = 0;  // fewer than requested: the file ended, or the system gave no more
};

// The answer for the result of a read call.
ReadAnswer AnswerTo(const ReadRequest& request, std::int64_t bytes_or_minus_errno);

class AsyncReader {
 public:
  // Waits for reads still under way: their targets may be freed afterwards.
  virtual ~AsyncReader() = default;

  virtual std::string_view name() const = 0;
  // The most requests that may be under way at once, and the number that are.
  virtual std::size_t depth() const = 0;
  virtual std::size_t under_way() const = 0;

  // At most depth() - under_way() requests. Never waits for the medium. A request that cannot even
  // be started is answered with its error.
  virtual void Submit(std::span<const ReadRequest> requests) = 0;

  // Appends the answers that are there; if there is none, waits up to `wait` for one (nullopt: as
  // long as it takes). Returns at once if nothing is under way.
  virtual void Collect(std::vector<ReadAnswer>& answers, std::optional<Nanos> wait) = 0;

  // Registers memory that many reads will target, so that the kernel need not look it up for each.
  // May do nothing; returns whether it did. The memory must stay mapped as long as the reader
  // lives: the kernel reads into these pages whatever lies at their addresses later.
  virtual bool RegisterMemory(std::span<std::byte> memory) {
    (void)memory;
    return false;
  }
  // Of registered memory, before a part of it is given back to the system: what was registered
  // together with that part is read into as any other memory from then on. REQUIRES: no read into
  // it is under way. False: the kernel holds it as long as the reader lives.
  virtual bool ForgetMemory(std::span<std::byte> memory) {
    (void)memory;
    return true;
  }
};

enum class ReaderKind { kAuto, kUring, kThreads };

std::optional<ReaderKind> ReaderKindByName(std::string_view name);  // auto, uring, threads
std::string_view Name(ReaderKind kind);

inline constexpr std::size_t kMaxReaderDepth = 4096;

struct ReaderOptions {
  ReaderKind kind = ReaderKind::kAuto;
  // 8 reads of 1 MiB bring a virtual disk to its speed, 4 KiB to 256 KiB want more
  // (async_reader_bench). The rest keeps the disk busy until the caller submits more.
  std::size_t depth = 64;
};

// kAuto: io_uring, or threads where the kernel has none or refuses it; `why` then says so.
Result<std::unique_ptr<AsyncReader>> MakeReader(const ReaderOptions& options,
                                                std::string* why = nullptr);

}  // namespace troupe
