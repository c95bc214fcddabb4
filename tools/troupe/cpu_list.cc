#include "troupe/cpu_list.h"

#include <fmt/format.h>
#include <sched.h>

#include <algorithm>
#include <cerrno>
#include <fstream>
#include <string>

#include "troupe/option_value.h"

namespace troupe {

Result<std::vector<unsigned>> ParseCpuList(std::string_view text) {
  std::vector<unsigned> cpus;
  for (bool more = true; more;) {
    const std::size_t comma = text.find(',');
    const std::string range(text.substr(0, comma));
    more = comma != text.npos;
    if (more) text.remove_prefix(comma + 1);
    const std::size_t dash = range.find('-');
    const Result<std::uint64_t> first = ParseUnsigned(range.substr(0, dash), CPU_SETSIZE - 1);
    const Result<std::uint64_t> last =
        dash == range.npos ? first : ParseUnsigned(range.substr(dash + 1), CPU_SETSIZE - 1);
    if (!first.ok() || !last.ok() || *last < *first) {
      return InvalidArgument("'{}' found, expected numbers of processors such as 0-3,6", range);
    }
    for (std::uint64_t cpu = *first; cpu <= *last; ++cpu) {
      cpus.push_back(static_cast<unsigned>(cpu));
    }
  }
  std::ranges::sort(cpus);
  cpus.erase(std::unique(cpus.begin(), cpus.end()), cpus.end());
  return cpus;
}

namespace {

// "0-3", as the kernel says it; empty: not known.
std::string OnlineCpus() {
  std::ifstream file("/sys/devices/system/cpu/online");
  std::string list;
  std::getline(file, list);
  return list;
}

}  // namespace

Status RunOnCpus(const std::vector<unsigned>& cpus) {
  const std::string online = OnlineCpus();
  if (const Result<std::vector<unsigned>> there = ParseCpuList(online); there.ok()) {
    const bool any = std::ranges::any_of(
        cpus, [&](unsigned cpu) { return std::ranges::binary_search(*there, cpu); });
    if (!any && !cpus.empty()) {
      return InvalidArgument("processor {} found, this machine has {}", cpus.front(), online);
    }
  }
  cpu_set_t set;
  CPU_ZERO(&set);
  for (const unsigned cpu : cpus) CPU_SET(cpu, &set);
  if (::sched_setaffinity(0, sizeof(set), &set) == 0) return OkStatus();
  return ErrnoStatus(errno, fmt::format("running on the processors {}", fmt::join(cpus, ",")));
}

}  // namespace troupe
