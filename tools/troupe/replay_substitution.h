// What of a replay may be answered otherwise than exactly, from flags: the chains to try, and the
// buddy lists that some of them need, learnt from other tokens than those that are played.
#pragma once

#include <string>
#include <vector>

#include "base/status.h"
#include "sim/replay/replay.h"
#include "troupe/option_table.h"

namespace troupe {

class ReplaySubstitutionFlags {
 public:
  void AddTo(Options& options);
  Status CheckUsage() const;

  bool asked() const { return !specs_.empty(); }
  // "exact" alone if none was asked for.
  std::vector<std::string> specs() const;

  // Learns what the chains need, and leaves the reader where it was: at the trace's beginning.
  Status Prepare(TraceReader& reader, const std::string& path, ReplayOptions& options) const;

 private:
  Status LearnFromPart(TraceReader& reader, ReplayOptions& options) const;
  Status LearnFrom(const TraceReader& reader, const std::string& path,
                   ReplayOptions& options) const;

  std::vector<std::string> specs_;
  std::string buddies_;
};

}  // namespace troupe
