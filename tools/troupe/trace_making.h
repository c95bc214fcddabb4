// What the verbs of `troupe trace` that write a trace have in common: its name, the scores it
// keeps, and what is said of it and of what it was made from.
#pragma once

#include <functional>
#include <string>

#include "base/status.h"
#include "trace/trace_edit.h"
#include "trace/trace_reader.h"
#include "trace/trace_writer.h"
#include "troupe/option_table.h"

namespace troupe {

// Says so if something of the trace could not be read.
void WarnOfDamage(const TraceReader& reader);

class TraceOutput {
 public:
  void AddTo(Options& options);

  Result<TraceWriter> Create(const TraceHeader& header) const;
  // Refuses a trace without tokens.
  Status Finish(TraceWriter& writer) const;

  // From a trace to a trace: the cut of it, with the header changed.
  Status WriteCut(const std::string& from, const TraceCut& cut,
                  const std::function<void(TraceHeader&)>& change = {}) const;

 private:
  std::string path_;
};

class TraceScoresFlag {
 public:
  void AddTo(Options& options);
  TraceCut In(TraceCut cut) const;

 private:
  std::string kept_;
};

}  // namespace troupe
