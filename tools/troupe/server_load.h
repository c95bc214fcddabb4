// Sends the requests of a plan (load_plan.h) to a server over sockets, streams their answers and
// notes when what came. What the times say is load_figures.h's part. Threads: one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "troupe/asked_server.h"
#include "troupe/load_figures.h"
#include "troupe/load_plan.h"

namespace troupe {

// What must be known of the server before requests can be drawn.
struct TargetFacts {
  std::optional<std::size_t> context;
  std::vector<std::uint32_t> tokens;  // of its vocabulary, each once: prompts are drawn from them
};
// Fails, in one line that names the server, where it cannot be asked, too.
Result<TargetFacts> LookAt(const AskedServer& target);

struct SeenLoad {
  std::vector<SeenAnswer> answers;  // in the order of the plan
  double seconds = 0;
};
// Each of `clients` sends a request, waits for its end and sends the next; times count from when
// the client was free. 0: any number of requests are under way, each sent at its planned time, from
// which its times count, too: if this program is late, a user who came then waits for that as well.
SeenLoad RunLoad(const AskedServer& target, const TargetFacts& facts,
                 std::span<const PlannedRequest> plan, std::size_t clients);

}  // namespace troupe
