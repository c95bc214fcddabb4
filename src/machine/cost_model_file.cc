#include "machine/cost_model_file.h"

#include <fmt/format.h>

#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>

#include "base/log.h"
#include "io/text_file.h"
#include "kernels/target.h"

namespace troupe {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::string_view kFormat = "troupe cost model";
constexpr std::uint32_t kVersion = 1;
constexpr Bytes kMostBytes = 1_MiB;  // of a file that is read

// Thrown and caught within this file, beside what the JSON library throws.
struct WrongValue : std::runtime_error {
  using std::runtime_error::runtime_error;
};

void Expect(bool holds, std::string_view what) {
  if (!holds) throw WrongValue(std::string(what));
}

std::uint64_t CountIn(const Json& object, const char* key, std::uint64_t least,
                      std::uint64_t most) {
  const Json& value = object.at(key);
  Expect(value.is_number_unsigned(), fmt::format("'{}': {}, expected a count", key, value.dump()));
  const auto count = value.get<std::uint64_t>();
  Expect(count >= least && count <= most,
         fmt::format("'{}': {}, expected {} to {}", key, count, least, most));
  return count;
}

Json ToJson(const RunningMean& mean) { return {{"mean", mean.value}, {"samples", mean.samples}}; }

// Absent: not measured.
RunningMean MeanIn(const Json& object, const char* key) {
  const auto found = object.find(key);
  if (found == object.end()) return {};
  RunningMean mean;
  mean.value = found->at("mean").get<double>();
  Expect(std::isfinite(mean.value) && mean.value > 0,
         fmt::format("'{}': a mean of {}, expected a positive number", key, mean.value));
  mean.samples = static_cast<std::uint32_t>(CountIn(*found, "samples", 1, RunningMean::kMemory));
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

ExpertCost ExpertFrom(const Json& json) {
  return {.shape = json.at("shape").get<std::string>(),
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

ReadCost ReadFrom(const Json& json) {
  const ReadCost cost{.request = Bytes(CountIn(json, "bytes", 1, std::uint64_t{1} << 40)),
                      .lone_seconds = MeanIn(json, "lone_s"),
                      .bytes_per_second = MeanIn(json, "full_queue_bytes_per_s"),
                      .in_runs = MeanIn(json, "in_runs_bytes_per_s")};
  Expect(cost.lone_seconds.measured() && cost.bytes_per_second.measured(),
         fmt::format("requests of {}: no 'lone_s' or no 'full_queue_bytes_per_s'",
                     ToString(cost.request)));
  return cost;
}

DiskCost DiskFrom(const Json& json) {
  DiskCost disk{.direct = json.at("direct").get<bool>()};
  for (const Json& read : json.at("reads")) {
    disk.reads.push_back(ReadFrom(read));
    Expect(disk.reads.size() == 1 ||
               disk.reads[disk.reads.size() - 2].request < disk.reads.back().request,
           "'reads' are not in rising order of their 'bytes'");
  }
  return disk;
}

Json DeviceToJson(std::uint64_t device) {
  return fmt::format("{}:{}", major(device), minor(device));
}

std::uint64_t DeviceFrom(const Json& json) {
  const std::string text = json.at("device").get<std::string>();
  unsigned int upper = 0, lower = 0;
  char rest = 0;
  Expect(std::sscanf(text.c_str(), "%u:%u%c", &upper, &lower, &rest) == 2,
         fmt::format("'device': '{}', expected two numbers as in 8:1", text));
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
  Status status = text.ok() ? file.FromJson(*text) : text.status();
  if (!status.ok()) {
    if (text.ok()) status = std::move(status).WithContext(file.path_);
    LogWarning("{}; measuring anew", status.message());
  }
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
  Json compute = Json::array(), disks = Json::array();
  for (const auto& [threads, figures] : compute_) {
    Json entry = {{"threads", threads}};
    AddMean(entry, "memory_bytes_per_s", figures.memory_bytes_per_second);
    entry["experts"] = Json::array();
    for (const ExpertCost& cost : figures.experts) {
      entry["experts"].push_back(troupe::ToJson(cost));
    }
    compute.push_back(std::move(entry));
  }
  for (const auto& [device, disk] : disks_) {
    Json entry = {
        {"device", DeviceToJson(device)}, {"direct", disk.direct}, {"reads", Json::array()}};
    for (const ReadCost& read : disk.reads) entry["reads"].push_back(troupe::ToJson(read));
    disks.push_back(std::move(entry));
  }
  const Json file = {{"format", kFormat},
                     {"version", kVersion},
                     {"machine", troupe::ToJson(machine_)},
                     {"compute", std::move(compute)},
                     {"disks", std::move(disks)}};
  return file.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

Status CostModelFile::FromJson(std::string_view text) {
  std::map<std::uint32_t, Compute> compute;
  std::map<std::uint64_t, DiskCost> disks;
  try {
    const Json file = Json::parse(text);
    Expect(file.at("format") == kFormat, "'format' is not that of a cost model");
    Expect(file.at("version") == kVersion,
           fmt::format("'version' {}, expected {}", file.at("version").dump(), kVersion));
    Expect(file.at("machine") == troupe::ToJson(machine_), "measured on another machine");
    for (const Json& entry : file.at("compute")) {
      const auto threads = static_cast<std::uint32_t>(CountIn(entry, "threads", 1, 1u << 20));
      Compute& figures = compute[threads];
      figures.memory_bytes_per_second = MeanIn(entry, "memory_bytes_per_s");
      for (const Json& cost : entry.at("experts")) figures.experts.push_back(ExpertFrom(cost));
    }
    for (const Json& entry : file.at("disks")) disks[DeviceFrom(entry)] = DiskFrom(entry);
  } catch (const nlohmann::json::exception& error) {
    return DataLoss("{}", error.what());
  } catch (const WrongValue& error) {
    return DataLoss("{}", error.what());
  }
  compute_ = std::move(compute);
  disks_ = std::move(disks);
  return OkStatus();
}

}  // namespace troupe
