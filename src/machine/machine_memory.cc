#include "machine/machine_memory.h"

#include <algorithm>
#include <charconv>
#include <fstream>
#include <optional>
#include <sstream>

namespace troupe {
namespace {

std::optional<std::uint64_t> Number(const std::string& text) {
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc()) return std::nullopt;  // "max", or nothing
  return number;
}

std::optional<std::uint64_t> NumberIn(const std::string& path) {
  std::ifstream file(path);
  std::string word;
  if (!(file >> word)) return std::nullopt;
  return Number(word);
}

// The number that follows `key` in a file of such pairs: /proc/meminfo, memory.stat.
std::optional<std::uint64_t> NumberAfter(const std::string& path, std::string_view key) {
  std::ifstream file(path);
  std::string line;
  while (std::getline(file, line)) {
    std::istringstream words(line);
    std::string name, value;
    if (words >> name >> value && name == key) return Number(value);
  }
  return std::nullopt;
}

// What a group of that limit can still hand out: files' pages are given back when memory is short.
std::uint64_t Room(std::uint64_t limit, std::uint64_t used, std::uint64_t file_pages) {
  const std::uint64_t held = used - std::min(used, file_pages);
  return limit - std::min(limit, held);
}

class Groups {
 public:
  Groups(std::string root, MachineMemory& memory) : root_(std::move(root)), memory_(memory) {}

  void Consider() {
    std::ifstream file(root_ + "/proc/self/cgroup");
    std::string line;
    while (std::getline(file, line)) {  // "number:controllers:path"
      const std::size_t first = line.find(':');
      const std::size_t second = first == std::string::npos ? first : line.find(':', first + 1);
      if (second == std::string::npos) continue;
      const std::string controllers = line.substr(first + 1, second - first - 1);
      const std::string path = line.substr(second + 1);
      if (controllers.empty()) {
        ConsiderEach(root_ + "/sys/fs/cgroup", path, &Groups::ConsiderV2);
      } else if (("," + controllers + ",").find(",memory,") != std::string::npos) {
        ConsiderEach(root_ + "/sys/fs/cgroup/memory", path, &Groups::ConsiderV1);
      }
    }
  }

 private:
  // A group's limit holds for all below it. In a container the path may be the host's, and the
  // mount its own root: then only the mount itself is there to be read.
  void ConsiderEach(const std::string& mount, std::string path,
                    void (Groups::*consider)(const std::string&)) {
    for (;;) {
      (this->*consider)(mount + path);
      const std::size_t slash = path.rfind('/');
      if (path.empty() || slash == std::string::npos) return;
      path.resize(slash);
    }
  }

  void ConsiderV1(const std::string& folder) {
    const auto limit = NumberIn(folder + "/memory.limit_in_bytes");
    const auto used = NumberIn(folder + "/memory.usage_in_bytes");
    if (!limit || !used) return;
    Lower(Room(*limit, *used, FilePages(folder, "total_inactive_file", "total_active_file")),
          *limit, folder);
  }

  void ConsiderV2(const std::string& folder) {
    constexpr std::uint64_t kNone = ~std::uint64_t{0};
    const auto used = NumberIn(folder + "/memory.current");
    // Above the second a group is not killed, but slowed down until it is below.
    const std::uint64_t limit = std::min(NumberIn(folder + "/memory.max").value_or(kNone),
                                         NumberIn(folder + "/memory.high").value_or(kNone));
    if (limit == kNone || !used) return;
    Lower(Room(limit, *used, FilePages(folder, "inactive_file", "active_file")), limit, folder);
  }

  static std::uint64_t FilePages(const std::string& folder, std::string_view inactive,
                                 std::string_view active) {
    const std::string stat = folder + "/memory.stat";
    return NumberAfter(stat, inactive).value_or(0) + NumberAfter(stat, active).value_or(0);
  }

  void Lower(std::uint64_t room, std::uint64_t limit, const std::string& folder) {
    if (Bytes(room) >= memory_.available) return;
    memory_.available = Bytes(room);
    memory_.whole = Bytes(limit);
    memory_.limit = folder.substr(root_.size());
  }

  std::string root_;
  MachineMemory& memory_;
};

}  // namespace

Result<MachineMemory> ReadMachineMemory(const std::string& root) {
  const std::string path = root + "/proc/meminfo";
  const auto available = NumberAfter(path, "MemAvailable:");
  if (!available) {
    return Error(Code::kNotFound, "{}: no line MemAvailable; --memory says how much to use", path);
  }
  const std::uint64_t whole = NumberAfter(path, "MemTotal:").value_or(0);
  MachineMemory memory{
      .available = Bytes(*available * 1024), .limit = "the machine", .whole = Bytes(whole * 1024)};
  Groups(root, memory).Consider();
  return memory;
}

Bytes ReserveForOthers(const MachineMemory& memory) {
  const std::uint64_t free = memory.available.count();
  return std::max(std::min(256_MiB, Bytes(free / 4)), Bytes(free / 16));
}

Bytes DefaultBudget(const MachineMemory& memory) {
  return memory.available - ReserveForOthers(memory);
}

}  // namespace troupe
