#include "machine/cost_model_file.h"

#include <fmt/format.h>

#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>

#include "base/json_value.h"
#include "base/log.h"
#include "io/text_file.h"
#include "kernels/target.h"

namespace troupe {
namespace {

constexpr std::string_view kFormat = "troupe cost model";
constexpr std::uint32_t kVersion = 1;
constexpr Bytes kMostBytes = 1_MiB;  // of a file that is read

Json ToJson(const RunningMean& mean) { return {{"mean", mean.value}, {"samples", mean.samples}}; }

// Absent: not measured.
RunningMean MeanIn(const JsonValue& json, const char* key) {
  if (!json.Has(key)) return {};
  const JsonValue found = json.At(key);
  const RunningMean mean{
      .value = found.At("mean").Number(),
      .samples = static_cast<std::uint32_t>(found.At("samples").Count(1, RunningMean::kMemory))};
  if (!(mean.value > 0)) found.At("mean").Fail("a positive number");
  return mean;
}

void AddMean(Json& object, const char* key, const RunningMean& mean) {
  if (mean.measured()) object[key] = ToJson(mean);
}

Json ToJson(const MachineId& machine) {
  return {{"cpu", machine.cpu}, {"cpus", machine.cpus}, {"kernels", machine.kernels}};
}

Json ToJson(const ExpertCost& cost) {
  Json json = {{"shape", cost.shape}};
  AddMean(json, "first_row_s", cost.first_row);
  AddMean(json, "further_row_s", cost.further_row);
  return json;
}

ExpertCost ExpertFrom(const JsonValue& json) {
  return {.shape = json.At("shape").String(),
          .first_row = MeanIn(json, "first_row_s"),
          .further_row = MeanIn(json, "further_row_s")};
}

Json ToJson(const ReadCost& cost) {
  Json json = {{"bytes", cost.request.count()}};
  AddMean(json, "lone_s", cost.lone_seconds);
  AddMean(json, "full_queue_bytes_per_s", cost.bytes_per_second);
  AddMean(json, "in_runs_bytes_per_s", cost.in_runs);
  return json;
}

ReadCost ReadFrom(const JsonValue& json) {
  for (const char* needed : {"lone_s", "full_queue_bytes_per_s"}) json.At(needed);
  return {.request = Bytes(json.At("bytes").Count(1, std::uint64_t{1} << 40)),
          .lone_seconds = MeanIn(json, "lone_s"),
          .bytes_per_second = MeanIn(json, "full_queue_bytes_per_s"),
          .in_runs = MeanIn(json, "in_runs_bytes_per_s")};
}

DiskCost DiskFrom(const JsonValue& json) {
  DiskCost disk{.direct = json.At("direct").Flag()};
  const JsonValue reads = json.At("reads");
  for (std::size_t i = 0; i < reads.size(); ++i) {
    const ReadCost read = ReadFrom(reads.At(i));
    if (i > 0 && read.request <= disk.reads.back().request) {
      reads.At(i).At("bytes").Fail("more than those before: reads stand in rising order");
    }
    disk.reads.push_back(read);
  }
  return disk;
}

Json DeviceToJson(std::uint64_t device) {
  return fmt::format("{}:{}", major(device), minor(device));
}

std::uint64_t DeviceFrom(const JsonValue& json) {
  const std::string text = json.String();
  unsigned int upper = 0, lower = 0;
  char rest = 0;
  if (std::sscanf(text.c_str(), "%u:%u%c", &upper, &lower, &rest) != 2) {
    json.Fail("two numbers as in \"8:1\"");
  }
  return makedev(upper, lower);
}

// The first of these lines that there is; on ARM the kernel knows numbers only.
std::string CpuName() {
  std::ifstream info("/proc/cpuinfo");
  std::set<std::string> parts;
  for (std::string line; std::getline(info, line);) {
    const std::size_t colon = line.find(": ");
    if (colon == std::string::npos) continue;
    if (line.starts_with("model name")) return line.substr(colon + 2);
    if (line.starts_with("CPU implementer") || line.starts_with("CPU part")) {
      parts.insert(line.substr(4, line.find_first_of(" \t", 4) - 4) + " " + line.substr(colon + 2));
    }
  }
  return parts.empty() ? "unknown" : fmt::format("{}", fmt::join(parts, ", "));
}

void WarnOnce(const Status& status) {
  static std::atomic<bool> warned{false};
  if (warned.exchange(true)) return;
  LogWarning("what was measured of this machine is not kept: {}", status.message());
}

Status WriteMakingFolder(const std::string& path, const std::string& text) {
  std::error_code error;
  std::filesystem::create_directories(std::filesystem::path(path).parent_path(), error);
  if (error) return ErrnoStatus(error.value(), fmt::format("{}: making its folder", path));
  return WriteWholeText(path, text);
}

}  // namespace

std::string MachineId::Digest() const {
  // FNV-1a: a name for a file, whose contents say whose it is.
  std::uint64_t hash = 0xcbf29ce484222325;
  for (const char c : fmt::format("{}\n{}\n{}", cpu, cpus, kernels)) {
    hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  }
  return fmt::format("{:016x}", hash);
}

MachineId ThisMachine() {
  const long cpus = ::sysconf(_SC_NPROCESSORS_ONLN);
  return {.cpu = CpuName(),
          .cpus = static_cast<std::uint32_t>(std::max(1L, cpus)),
          .kernels = std::string(Name(ActiveTarget()))};
}

std::string CacheFolder() {
  // The standard calls a relative path invalid.
  const char* cache = std::getenv("XDG_CACHE_HOME");
  if (cache != nullptr && cache[0] == '/') return std::string(cache) + "/troupe";
  const char* home = std::getenv("HOME");
  if (home != nullptr && home[0] == '/') return std::string(home) + "/.cache/troupe";
  return {};
}

CostModelFile CostModelFile::Load(MachineId machine, std::string folder) {
  CostModelFile file;
  file.machine_ = std::move(machine);
  if (folder.empty()) return file;
  file.path_ = fmt::format("{}/cost-{}.json", folder, file.machine_.Digest());
  std::error_code ignored;
  if (!std::filesystem::exists(file.path_, ignored)) return file;
  const Result<std::string> text = ReadWholeText(file.path_, kMostBytes);
  const Status status = text.ok() ? file.FromJson(*text) : text.status();
  if (!status.ok()) LogWarning("{}; measuring anew", status.message());
  return file;
}

CostModel CostModelFile::Get(std::uint32_t threads, std::uint64_t device) const {
  CostModel model;
  if (const auto found = compute_.find(threads); found != compute_.end()) {
    model.memory_bytes_per_second = found->second.memory_bytes_per_second;
    model.experts = found->second.experts;
  }
  if (const auto found = disks_.find(device); found != disks_.end()) model.disk = found->second;
  return model;
}

void CostModelFile::Put(std::uint32_t threads, std::uint64_t device, const CostModel& model) {
  compute_[threads] = {.memory_bytes_per_second = model.memory_bytes_per_second,
                       .experts = model.experts};
  if (model.disk.measured()) disks_[device] = model.disk;
}

void CostModelFile::Save() const {
  const Status status =
      path_.empty() ? Error(Code::kNotFound, "neither XDG_CACHE_HOME nor HOME names a folder")
                    : WriteMakingFolder(path_, ToJson());
  if (!status.ok()) WarnOnce(status);
}

std::string CostModelFile::ToJson() const {
  Json compute = Json::Array(), disks = Json::Array();
  for (const auto& [threads, figures] : compute_) {
    Json entry = {{"threads", threads}};
    AddMean(entry, "memory_bytes_per_s", figures.memory_bytes_per_second);
    entry["experts"] = Json::Array();
    for (const ExpertCost& cost : figures.experts) {
      entry["experts"].push_back(troupe::ToJson(cost));
    }
    compute.push_back(std::move(entry));
  }
  for (const auto& [device, disk] : disks_) {
    Json entry = {
        {"device", DeviceToJson(device)}, {"direct", disk.direct}, {"reads", Json::Array()}};
    for (const ReadCost& read : disk.reads) entry["reads"].push_back(troupe::ToJson(read));
    disks.push_back(std::move(entry));
  }
  const Json file = {{"format", kFormat},
                     {"version", kVersion},
                     {"machine", troupe::ToJson(machine_)},
                     {"compute", std::move(compute)},
                     {"disks", std::move(disks)}};
  return file.Dump(2) + "\n";
}

Status CostModelFile::FromJson(std::string_view text) {
  CostModelFile read;
  TROUPE_RETURN_IF_ERROR(RunJsonReader(path_, text, [&](const JsonValue& json) {
    if (json.At("format").raw() != kFormat) json.At("format").Fail("that of a cost model");
    if (json.At("version").raw() != kVersion) json.At("version").Fail(fmt::format("{}", kVersion));
    if (json.At("machine").raw() != troupe::ToJson(machine_)) {
      JsonValue::Refuse("measured on another machine");
    }
    const JsonValue compute = json.At("compute"), disks = json.At("disks");
    for (std::size_t i = 0; i < compute.size(); ++i) {
      const JsonValue entry = compute.At(i), experts = entry.At("experts");
      Compute& figures =
          read.compute_[static_cast<std::uint32_t>(entry.At("threads").Count(1, 1u << 20))];
      figures.memory_bytes_per_second = MeanIn(entry, "memory_bytes_per_s");
      for (std::size_t e = 0; e < experts.size(); ++e) {
        figures.experts.push_back(ExpertFrom(experts.At(e)));
      }
    }
    for (std::size_t i = 0; i < disks.size(); ++i) {
      const JsonValue entry = disks.At(i);
      read.disks_[DeviceFrom(entry.At("device"))] = DiskFrom(entry);
    }
  }));
  compute_ = std::move(read.compute_);
  disks_ = std::move(read.disks_);
  return OkStatus();
}

}  // namespace troupe
