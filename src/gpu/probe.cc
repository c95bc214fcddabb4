#include "gpu/probe.h"

#include <algorithm>
#include <limits>
#include <vector>

#include "base/rng.h"
#include "gpu/device_copies.h"
#include "gpu/expert.h"
#include "quant/panel.h"
#include "quant/random_rows.h"

namespace troupe {
namespace {

constexpr int kCopies = 5, kLaunches = 200;

double Since(const Clock& clock, Nanos start) {
  return static_cast<double>(std::max<Nanos>(1, clock.Now() - start)) * 1e-9;
}

// Bytes a second of the best copy that `copy` begins.
template <typename Copy>
Result<double> BestCopy(const Clock& clock, Bytes size, Copy&& copy) {
  double best = std::numeric_limits<double>::infinity();
  for (int i = 0; i < kCopies; ++i) {
    const Nanos start = clock.Now();
    TROUPE_ASSIGN_OR_RETURN(const GpuEventPtr copied, copy());
    TROUPE_RETURN_IF_ERROR(copied->Wait());
    best = std::min(best, Since(clock, start));
  }
  return AsDouble(size) / best;
}

constexpr int kExpertRounds = 3;
constexpr std::uint32_t kManyRows = 9;

// As many experts of a shape as `memory` holds, at least one, with the same bytes.
struct ProbedExperts {
  std::unique_ptr<GpuBuffer> weights;
  std::vector<GpuMlp> experts;
};

Result<ProbedExperts> MakeExperts(GpuDevice& device, const GpuExpertShape& shape, Bytes memory) {
  Rng rng(1);
  std::vector<std::byte> one;
  const auto add = [&](TensorType type, std::uint32_t rows, std::uint32_t cols) {
    const std::uint64_t at = one.size();
    one.resize(at + PanelBytes(type, rows, cols));
    PackPanels(type, rows, cols, RandomRows(type, rows, cols, rng), std::span(one).subspan(at));
    return GpuMatrix{.type = type, .rows = rows, .cols = cols, .at = at};
  };
  GpuMlp expert;
  expert.gate = add(shape.types[0], shape.ff, shape.width);
  if (shape.takes_up) {
    expert.up = add(shape.types[1], shape.ff, shape.width);
  } else {
    expert.form = GateForm::kSquaredRelu;
  }
  expert.down = add(shape.types[2], shape.width, shape.ff);
  const std::uint64_t count = std::max<std::uint64_t>(1, memory / Bytes(one.size()));
  ProbedExperts probed;
  TROUPE_ASSIGN_OR_RETURN(probed.weights, device.Allocate(count * Bytes(one.size())));
  for (std::uint64_t i = 0; i < count; ++i) {
    const Bytes begin = i * Bytes(one.size());
    TROUPE_ASSIGN_OR_RETURN(const GpuEventPtr copied,
                            device.CopyIn(GpuLane::kCompute, one, *probed.weights, begin, {}));
    TROUPE_RETURN_IF_ERROR(copied->Wait());
    GpuMlp& placed = probed.experts.emplace_back(expert);
    for (GpuMatrix* const matrix : {&placed.gate, &placed.up, &placed.down}) {
      matrix->memory = probed.weights.get();
      matrix->at += begin.count();
    }
  }
  return probed;
}

// Seconds an expert, of the best round of all of them.
Result<double> BestExpert(GpuExpertMlp& mlp, const std::vector<GpuMlp>& experts,
                          std::span<const std::uint32_t> rows, std::span<float> out,
                          const Clock& clock) {
  double best = std::numeric_limits<double>::infinity();
  for (int round = 0; round < kExpertRounds; ++round) {
    const Nanos start = clock.Now();
    GpuEventPtr last;
    for (const GpuMlp& expert : experts) {
      Result<GpuEventPtr> run = mlp.Run(expert, rows, out, {});
      if (!run.ok()) {
        if (last != nullptr) (void)last->Wait();  // it writes to `out`
        return run.status();
      }
      last = std::move(run).value();
    }
    TROUPE_RETURN_IF_ERROR(last->Wait());
    best = std::min(best, Since(clock, start));
  }
  return best / static_cast<double>(experts.size());
}

}  // namespace

Result<GpuSpeeds> ProbeGpu(GpuKernels& kernels, const Clock& clock, Bytes copy) {
  GpuDevice& device = kernels.device();
  TROUPE_ASSIGN_OR_RETURN(const auto host, device.AllocateHost(copy));
  TROUPE_ASSIGN_OR_RETURN(const auto buffer, device.Allocate(copy));
  std::fill(host->bytes().begin(), host->bytes().end(), std::byte{0});  // its pages, too
  GpuSpeeds speeds;
  const auto copy_in = [&] {
    return device.CopyIn(GpuLane::kDemand, host->bytes(), *buffer, Bytes(0), {});
  };
  const auto copy_out = [&] {
    return device.CopyOut(GpuLane::kDemand, *buffer, Bytes(0), host->bytes(), {});
  };
  TROUPE_ASSIGN_OR_RETURN(speeds.in_bytes_per_second, BestCopy(clock, copy, copy_in));
  TROUPE_ASSIGN_OR_RETURN(speeds.out_bytes_per_second, BestCopy(clock, copy, copy_out));

  TROUPE_ASSIGN_OR_RETURN(const auto ups, device.Allocate(Bytes(sizeof(float))));
  const auto launch = [&] { return kernels.Combine(GateForm::kSilu, *buffer, *ups, 1, {}); };
  TROUPE_ASSIGN_OR_RETURN(GpuEventPtr done, launch());  // which may be compiled only now
  TROUPE_RETURN_IF_ERROR(done->Wait());
  Nanos start = clock.Now();
  for (int i = 0; i < kLaunches; ++i) {
    TROUPE_ASSIGN_OR_RETURN(done, launch());
  }
  TROUPE_RETURN_IF_ERROR(done->Wait());
  speeds.launch_seconds = Since(clock, start) / kLaunches;
  start = clock.Now();
  for (int i = 0; i < kLaunches; ++i) {
    TROUPE_ASSIGN_OR_RETURN(done, launch());
    TROUPE_RETURN_IF_ERROR(done->Wait());
  }
  speeds.round_trip_seconds = Since(clock, start) / kLaunches;
  return speeds;
}

Result<GpuExpertSeconds> ProbeGpuExpert(GpuKernels& kernels, const GpuExpertShape& shape,
                                        const Clock& clock, Bytes memory) {
  TROUPE_ASSIGN_OR_RETURN(const ProbedExperts probed, MakeExperts(kernels.device(), shape, memory));
  TROUPE_ASSIGN_OR_RETURN(
      GpuExpertMlp mlp,
      GpuExpertMlp::Create(kernels, {.width = shape.width, .ff = shape.ff, .rows = kManyRows}));
  const std::vector<float> x(std::size_t{kManyRows} * shape.width, 0.5f);
  std::vector<float> out(x.size());
  std::vector<std::uint32_t> rows(kManyRows);
  for (std::uint32_t i = 0; i < kManyRows; ++i) rows[i] = i;
  TROUPE_ASSIGN_OR_RETURN(const GpuEventPtr set, mlp.SetRows(x));
  TROUPE_RETURN_IF_ERROR(set->Wait());
  const auto one_out = std::span(out).first(shape.width);
  GpuExpertSeconds seconds;
  TROUPE_ASSIGN_OR_RETURN(
      seconds.first_row, BestExpert(mlp, probed.experts, std::span(rows).first(1), one_out, clock));
  TROUPE_ASSIGN_OR_RETURN(const double many, BestExpert(mlp, probed.experts, rows, out, clock));
  seconds.further_row = std::max(0.0, many - seconds.first_row) / (kManyRows - 1);
  return seconds;
}

}  // namespace troupe
