// When each expert that a trace asks for is asked for again: what the offline optimum needs to
// know (expert/cache/pass_optimum.h). Lies in a file without a name, as a trace may be longer than
// memory.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "base/fd.h"
#include "base/status.h"
#include "expert/cache/belady.h"
#include "sim/replay/trace_passes.h"

namespace troupe {

class FutureUses {
 public:
  // Reads the rest of the passes.
  static Result<FutureUses> Of(const TraceHeader& header, TracePasses& passes);

  // From the first ask on, for one policy; this must outlive it. A file that cannot be read any
  // more stops the program.
  Optimum::Future Future() const;
  std::uint64_t asks() const { return asks_; }

 private:
  explicit FutureUses(ExpertGrid grid) : grid_(grid) {}
  Status AppendAsks(const TraceHeader& header, TracePasses& passes);
  Status AddNextUses();

  ExpertGrid grid_;
  UniqueFd file_;  // Record after Record
  std::uint64_t asks_ = 0;
  std::vector<std::uint64_t> first_;
};

}  // namespace troupe
