// An end on a virtual clock: places its answers, follows them and moves them by the objects of the
// live one (place_rule.h, answer_flow.h, cloud_queue.h, reading_line.h, cloud_watch.h), with an
// engine of its own and a cloud behind a link. Of what a live end does it leaves out drafts, cuts,
// faults and the bytes on the link; and it sees an engine's counters at once, not one pass later.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <optional>

#include "split/cloud_queue.h"
#include "split/flow/answer_flow.h"
#include "split/flow/cloud_watch.h"
#include "split/flow/place_costs.h"
#include "split/flow/place_rule.h"
#include "split/play/agenda.h"
#include "split/play/played_cloud.h"
#include "split/play/played_engine.h"
#include "split/reading_line.h"

namespace troupe {

struct PlayedEndSetup {
  EngineSetup engine;
  double round_trip_seconds = 0;
  std::size_t most_in_cloud = 32;  // answers at a time
  std::uint64_t key = 0;           // by which the cloud knows it; ends may share one
};

// Sums over answers.
struct PlayedEndCounts {
  std::array<std::uint64_t, 2> begun = {};  // by Side
  FlowCounts flow;
};

class PlayedEnd {
 public:
  // All must outlive it, and it the calls that are on the agenda.
  PlayedEnd(Agenda& agenda, PlayedCloud& cloud, const PlaceRule& rule, const PlayedEndSetup& setup);
  ~PlayedEnd();

  // At least one token of each. `first`: where it begins whatever the rule says.
  void Ask(std::uint32_t prompt, std::uint32_t tokens, std::function<void()> on_over,
           std::optional<Side> first = {});

  const PlayedEndCounts& counts() const { return counts_; }
  void ForgetCounts() { counts_ = {}; }
  const PlayedEngine& engine() const { return engine_; }

 private:
  class Answer;

  std::optional<PlaceCosts> OwnCosts(std::size_t read) const;
  std::optional<PlaceCosts> CloudCosts() const;
  PlaceChoice Choose(const AnswerTask& task, const std::optional<UnderWay>& now) const;
  bool CloudHasRoom() const { return in_cloud_ < setup_.most_in_cloud; }
  void Tick(std::uint64_t tick);
  void AskLoad();
  void OnLoad(const CloudLoad& load);
  void OnOver(const Answer& answer);
  double HalfWay() const { return setup_.round_trip_seconds / 2; }

  Agenda& agenda_;
  PlayedCloud& cloud_;
  const PlaceRule& rule_;
  const PlayedEndSetup setup_;
  PlayedEngine engine_;
  ReadingLine line_;
  CloudQueue queue_;
  PlaceMeter meter_;
  CloudWatch watch_;
  std::uint32_t cloud_sequences_ = 1;
  std::size_t in_cloud_ = 0;  // answers
  double usual_tokens_;
  std::uint64_t tick_ = 0;
  std::list<std::shared_ptr<Answer>> answers_;
  PlayedEndCounts counts_;
};

}  // namespace troupe
