// A cloud on a virtual clock: answers of ends take turns and wait for its engine as in
// server/cloud_answer.h, by the same objects, and it tells the same of them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>

#include "server/cloud_line_up.h"
#include "server/end_turns.h"
#include "split/play/agenda.h"
#include "split/play/played_engine.h"
#include "split/wire/cloud_load.h"

namespace troupe {

// The lines of an answer (docs/formats/end-cloud.md), as the cloud says them.
struct PlayedLines {
  std::function<void(double seconds)> on_wait;
  std::function<void()> on_alive;  // it is being read
  std::function<void()> on_token;
  std::function<void()> on_refused;  // as many of this end wait as may
  // `before_first`: seconds in the cloud until its first token.
  std::function<void(double before_first, const CloudLoad& load)> on_end;
};

class PlayedCloud {
 public:
  // The agenda must outlive it, and it the calls that are on it.
  PlayedCloud(Agenda& agenda, const EngineSetup& setup) : agenda_(agenda), engine_(agenda, setup) {}
  ~PlayedCloud();

  using AnswerId = std::uint64_t;
  AnswerId Start(std::uint64_t end, std::uint32_t prompt, std::uint32_t tokens, PlayedLines lines);
  void Leave(AnswerId answer);

  CloudLoad LoadFor(std::uint64_t end) const;
  const PlayedEngine& engine() const { return engine_; }

 private:
  struct Answer;

  void HasTurn(AnswerId id, EndTurns::Turn& turn);
  void Beat(AnswerId id);
  void GoOnBeating(AnswerId id);
  double WaitSeconds(const Answer& answer) const;

  Agenda& agenda_;
  EndTurns turns_;  // first: it ends after the turns
  PlayedEngine engine_;
  std::map<AnswerId, std::shared_ptr<Answer>> answers_;
  AnswerId last_ = 0;
};

}  // namespace troupe
