// Records what an engine's router chose, as a routing trace (docs/formats/trace.md). A trace that
// cannot be written to stops growing and says so at the end; it does not stop the run. The engine
// has to be opened for it (EngineOptions::trace): a crowded cache then hands experts out in order,
// and a replay of the trace hits what the run hit.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/status.h"
#include "model/route_observer.h"
#include "runtime/engine.h"
#include "trace/trace_writer.h"

namespace troupe {

class TraceRecorder final : public RouteObserver {
 public:
  // What the buffers of a recorder take, for the memory plan.
  static Bytes BytesFor(const ModelConfig& config, TraceScores scores, std::uint32_t chunk);

  // Records from now on until it ends. The engine must outlive it.
  static Result<std::unique_ptr<TraceRecorder>> Begin(Engine& engine, const std::string& path,
                                                      TraceScores scores, std::string domain);
  ~TraceRecorder() override;  // writes what it still holds

  Status Finish();
  std::uint64_t tokens() const { return writer_.tokens(); }

  void PassBegins(const PassFacts& pass) override;
  void Routed(std::uint32_t layer, std::span<const ExpertChoice> chosen,
              std::span<const float> scores) override;
  void PassEnded() override;

 private:
  TraceRecorder(Engine& engine, TraceWriter writer, std::string domain);

  Engine& engine_;
  TraceWriter writer_;
  std::string domain_;
  std::uint32_t sequences_ = 0;         // that have begun
  std::vector<std::uint32_t> numbers_;  // of those under way, by SequenceId
  TraceBlock pass_;                     // under way
  std::size_t layers_seen_ = 0;         // of it
  Stopwatch since_written_;
  Status failed_;
};

// The header of a trace of this engine.
Result<TraceHeader> TraceHeaderOf(const Engine& engine, TraceScores scores);

}  // namespace troupe
