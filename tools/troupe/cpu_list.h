// Which processors a process runs on: "0-3,6", as taskset and lscpu write them.
#pragma once

#include <string_view>
#include <vector>

#include "base/status.h"

namespace troupe {

// Rising, each once.
Result<std::vector<unsigned>> ParseCpuList(std::string_view text);
// This thread and all that it starts. Fails if none of them may be used.
Status RunOnCpus(const std::vector<unsigned>& cpus);

}  // namespace troupe
