// --trace and what belongs to it, for the commands that run a model.
#pragma once

#include <memory>
#include <string>

#include "runtime/trace_recorder.h"
#include "troupe/option_table.h"

namespace troupe {

class TraceFlags {
 public:
  void AddTo(Options& options);
  bool given() const { return !path_.empty(); }
  // Then nothing else may be printed there.
  bool to_standard_output() const { return path_ == "-"; }

  // What the engine has to plan for; none without --trace.
  std::optional<TraceScores> scores() const;
  // Null without --trace.
  Result<std::unique_ptr<TraceRecorder>> Begin(Engine& engine) const;
  // Says where the trace is; does nothing for null.
  Status Finish(TraceRecorder* recorder) const;

 private:
  std::string path_, scores_ = "chosen", domain_;
};

}  // namespace troupe
