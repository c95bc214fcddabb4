#include "split/play/played_cloud.h"

#include <optional>
#include <utility>

namespace troupe {
namespace {

// Between two lines that say that an answer lives, as the server's pulse.
constexpr double kBeatSeconds = 0.4;

}  // namespace

struct PlayedCloud::Answer {
  std::uint64_t end = 0;
  std::uint32_t prompt = 0, tokens = 0;
  PlayedLines lines;
  double came = 0;
  double before_first = 0;
  bool is_read = false, told_wait = false;
  PlaceInLine place;
  std::optional<EndTurns::Turn> turn;
  std::optional<RequestId> request;
};

PlayedCloud::~PlayedCloud() {
  while (!answers_.empty()) Leave(answers_.begin()->first);
}

PlayedCloud::AnswerId PlayedCloud::Start(std::uint64_t end, std::uint32_t prompt,
                                         std::uint32_t tokens, PlayedLines lines) {
  const AnswerId id = ++last_;
  const auto answer = std::make_shared<Answer>();
  answer->end = end;
  answer->prompt = prompt;
  answer->tokens = tokens;
  answer->lines = std::move(lines);
  answer->came = agenda_.Seconds();
  answers_.emplace(id, answer);
  const bool enters =
      turns_.Enter(end, engine_.sequences(), {.tokens = prompt, .who = answer.get()},
                   [this, id](EndTurns::Turn turn) { HasTurn(id, turn); });
  if (!enters) {
    answers_.erase(id);
    answer->lines.on_refused();
    return id;
  }
  if (WaitSeconds(*answer) > kWaitWorthTelling) Beat(id);
  agenda_.After(kBeatSeconds, [this, id] { GoOnBeating(id); });
  return id;
}

void PlayedCloud::Leave(AnswerId id) {
  const auto found = answers_.extract(id);
  if (found.empty()) return;
  const std::shared_ptr<Answer> answer = found.mapped();
  turns_.Leave(answer->end, answer.get());
  if (answer->request) engine_.Stop(*answer->request);
}

double PlayedCloud::WaitSeconds(const Answer& answer) const {
  return answer.place.WaitSeconds(engine_.counters(), turns_.Before(answer.end, &answer),
                                  engine_.sequences());
}

void PlayedCloud::Beat(AnswerId id) {
  const auto found = answers_.find(id);
  if (found == answers_.end()) return;
  Answer& answer = *found->second;
  if (answer.is_read) return answer.lines.on_alive();
  answer.told_wait = true;
  answer.lines.on_wait(WaitSeconds(answer));
}

void PlayedCloud::GoOnBeating(AnswerId id) {
  if (!answers_.contains(id)) return;
  Beat(id);
  agenda_.After(kBeatSeconds, [this, id] { GoOnBeating(id); });
}

void PlayedCloud::HasTurn(AnswerId id, EndTurns::Turn& turn) {
  const auto found = answers_.find(id);
  if (found == answers_.end()) return;  // it has left: the turn is the next one's
  const std::shared_ptr<Answer> answer = found->second;
  answer->turn.emplace(std::move(turn));
  answer->place.HasTurn(engine_.counters());
  PlayedRun run;
  run.on_read = [this, answer, id](std::size_t, std::size_t) {
    if (WaitSeconds(*answer) > kWaitWorthTelling) return;
    if (!std::exchange(answer->is_read, true) && answer->told_wait) Beat(id);
  };
  run.on_token = [this, answer] {
    answer->is_read = true;
    if (answer->before_first == 0) answer->before_first = agenda_.Seconds() - answer->came;
    answer->lines.on_token();
  };
  run.on_end = [this, answer, id] {
    answer->lines.on_end(answer->before_first, LoadFor(answer->end));
    answers_.erase(id);
    answer->turn.reset();  // the next one begins within
  };
  answer->request = engine_.Start(answer->prompt, answer->tokens, std::move(run));
}

CloudLoad PlayedCloud::LoadFor(std::uint64_t end) const {
  return LoadToTell(engine_.counters(), turns_.Before(end), 0, engine_.sequences());
}

}  // namespace troupe
