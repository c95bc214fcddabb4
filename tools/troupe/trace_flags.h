// --trace and what belongs to it, for the commands that run a model.
#pragma once

#include <CLI/CLI.hpp>
#include <memory>
#include <string>

#include "runtime/trace_recorder.h"

namespace troupe {

class TraceFlags {
 public:
  void AddTo(CLI::App& app);
  bool given() const { return !path_.empty(); }

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
