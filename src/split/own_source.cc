#include "split/own_source.h"

#include <optional>
#include <utility>

#include "split/reading_line.h"
#include "split/wire/cloud_request.h"

namespace troupe {
namespace {

class OwnRun {
 public:
  OwnRun(std::shared_ptr<ReadingLine> line, const Clock& clock, const RunAsk& ask, RunEvents told)
      : events(std::move(told)),
        line_(std::move(line)),
        clock_(clock),
        place_(line_->Add(ask.left, PromptTokensOf(ask.request), clock.Now())) {}

  // It has told all, or was stopped.
  void Leave() {
    if (place_) line_->Remove(*std::exchange(place_, std::nullopt), clock_.Now());
  }
  void OnRead(std::size_t read, std::size_t all) {
    if (stopped) return;
    if (place_) line_->Read(*place_, all - read, clock_.Now());
    events.on_read(read, all);
  }
  void OnToken(TokenId token) {
    if (stopped) return;
    if (place_) line_->Read(*place_, 0, clock_.Now());
    events.on_tokens({&token, 1});
  }
  void OnEnd(const Result<Answer>& answer) {
    if (stopped) return;
    Leave();
    if (!answer.ok()) return events.on_failure(answer.status());
    events.on_end(answer->finish, answer->usage);
  }

  RunEvents events;
  bool stopped = false;                  // the loop's thread's, as all here
  std::optional<Generation> generation;  // until it is stopped

 private:
  const std::shared_ptr<ReadingLine> line_;
  const Clock& clock_;
  std::optional<ReadingLine::Place> place_;  // absent: it has left
};

}  // namespace

OwnSource::OwnSource(Model& model, const Clock& clock, PostToLoop post)
    : model_(model),
      clock_(clock),
      post_(std::move(post)),
      line_(std::make_shared<ReadingLine>()) {}

TokenSource::Stop OwnSource::Start(const RunAsk& ask, RunEvents events) {
  const auto run = std::make_shared<OwnRun>(line_, clock_, ask, std::move(events));
  Callbacks callbacks{
      .on_end = [run, post = post_](
                    const Result<Answer>& answer) { post([run, answer] { run->OnEnd(answer); }); },
      .on_logits =
          [run, post = post_](TokenId token, std::span<const float>) {
            post([run, token] { run->OnToken(token); });
            return OkStatus();
          },
      .on_read = [run, post = post_](
                     std::size_t read,
                     std::size_t all) { post([run, read, all] { run->OnRead(read, all); }); }};
  Result<Generation> started = model_.Start(ask.request, std::move(callbacks));
  if (started.ok()) {
    run->generation.emplace(*std::move(started));
  } else {
    run->Leave();
    post_([run, why = started.status()] {
      if (!run->stopped) run->events.on_failure(why);
    });
  }
  return [run] {
    run->stopped = true;
    run->Leave();
    run->generation.reset();
  };
}

std::size_t OwnSource::tokens_to_read() const { return line_->to_read(); }

std::size_t OwnSource::runs() const { return line_->runs(); }

}  // namespace troupe
