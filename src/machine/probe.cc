#include "machine/probe.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <vector>

#include "io/aligned_buffer.h"
#include "io/disk_probe.h"
#include "kernels/quantize_activations.h"
#include "machine/bandwidth.h"
#include "machine/machine_memory.h"
#include "machine/process_memory.h"
#include "model/matmul_region.h"

namespace troupe {
namespace {

// Many times what processors cache, where the caller and the machine have that much to spare.
Bytes ProbeBytes(Bytes wanted, Bytes memory) {
  // What the probe before has taken goes back first: the allocator would keep a buffer of less than
  // 32 MiB, and this one would come on top.
  ReturnFreeMemory();
  const Result<MachineMemory> machine = ReadMachineMemory();
  const Bytes quarter = machine.ok() ? Bytes(machine->available.count() / 4) : wanted;
  return std::min({wanted, memory, std::max(quarter, 8_MiB)});
}

constexpr double kDiskSeconds = 0.8;  // that the whole measurement may take by the sounding
constexpr Bytes kSounding = 32_MiB, kWhole = 256_MiB;

constexpr std::array<std::size_t, 4> kRows = {1, 2, 8, 32};
constexpr std::size_t kTogether = 4;  // experts in a region: what a layer has ready, more or less
constexpr Bytes kExpertBytes = 96_MiB;

// Rows of numbers with room for their 8-bit form, if there is one.
class RowBuffer {
 public:
  RowBuffer(std::size_t rows, std::size_t cols)
      : cols_(cols),
        values_(rows * cols, 0.5f),
        storage_(cols % kGroupCols == 0 ? ActivationBytes(rows, cols) : 0) {}

  float* Row(std::size_t row) { return values_.data() + row * cols_; }
  std::size_t cols() const { return cols_; }
  Activations Of(std::size_t rows) {
    return MakeActivations(values_.data(), cols_, rows, cols_, storage_);
  }

 private:
  std::size_t cols_;
  std::vector<float> values_;
  std::vector<std::byte> storage_;
};

Activations Slice(Activations x, std::size_t first, std::size_t count) {
  x.values += first * x.stride;
  if (x.groups != nullptr) x.groups = x.Groups(first);
  x.tokens = count;
  return x;
}

// A few experts of one shape, more than the caches hold, computed as expert_block.cc does.
class ExpertProbe {
 public:
  ExpertProbe(const ExpertLayout& layout, AlignedBuffer weights, ThreadPool& pool)
      : layout_(layout),
        weights_(std::move(weights)),
        stride_(AlignUp(layout.SlotBytes(), kCacheLine.count())),
        experts_(weights_.size().count() / stride_),
        pool_(pool),
        input_(kRows.back(), layout.matrices[0].cols),
        hidden_(kTogether * kRows.back(), layout.matrices[2].cols),
        output_(kTogether * kRows.back(), layout.matrices[2].rows) {
    // As half, bfloat or float an ordinary number, so that no sum is slow for being odd.
    std::memset(weights_.data(), 0x3c, weights_.size().count());
    QuantizeAll(input_.Of(kRows.back()));
  }

  // The next few experts, `rows` rows each; how many they were.
  std::size_t RunSome(std::size_t rows) {
    const std::size_t count = std::min(kTogether, experts_);
    std::array<Mlp, kTogether> mlps;
    for (std::size_t i = 0; i < count; ++i) {
      mlps[i] = layout_.At(weights_.data() + next_ * stride_);
      next_ = (next_ + 1) % experts_;
      region_.AddGateUp(mlps[i].FirstHalf(), input_.Of(rows), {}, hidden_.Row(i * rows),
                        hidden_.cols());
    }
    region_.Run(pool_);
    const Activations hidden = hidden_.Of(count * rows);
    QuantizeAll(hidden);
    for (std::size_t i = 0; i < count; ++i) {
      region_.Add(mlps[i].down, Slice(hidden, i * rows, rows), {}, output_.Row(i * rows),
                  output_.cols());
    }
    region_.Run(pool_);
    return count;
  }

 private:
  void QuantizeAll(const Activations& x) {
    if (x.groups == nullptr) return;
    pool_.Run(x.tokens, [&](std::size_t row, std::size_t) { QuantizeActivations(x, row, 1); });
  }

  const ExpertLayout& layout_;
  AlignedBuffer weights_;
  std::size_t stride_;
  std::size_t experts_;
  ThreadPool& pool_;
  MatMulRegion region_;
  RowBuffer input_, hidden_, output_;
  std::size_t next_ = 0;
};

// What a quarter of the rounds beat: others who use the processors make some rounds longer, none
// shorter.
double LowerQuartile(std::vector<double> values) {
  const auto quarter = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 4);
  std::nth_element(values.begin(), quarter, values.end());
  return *quarter;
}

// The slope of a line through the first point that comes closest to the others.
double SecondsPerFurtherRow(const std::array<double, kRows.size()>& seconds) {
  double products = 0, squares = 0;
  for (std::size_t i = 1; i < kRows.size(); ++i) {
    const auto further = static_cast<double>(kRows[i] - kRows[0]);
    products += further * (seconds[i] - seconds[0]);
    squares += further * further;
  }
  // Noise on a tiny expert may turn it negative, which no machine is.
  return std::max(products / squares, 1e-3 * seconds[0]);
}

}  // namespace

Bytes ProbeMemoryWithin(Bytes budget) {
  constexpr Bytes kSpare = 4_MiB;
  const Bytes taken = ResidentMemory() + kSpare;
  return std::clamp(budget > taken ? budget - taken : Bytes(), 1_MiB, kProbeMemory);
}

Result<double> ProbeMemory(ThreadPool& pool, Bytes memory) {
  return MeasureReadBandwidth(pool, ProbeBytes(kProbeMemory, memory));
}

Result<DiskCost> ProbeDiskCost(const ReaderOptions& options, const DirectFile& file,
                               const Clock& clock, Bytes memory) {
  ReturnFreeMemory();
  TROUPE_ASSIGN_OR_RETURN(const std::unique_ptr<AsyncReader> reader, MakeReader(options));
  const Nanos start = clock.Now();
  TROUPE_ASSIGN_OR_RETURN(std::vector<DiskSpeed> speeds,
                          ProbeDisk(*reader, file, clock, {.most = kSounding, .memory = memory}));
  const double sounding = static_cast<double>(clock.Now() - start) * 1e-9;
  if (sounding * static_cast<double>(kWhole / kSounding) < kDiskSeconds) {
    TROUPE_ASSIGN_OR_RETURN(
        speeds, ProbeDisk(*reader, file, clock, {.most = kWhole, .memory = memory, .seed = 2}));
  }
  DiskCost cost{.direct = file.direct()};
  for (const DiskSpeed& speed : speeds) {
    ReadCost read{.request = speed.request};
    read.lone_seconds.Note(speed.lone_seconds);
    read.bytes_per_second.Note(speed.bytes_per_second);
    if (read.lone_seconds.measured() && read.bytes_per_second.measured()) {
      cost.reads.push_back(read);
    }
  }
  return cost;
}

Result<ExpertSeconds> ProbeExpert(const ExpertLayout& layout, ThreadPool& pool, const Clock& clock,
                                  double seconds, Bytes memory) {
  const std::uint64_t stride = AlignUp(layout.SlotBytes(), kCacheLine.count());
  const std::uint64_t experts =
      std::max<std::uint64_t>(1, ProbeBytes(kExpertBytes, memory) / Bytes(stride));
  TROUPE_ASSIGN_OR_RETURN(AlignedBuffer weights,
                          AlignedBuffer::Allocate(Bytes(experts * stride),
                                                  {.alignment = kHugePage, .huge_pages = true}));
  ExpertProbe probe(layout, std::move(weights), pool);
  std::array<double, kRows.size()> rounds;
  for (std::size_t i = 0; i < kRows.size(); ++i) {
    probe.RunSome(kRows[i]);  // warms up
    const auto most = static_cast<Nanos>(seconds * 1e9 / kRows.size());
    const Nanos begin = clock.Now();
    std::vector<double> took;
    Nanos now = begin;
    while (took.size() < 2 || now - begin < most) {
      const Nanos start = now;
      const auto count = static_cast<double>(probe.RunSome(kRows[i]));
      now = clock.Now();
      took.push_back(static_cast<double>(now - start) * 1e-9 / count);
    }
    rounds[i] = LowerQuartile(std::move(took));
  }
  return ExpertSeconds{.first_row = rounds[0], .further_row = SecondsPerFurtherRow(rounds)};
}

}  // namespace troupe
