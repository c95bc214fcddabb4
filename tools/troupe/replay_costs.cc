#include "troupe/replay_costs.h"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>

#include "base/available_cpus.h"
#include "machine/cost_model_file.h"
#include "troupe/options.h"

namespace troupe {

void ReplayCostFlags::AddTo(Options& options) {
  options
      .AddParsed(
          "--link",
          [this](const std::string& text) -> Status {
            TROUPE_ASSIGN_OR_RETURN(link_, ParseLinkSpeed(text));
            return OkStatus();
          },
          "Speed of loading experts: bytes per second, and latency (2GiB/100us)")
      .Type("SPEED");
  options.Add("--expert-bytes", expert_bytes_, "Size of an expert (the trace's)").Type("SIZE");
  const auto microseconds = [&](const char* name, std::optional<double>& to, const char* help) {
    options.Add(name, to, help).Between(0.0, 1e9).Type("US");
  };
  microseconds("--expert-us", expert_us_, "Microseconds to compute an expert for one token (0)");
  microseconds("--expert-row-us", expert_row_us_, "The same for each further token (0)");
  microseconds("--layer-us", layer_us_,
               "Microseconds to compute a layer without its experts for one token (0)");
  microseconds("--layer-row-us", layer_row_us_, "The same for each further token (0)");
  microseconds("--second-lane-us", second_lane_us_,
               "Microseconds to compute a missing expert where it is stored, in parallel with the "
               "link (never)");
  options
      .Add("--begin-share", begin_share_,
           "Share of an expert's bytes with which its computing begins: 0.667 if gate and up were "
           "enough (1)")
      .Between(0.0, 1.0)
      .Type("SHARE");
  options
      .Add("--measured", measured_,
           "Use what `troupe probe` measured on this machine, for the disk that holds PATH")
      .Type("PATH");
  options.Add("--cost-threads", cost_threads_, "Number of threads used by `troupe probe` (all)")
      .Type("N");
}

Status ReplayCostFlags::CheckUsage() const {
  if (second_lane_us_ && !link_ && measured_.empty()) {
    return InvalidArgument("--second-lane-us needs --link or --measured: it shares loads");
  }
  if (begin_share_ < 1 && !link_ && measured_.empty()) {
    return InvalidArgument("--begin-share needs --link or --measured: it shortens waiting");
  }
  if (cost_threads_ > 0 && measured_.empty()) {
    return InvalidArgument("--cost-threads needs --measured");
  }
  return OkStatus();
}

Status ReplayCostFlags::Measured(const TraceHeader& header, CostedHeader& costed) const {
  struct stat info;
  if (::stat(measured_.c_str(), &info) != 0) return ErrnoStatus(errno, measured_);
  const CostModelFile file = CostModelFile::Load(ThisMachine());
  const std::uint32_t threads =
      cost_threads_ > 0 ? cost_threads_ : static_cast<std::uint32_t>(AvailableCpus());
  const CostModel model = file.Get(threads, info.st_dev);
  if (!model.disk.measured()) {
    return InvalidArgument("{}: its disk was not measured on this machine; `troupe probe` does",
                           measured_);
  }
  if (costed.expert_bytes == 0) {
    return InvalidArgument("the trace does not say what an expert weighs; --expert-bytes does");
  }
  ReplayCosts& costs = costed.costs;
  const LoadShape lone{.bytes = Bytes(costed.expert_bytes)};
  const double stream = model.disk.SecondsToStream(lone);
  costs.latency_seconds = std::max(0.0, model.disk.SecondsToLoad(lone) - stream);
  for (double& seconds : costs.load_seconds) {
    seconds *= stream / static_cast<double>(costed.expert_bytes);
  }
  const auto expert =
      model.SecondsToRun(header.expert_shape, Bytes(costed.expert_bytes), /*rows=*/1);
  if (!expert || !model.memory_bytes_per_second.measured()) {
    return InvalidArgument(
        "memory was not measured with {} threads; `troupe probe --threads {}` "
        "does",
        threads, threads);
  }
  costs.expert_first_seconds = *expert;
  costs.expert_further_seconds =
      model.SecondsToRun(header.expert_shape, Bytes(costed.expert_bytes), 2).value_or(0) - *expert;
  costs.layer_first_seconds =
      static_cast<double>(header.dense_bytes) / header.layers / model.memory_bytes_per_second.value;
  return OkStatus();
}

Result<CostedHeader> ReplayCostFlags::For(const TraceHeader& header,
                                          const std::string& path) const {
  CostedHeader costed;
  std::vector<std::uint64_t> bytes = header.expert_bytes;
  if (expert_bytes_.count() > 0) bytes.assign(header.moe_layers.size(), expert_bytes_.count());
  if (!bytes.empty()) costed.expert_bytes = *std::ranges::max_element(bytes);
  costed.costs.load_seconds.assign(bytes.begin(), bytes.end());  // at a byte a second
  costed.costs.expert_bytes = bytes;
  if (!measured_.empty()) {
    if (Status status = Measured(header, costed); !status.ok()) {
      return std::move(status).WithContext(path);
    }
  }
  ReplayCosts& costs = costed.costs;
  if (link_) {
    if (bytes.empty()) {
      return InvalidArgument("{}: does not say what an expert weighs; --expert-bytes does", path);
    }
    costs.latency_seconds = link_->latency_seconds;
    costs.load_seconds.assign(bytes.begin(), bytes.end());
    for (double& seconds : costs.load_seconds) {
      seconds = link_->bytes_per_second > 0 ? seconds / link_->bytes_per_second : 0;
    }
  }
  costed.timed = link_ || !measured_.empty();
  if (!costed.timed) costs.load_seconds.clear();
  const auto set = [](const std::optional<double>& us, double& to) {
    if (us) to = *us * 1e-6;
  };
  if (second_lane_us_) costs.second_lane_seconds = *second_lane_us_ * 1e-6;
  costs.begin_share = begin_share_;
  set(expert_us_, costs.expert_first_seconds);
  set(expert_row_us_, costs.expert_further_seconds);
  set(layer_us_, costs.layer_first_seconds);
  set(layer_row_us_, costs.layer_further_seconds);
  return costed;
}

}  // namespace troupe
