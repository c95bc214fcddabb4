#include "sim/own_disk_json.h"

#include <fmt/ranges.h>

#include <algorithm>

#include "expert/cache/eviction_policy.h"

namespace troupe {
namespace {

OwnDisk ReadDisk(const JsonValue& json) {
  json.AllowOnly({"bytes_per_s", "latency_s", "free_slots", "policy", "reads_ahead"});
  constexpr std::uint64_t kMostSlots = 1u << 24;
  OwnDisk disk{.bytes_per_second = json.At("bytes_per_s").Number(),
               .latency_seconds = json.NumberOr("latency_s", 0)};
  if (!(disk.bytes_per_second > 0)) json.At("bytes_per_s").Fail("a positive number");
  if (disk.latency_seconds < 0) json.At("latency_s").Fail("zero or more");
  if (json.Has("free_slots")) {
    disk.free_slots = static_cast<std::uint32_t>(json.At("free_slots").Count(0, kMostSlots));
  }
  if (json.Has("policy")) {
    disk.policy = json.At("policy").String();
    const std::vector<std::string> names = RoutePolicyNames();
    if (std::ranges::find(names, disk.policy) == names.end()) {
      json.At("policy").Fail(fmt::format("one of {}", fmt::join(names, ", ")));
    }
  }
  if (json.Has("reads_ahead")) disk.reads_ahead = json.At("reads_ahead").Flag();
  return disk;
}

}  // namespace

std::vector<OwnDisk> ReadDisks(const JsonValue& json, std::uint32_t servers) {
  if (!json.IsArray() || json.size() == 0) json.Fail("an array of disks, dealt to the servers");
  std::vector<OwnDisk> disks;
  for (std::uint32_t n = 0; n < servers; ++n) disks.push_back(ReadDisk(json.At(n % json.size())));
  return disks;
}

}  // namespace troupe
