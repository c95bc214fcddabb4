#include "split/own_source.h"

#include <optional>
#include <utility>

#include "split/flow/known_prefixes.h"
#include "split/reading_line.h"

namespace troupe {
namespace {

class OwnRun {
 public:
  OwnRun(std::shared_ptr<ReadingLine> line, const Clock& clock, OwnSource::OnLost on_lost,
         const RunAsk& ask, RunEvents told)
      : events(std::move(told)),
        line_(std::move(line)),
        clock_(clock),
        on_lost_(std::move(on_lost)),
        kept_(PromptTokensOf(ask.request) - TokensToRead(ask)),
        place_(line_->Add(ask.left, TokensToRead(ask), clock.Now())) {}

  // It has told all, or was stopped.
  void Leave() {
    if (place_) line_->Remove(*std::exchange(place_, std::nullopt), clock_.Now());
  }
  void OnRead(std::size_t read, std::size_t all) {
    // What is found comes first: there cannot be more of it than that.
    if (!std::exchange(has_read_, true) && Finds(read) && place_) {
      line_->Grow(*place_, all - read, clock_.Now());
    }
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
    // Also of one that was stopped as it has all of its tokens. One that was cancelled may not have
    // looked.
    if (answer.ok() && answer->finish != FinishReason::kCancelled) {
      (void)Finds(answer->usage.cached_tokens);
    }
    if (stopped) return;
    Leave();
    if (!answer.ok()) return events.on_failure(answer.status());
    events.on_end(answer->finish, answer->usage);
  }

  RunEvents events;
  bool stopped = false;                  // the loop's thread's, as all here
  std::optional<Generation> generation;  // until it is stopped

 private:
  // The prefix cache had `most` tokens or fewer. True the first time that this is below what was
  // believed.
  bool Finds(std::size_t most) {
    if (most + KnownPrefixes::kTile >= kept_) return false;
    kept_ = 0;
    if (on_lost_) on_lost_();
    return true;
  }

  const std::shared_ptr<ReadingLine> line_;
  const Clock& clock_;
  const OwnSource::OnLost on_lost_;
  std::size_t kept_;  // tokens that are believed to be in the prefix cache
  bool has_read_ = false;
  std::optional<ReadingLine::Place> place_;  // absent: it has left
};

}  // namespace

OwnSource::OwnSource(Model& model, const Clock& clock, PostToLoop post, OnLost on_lost)
    : model_(model),
      clock_(clock),
      post_(std::move(post)),
      on_lost_(std::move(on_lost)),
      line_(std::make_shared<ReadingLine>()) {}

TokenSource::Stop OwnSource::Start(const RunAsk& ask, RunEvents events) {
  const auto run = std::make_shared<OwnRun>(line_, clock_, on_lost_, ask, std::move(events));
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
