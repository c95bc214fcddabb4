#include "io/disk_probe.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <optional>

#include "base/rng.h"
#include "io/aligned_buffer.h"

namespace troupe {
namespace {

constexpr std::array<Bytes, 5> kSizes = {4_KiB, 64_KiB, 256_KiB, 1_MiB, 4_MiB};
constexpr std::uint64_t kMostReads = 256;  // of a size: a disk that turns takes seconds for more
constexpr Bytes kMostUnderWay = 32_MiB;

class Prober {
 public:
  Prober(AsyncReader& reader, const DirectFile& file, const Clock& clock, std::uint64_t seed,
         std::span<std::byte> memory)
      : reader_(reader), file_(file), clock_(clock), rng_(seed), memory_(memory) {}

  // `reads` of this size in all, an eighth of them alone.
  Result<DiskSpeed> Measure(Bytes size, std::uint64_t reads) {
    DiskSpeed speed = {.request = size};
    const std::uint64_t lone = std::max<std::uint64_t>(reads / 8, 1);
    TROUPE_ASSIGN_OR_RETURN(speed.lone_seconds, MedianOfLone(size, lone));
    TROUPE_ASSIGN_OR_RETURN(speed.bytes_per_second,
                            QueueFull(size, std::max<std::uint64_t>(reads - lone, 1)));
    return speed;
  }

 private:
  // A read from anywhere into the part of the memory that belongs to its place in the queue.
  void Start(Bytes size, std::uint64_t place) {
    const std::uint64_t places = (file_.size() - size.count()) / kDirectAlignment.count() + 1;
    const ReadRequest request = {
        .fd = file_.fd(),
        .offset = rng_.Below(places) * kDirectAlignment.count(),
        .target = memory_.subspan(place * size.count(), size.count()),
        .tag = place,
    };
    offsets_[place] = request.offset;
    reader_.Submit({&request, 1});
  }

  // Waits for answers and checks them.
  Status Await(Bytes size) {
    answers_.clear();
    reader_.Collect(answers_, std::nullopt);
    for (const ReadAnswer& answer : answers_) {
      if (!answer.status.ok()) {
        return Status(answer.status)
            .WithContext(fmt::format("{}: byte {}", file_.path(), offsets_[answer.tag]));
      }
      if (answer.bytes != size.count()) {
        return DataLoss("{}: {} bytes wanted at byte {}, but only {} came", file_.path(),
                        size.count(), offsets_[answer.tag], answer.bytes);
      }
    }
    return OkStatus();
  }

  Result<double> MedianOfLone(Bytes size, std::uint64_t reads) {
    offsets_.assign(1, 0);
    std::vector<Nanos> took;
    for (; reads > 0; --reads) {
      const Nanos start = clock_.Now();
      Start(size, 0);
      TROUPE_RETURN_IF_ERROR(Await(size));
      took.push_back(clock_.Now() - start);
    }
    const auto middle = took.begin() + static_cast<std::ptrdiff_t>(took.size() / 2);
    std::nth_element(took.begin(), middle, took.end());
    return static_cast<double>(*middle) * 1e-9;
  }

  // Measures from the first answer on, while the queue can be kept full: the ramp-up at the start
  // and the drain at the end would make the disk look slower than it is.
  Result<double> QueueFull(Bytes size, std::uint64_t reads) {
    const std::uint64_t deep = std::min<std::uint64_t>(
        {reader_.depth(), Bytes(memory_.size()) / size, std::max<std::uint64_t>(reads / 2, 1)});
    offsets_.assign(deep, 0);
    const Nanos begin = clock_.Now();
    for (std::uint64_t place = 0; place < deep; ++place) Start(size, place);
    std::uint64_t to_start = reads - deep;

    std::optional<Nanos> counts_from;
    Nanos counted = 0;
    std::uint64_t counted_reads = 0;
    while (reader_.under_way() > 0) {
      const bool full = reader_.under_way() == deep;
      TROUPE_RETURN_IF_ERROR(Await(size));
      const Nanos now = clock_.Now();
      if (!counts_from.has_value()) {
        counts_from = now;
      } else if (full) {
        counted_reads += answers_.size();
        counted = now - *counts_from;
      }
      for (std::size_t i = 0; i < answers_.size() && to_start > 0; ++i, --to_start) {
        Start(size, answers_[i].tag);
      }
    }
    if (counted <= 0) {  // all came at once
      counted_reads = reads;
      counted = std::max<Nanos>(clock_.Now() - begin, 1);
    }
    return static_cast<double>(counted_reads * size.count()) * 1e9 / static_cast<double>(counted);
  }

  AsyncReader& reader_;
  const DirectFile& file_;
  const Clock& clock_;
  Rng rng_;
  std::span<std::byte> memory_;
  std::vector<std::uint64_t> offsets_;  // of what each place in the queue reads
  std::vector<ReadAnswer> answers_;
};

}  // namespace

Result<std::vector<DiskSpeed>> ProbeDisk(AsyncReader& reader, const DirectFile& file,
                                         const Clock& clock, const ProbeOptions& options) {
  TROUPE_CHECK(reader.under_way() == 0 && options.most >= kSizes.front() * 2);
  const Bytes under_way = std::clamp(options.memory, kSizes.front(), kMostUnderWay);
  std::vector<Bytes> sizes;
  for (const Bytes size : kSizes) {
    const bool fits = size.count() <= file.size() && size <= under_way;
    if (fits && size * 2 <= options.most) sizes.push_back(size);
  }
  if (sizes.empty()) {
    return InvalidArgument("{}: {} bytes are too few to measure a disk by, {} at least expected",
                           file.path(), file.size(), kSizes.front().count());
  }
  // As experts have it: in huge pages, and there before the first read.
  TROUPE_ASSIGN_OR_RETURN(
      AlignedBuffer memory,
      AlignedBuffer::Allocate(under_way, {.alignment = kHugePage, .huge_pages = true}));
  std::ranges::fill(memory.bytes(), std::byte{0});

  Prober prober(reader, file, clock, options.seed, memory.bytes());
  std::vector<DiskSpeed> speeds;
  Bytes left = options.most;
  Status failed;
  for (std::size_t i = 0; i < sizes.size() && failed.ok(); ++i) {
    const std::uint64_t share = left / sizes[i] / (sizes.size() - i);
    const std::uint64_t reads = std::clamp<std::uint64_t>(share, 2, kMostReads);
    if (left < sizes[i] * reads) break;
    left -= sizes[i] * reads;
    auto speed = prober.Measure(sizes[i], reads);
    if (speed.ok()) speeds.push_back(*speed);
    failed = speed.status();
  }
  // After an error others may still be under way, into memory that ends here.
  std::vector<ReadAnswer> discarded;
  while (reader.under_way() > 0) reader.Collect(discarded, std::nullopt);
  if (!failed.ok()) return failed;
  return speeds;
}

}  // namespace troupe
