// What serving a model takes of its memory budget: a sequence for each request that is answered at
// the same time, and what the server holds beside the model. `troupe serve` takes it, and
// `troupe plan --parallel` shows it.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

#include "base/bytes.h"
#include "server/http/http_server.h"
#include "split/cut_desk.h"
#include "troupe/engine_flags.h"

namespace troupe {

// A body has no more than this, unless that was said.
inline constexpr Bytes kUsualBody = 8_MiB;
// What all clients together may hold of what they have not read.
inline constexpr Bytes kUnreadByClients = 11_MiB;
// And of bodies, of which none is longer than `longest`: as it comes its place doubles, and counts
// half as much again while it moves. There is never less for all of them than is usual.
Bytes HeldOfBodies(Bytes longest);

struct ServingNeeds {
  std::uint32_t parallel = 4;  // requests that are answered at the same time
  std::size_t queue = 64;      // that may wait beside them
  std::size_t connections = HttpLimits().connections;
  Bytes longest_body = kUsualBody;
  bool tls = false;        // connections speak it
  bool has_peers = false;  // it is a node of a cluster
  bool has_cloud = false;  // it is the end of one
  // Of prompts that are cut by layers: as an end has them, and tokens of them that a cloud takes.
  CutOptions cuts = {};
  std::size_t cut_tokens_of_cloud = 0;
  Bytes fitted_bases;  // of codes of such prompts, as they are read and kept
};

// Answers that an end may have in its cloud at a time, whoever is before them there; those beyond
// are chosen here. A cloud lets as many of one end wait and more.
constexpr std::size_t MostInCloud(std::uint32_t parallel, std::size_t queue) {
  constexpr std::size_t kMost = 32;
  return std::max<std::size_t>(parallel, std::min(parallel + queue, kMost));
}

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
