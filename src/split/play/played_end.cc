#include "split/play/played_end.h"

#include <algorithm>
#include <map>
#include <utility>

#include "split/flow/token_pace.h"
#include "split/own_costs.h"
#include "split/run_left.h"

namespace troupe {
namespace {

// As of the live end (split/end_answers.cc, split/split_answer.cc).
constexpr double kTickOfAnswers = 0.025, kTickAlone = 0.25;
constexpr double kFirstUsual = 128, kNewestUsual = 0.1;
constexpr std::size_t kLeastExpected = 16;
// All answers are the same here, whatever they say.
constexpr TokenId kToken = 1;

}  // namespace

// One answer and its runs. A run that is stopped is forgotten: what is on its way of it is for
// nobody.
class PlayedEnd::Answer : public std::enable_shared_from_this<Answer> {
 public:
  Answer(PlayedEnd& end, std::uint32_t prompt, std::uint32_t tokens, std::function<void()> on_over)
      : end_(end), prompt_(prompt), tokens_(tokens), on_over_(std::move(on_over)) {}
  ~Answer() {
    for (const auto& [id, stop] : runs_) stop();
  }

  Side Begin(std::optional<Side> first) {
    const PlaceChoice choice =
        first ? PlaceChoice{.place = *first} : end_.Choose(Task(), std::nullopt);
    const Side place = place_ = choice.place;
    pace_.Expect(choice.token_seconds);
    Do(flow_.Begin(place, {.usable = true, .better = place}, Now()));
    return place;
  }

  void OnTime() {
    if (over_) return;
    const Side place = flow_.holder();
    const auto& left = left_[static_cast<std::size_t>(place)];
    UnderWay now = LookAt(place, left ? *left : RunLeft{.begun = true});
    now.token_seconds = pace_.Seconds();
    const PlaceChoice choice = end_.Choose(Task(), now);
    if (choice.place == place) pace_.Expect(choice.token_seconds);
    std::optional<Nanos> next_token_in;
    if (const auto costs = end_.CloudCosts(); costs && place == Side::kCloud) {
      next_token_in = NextTokenIn(now, *costs);
    }
    Do(flow_.OnTime({.usable = true,
                     .has_room = end_.CloudHasRoom(),
                     .better = choice.place,
                     .waits = now.waits,
                     .next_token_in = next_token_in},
                    Now()));
  }

  bool over() const { return over_; }
  const AnswerFlow& flow() const { return flow_; }

 private:
  Nanos Now() const { return end_.agenda_.Now(); }

  AnswerTask Task() const {
    const std::size_t said = flow_.tokens().size();
    const auto usual = static_cast<std::size_t>(end_.usual_tokens_);
    const std::size_t expected = std::max(usual - std::min(usual, said), kLeastExpected);
    return {.read = prompt_ + said,
            .tokens = std::min<std::size_t>(tokens_ - said, expected),
            .one_token = tokens_ == 1};
  }

  UnderWay LookAt(Side place, const RunLeft& left) const {
    const std::size_t read = Task().read;
    if (place == Side::kCloud) return InTheCloud(left, read, Now());
    const std::optional<PlaceCosts> own = end_.OwnCosts(read);
    if (!own) return {.place = place};
    return AtTheEnd(left,
                    {.sequences = end_.engine_.sequences(),
                     .request_seconds = end_.engine_.counters().request_seconds,
                     .read_seconds = own->read_seconds},
                    Now());
  }

  void Do(const FlowStep& step) {
    const auto self = shared_from_this();
    if (std::exchange(place_, flow_.holder()) != flow_.holder()) pace_.Restart();
    if (!step.tokens.empty()) pace_.OnTokens(step.tokens.size(), Now());
    for (const RunId run : step.stop) {
      const auto stopped = runs_.extract(run);
      if (!stopped.empty()) stopped.mapped()();
    }
    if (over_) return;
    if (step.finish) return Finish();
    for (const FlowStep::Start& start : step.start) {
      if (start.place == Side::kEnd) {
        StartHere(start.run);
      } else {
        StartInTheCloud(start.run);
      }
    }
  }

  void Finish() {
    over_ = true;
    for (const auto& [id, stop] : std::exchange(runs_, {})) stop();
    end_.OnOver(*this);
    on_over_();
  }

  std::uint32_t Behind() const { return static_cast<std::uint32_t>(flow_.tokens().size()); }

  void OnToken(RunId run) {
    if (runs_.contains(run)) Do(flow_.OnTokens(run, {&kToken, 1}, Now()));
  }
  void OnEnd(RunId run) {
    if (runs_.erase(run) > 0) Do(flow_.OnEnd(run, FinishReason::kLength, Now()));
  }

  void OnRefused(RunId run) {
    if (runs_.erase(run) == 0) return;
    Do(flow_.OnFailure(run, Error(Code::kResourceExhausted, "the cloud is full"), Now()));
  }

  void StartHere(RunId run) {
    const std::uint32_t to_read = prompt_ + Behind();
    const auto left = left_[0] = std::make_shared<RunLeft>();
    const ReadingLine::Place place = end_.line_.Add(left, to_read, Now());
    const auto leave = [this, place, in_line = std::make_shared<bool>(true)] {
      if (std::exchange(*in_line, false)) end_.line_.Remove(place, Now());
    };
    const auto self = shared_from_this();
    PlayedRun events;
    events.on_read = [this, place](std::size_t read, std::size_t all) {
      end_.line_.Read(place, all - read, Now());
    };
    events.on_token = [this, self, run, place] {
      end_.line_.Read(place, 0, Now());
      OnToken(run);
    };
    events.on_end = [this, self, run, leave] {
      leave();
      OnEnd(run);
    };
    const RequestId request = end_.engine_.Start(to_read, tokens_ - Behind(), std::move(events));
    runs_[run] = [this, leave, request] {
      leave();
      end_.engine_.Stop(request);
    };
  }

  // What goes there and comes back takes half of a round trip each.
  struct FarRun {
    std::optional<PlayedCloud::AnswerId> id;  // it has come there
    bool left = false;
    double first = 0, last = 0;
    double told_token = 0;  // seconds, as the cloud said when the first one came
    std::size_t tokens = 0;
  };

  void StartInTheCloud(RunId run) {
    if (!end_.CloudHasRoom()) {
      runs_[run] = [] {};
      return end_.agenda_.After(0, [self = shared_from_this(), run] { self->OnRefused(run); });
    }
    const std::uint32_t to_read = prompt_ + Behind(), tokens = tokens_ - Behind();
    const auto left = left_[1] = std::make_shared<RunLeft>();
    const auto far = std::make_shared<FarRun>();
    const double sent = end_.agenda_.Seconds();
    const auto begins_in = [this, left](double seconds) {
      left->begins_at = Now() + static_cast<Nanos>(seconds * 1e9);
    };
    begins_in(end_.queue_.WaitSeconds(end_.in_cloud_, end_.cloud_sequences_, Now()));
    end_.queue_.OnSent(to_read, Now());
    ++end_.in_cloud_;
    const auto leave = [this, left, far, to_read] {
      if (std::exchange(far->left, true)) return;
      if (!left->begun) end_.queue_.OnTakenBack(to_read, Now());
      --end_.in_cloud_;
    };
    const auto self = shared_from_this();
    const auto later = [this, self, far](std::function<void()> call) {
      end_.agenda_.After(end_.HalfWay(), [far, call = std::move(call), self] {
        if (!far->left) call();
      });
    };
    PlayedLines lines;
    const auto heard = [this, run] {
      if (runs_.contains(run)) Do(flow_.OnHeard(run, Now()));
    };
    lines.on_wait = [later, begins_in, heard](double seconds) {
      later([begins_in, heard, seconds] {
        begins_in(seconds);
        heard();
      });
    };
    lines.on_alive = [later, left, heard] {
      later([left, heard] {
        left->begun = true;
        heard();
      });
    };
    lines.on_refused = [this, later, leave, run] {
      later([this, leave, run] {
        leave();
        OnRefused(run);
      });
    };
    lines.on_token = [this, later, left, far, run] {
      later([this, left, far, run] {
        left->begun = true;
        far->last = end_.agenda_.Seconds();
        if (far->tokens++ == 0) {
          far->first = far->last;
          far->told_token = end_.meter_.told_token_seconds();
        }
        OnToken(run);
      });
    };
    lines.on_end = [this, later, leave, far, run, sent](double before_first,
                                                        const CloudLoad& load) {
      later([this, leave, far, run, sent, before_first, load] {
        end_.meter_.OnAnswer({.tokens = far->tokens - 1,
                              .token_seconds = far->last - far->first,
                              .told_token_seconds = far->told_token,
                              .link_seconds = far->first - sent - before_first});
        leave();
        end_.OnLoad(load);
        OnEnd(run);
      });
    };
    // Either may come when this answer is gone.
    end_.agenda_.After(end_.HalfWay(), [end = &end_, far, to_read, tokens, lines] {
      far->id = end->cloud_.Start(end->setup_.key, to_read, tokens, lines);
    });
    runs_[run] = [end = &end_, far, leave] {
      leave();
      end->agenda_.After(end->HalfWay(), [end, far] {
        if (far->id) end->cloud_.Leave(*far->id);
      });
    };
  }

  PlayedEnd& end_;
  const std::uint32_t prompt_, tokens_;
  const std::function<void()> on_over_;
  AnswerFlow flow_;
  std::map<RunId, std::function<void()>> runs_;
  std::array<std::shared_ptr<RunLeft>, 2> left_;  // of the last run in each place
  Side place_ = Side::kEnd;                       // who was at work last
  TokenPace pace_;                                // there
  bool over_ = false;
};

PlayedEnd::PlayedEnd(Agenda& agenda, PlayedCloud& cloud, const PlaceRule& rule,
                     const PlayedEndSetup& setup)
    : agenda_(agenda),
      cloud_(cloud),
      rule_(rule),
      setup_(setup),
      engine_(agenda, setup.engine),
      usual_tokens_(kFirstUsual) {
  Tick(tick_);
}

PlayedEnd::~PlayedEnd() = default;

void PlayedEnd::Ask(std::uint32_t prompt, std::uint32_t tokens, std::function<void()> on_over,
                    std::optional<Side> first) {
  std::erase_if(answers_, [](const auto& one) { return one->over(); });
  const auto answer = std::make_shared<Answer>(*this, prompt, tokens, std::move(on_over));
  answers_.push_back(answer);
  ++counts_.begun[static_cast<std::size_t>(answer->Begin(first))];
  if (answers_.size() == 1) Tick(++tick_);
}

std::optional<PlaceCosts> PlayedEnd::OwnCosts(std::size_t read) const {
  Plan plan;
  plan.sequences = engine_.sequences();
  plan.pass_rows = engine_.pass_rows();
  return OwnCostsOf(engine_.counters(), plan, read,
                    {.ahead = line_.to_read(), .runs = line_.runs()});
}

std::optional<PlaceCosts> PlayedEnd::CloudCosts() const {
  return meter_.Costs(queue_.WaitSeconds(in_cloud_, cloud_sequences_, agenda_.Now()));
}

PlaceChoice PlayedEnd::Choose(const AnswerTask& task, const std::optional<UnderWay>& now) const {
  return rule_.Choose(task, {.end = OwnCosts(task.read), .cloud = CloudCosts()}, now);
}

void PlayedEnd::Tick(std::uint64_t tick) {
  if (tick != tick_) return;  // a faster one goes on
  for (const auto& answer : std::vector(answers_.begin(), answers_.end())) answer->OnTime();
  if (watch_.TakeAsk(agenda_.Now(), /*wants_load=*/!answers_.empty())) AskLoad();
  std::erase_if(answers_, [](const auto& answer) { return answer->over(); });
  agenda_.After(answers_.empty() ? kTickAlone : kTickOfAnswers, [this, tick] { Tick(tick); });
}

void PlayedEnd::AskLoad() {
  agenda_.After(HalfWay(), [this] {
    const CloudLoad load = cloud_.LoadFor(setup_.key);
    agenda_.After(HalfWay(), [this, load] {
      cloud_sequences_ = cloud_.engine().sequences();
      watch_.OnThere(agenda_.Now());
      OnLoad(load);
    });
  });
}

void PlayedEnd::OnLoad(const CloudLoad& load) {
  queue_.OnTold(load, in_cloud_, setup_.round_trip_seconds, agenda_.Now());
  meter_.OnTold(load.read_seconds, load.token_seconds);
  watch_.OnLoad(agenda_.Now());
}

void PlayedEnd::OnOver(const Answer& answer) {
  const auto tokens = static_cast<double>(answer.flow().tokens().size());
  usual_tokens_ += kNewestUsual * (tokens - usual_tokens_);
  counts_.flow += answer.flow().counts();
}

}  // namespace troupe
