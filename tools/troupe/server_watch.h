// What servers of this machine are doing now, asked of their /metrics all at once; those that do
// not answer in time, or want a key, have no figures.
#pragma once

#include <chrono>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "troupe/serving_file.h"

namespace troupe {

struct ServerActivity {
  std::optional<Bytes> resident;            // as the system says
  std::optional<double> requests;           // waiting or being answered
  std::optional<double> tokens_per_second;  // generated, between two looks
  bool wants_key = false;                   // which nobody sends: the server may be a stranger's
};

// `between`: the two looks at how many tokens there are.
std::vector<ServerActivity> WatchServers(std::span<const RunningServer> servers,
                                         std::chrono::milliseconds between);

// Where to ask a server that listens to this address: who listens everywhere does so here.
std::string AddressToAsk(const std::string& address);

}  // namespace troupe
