// The engine of an end or of a cloud on a virtual clock: passes one after the other while there is
// work (sim/engine_play.h), what they tell of requests, and the counters by which ends and clouds
// decide, as the live engine's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>

#include "runtime/batch_loop.h"
#include "runtime/reading_pace.h"
#include "sim/engine_play.h"
#include "split/play/agenda.h"

namespace troupe {

// Called when a pass is over, on_end last.
struct PlayedRun {
  std::function<void(std::size_t read, std::size_t all)> on_read;
  std::function<void()> on_token;
  std::function<void()> on_end;
};

class PlayedEngine {
 public:
  // The agenda must outlive it, and it the calls that are on it.
  PlayedEngine(Agenda& agenda, const EngineSetup& setup);

  RequestId Start(std::uint32_t prompt, std::uint32_t tokens, PlayedRun run);
  // Nothing is told of it any more; its rows leave behind the pass under way.
  void Stop(RequestId request);

  BatchCounters counters() const;
  std::uint32_t sequences() const { return setup_.sequences; }
  std::uint32_t pass_rows() const { return setup_.limits.most_rows; }
  double busy_seconds() const { return busy_seconds_; }

 private:
  struct Asked {
    PlayedRun run;
    std::uint32_t prompt = 0;
    std::optional<Nanos> since = {};  // it has a sequence
  };

  void BeginPass();
  void EndPass(const EnginePlay::Pass& pass);
  void Tell(const EnginePlay::Progress& done);
  void Finish(RequestId request);
  void NoteTime(Nanos since);

  Agenda& agenda_;
  const EngineSetup setup_;
  EnginePlay engine_;
  std::map<RequestId, Asked> asked_;
  std::set<RequestId> unwanted_;
  ReadingPace pace_;
  bool in_pass_ = false;
  RequestId last_ = 0;
  BatchCounters sums_;
  double busy_seconds_ = 0;
};

}  // namespace troupe
