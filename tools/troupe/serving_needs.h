// What serving a model takes of its memory budget: a sequence for each request that is answered at
// the same time, and what the server holds beside the model. `troupe serve` takes it, and
// `troupe plan --parallel` shows it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

#include "base/bytes.h"
#include "server/http/http_server.h"
#include "troupe/engine_flags.h"

namespace troupe {

// What all clients together may hold: of bodies, where the longest (8 MiB) counts half as much
// again while it moves, and of what they have not read.
inline constexpr Bytes kHeldOfBodies = 13_MiB, kUnreadByClients = 11_MiB;
inline constexpr Bytes kHeldByClients = kHeldOfBodies + kUnreadByClients;

struct ServingNeeds {
  std::uint32_t parallel = 4;  // requests that are answered at the same time
  std::size_t queue = 64;      // that may wait beside them
  std::size_t connections = HttpLimits().connections;
  bool tls = false;        // connections speak it
  bool has_peers = false;  // it is a node of a cluster
  bool has_cloud = false;  // it is the end of one
};

// --parallel; `help` says what it is for and which number is the default.
template <typename Number>
Option& AddParallelOption(Options& options, Number& parallel, std::string help) {
  return options.Add("--parallel", parallel, std::move(help))
      .Between(std::uint32_t{1}, EngineOptions::kMostSequences)
      .Type("N");
}

// Plans for them, of which the process holds `held` already.
void PlanForServing(const ServingNeeds& needs, Bytes held, EngineFlags& engine);

}  // namespace troupe
