#include "split/own_source.h"

#include <memory>
#include <optional>
#include <utility>
#include <variant>
#include <vector>

namespace troupe {
namespace {

class OwnRun {
 public:
  OwnRun(std::shared_ptr<std::size_t> to_read, RunEvents told)
      : events(std::move(told)), to_read_(std::move(to_read)) {}

  // 0 once the run has told all, or was stopped.
  void HasToRead(std::size_t tokens) { *to_read_ += tokens - std::exchange(has_to_read_, tokens); }
  void OnRead(std::size_t read, std::size_t all) {
    if (stopped) return;
    HasToRead(all - read);
    events.on_read(read, all);
  }
  void OnToken(TokenId token) {
    if (stopped) return;
    HasToRead(0);
    events.on_tokens({&token, 1});
  }
  void OnEnd(const Result<Answer>& answer) {
    if (stopped) return;
    HasToRead(0);
    if (!answer.ok()) return events.on_failure(answer.status());
    events.on_end(answer->finish, answer->usage);
  }

  RunEvents events;
  bool stopped = false;                  // the loop's thread's, as all here
  std::optional<Generation> generation;  // until it is stopped

 private:
  const std::shared_ptr<std::size_t> to_read_;  // of all runs
  std::size_t has_to_read_ = 0;
};

std::size_t PromptTokensOf(const Request& request) {
  const auto* const tokens = std::get_if<std::vector<TokenId>>(&request.prompt);
  return tokens == nullptr ? 0 : tokens->size() + request.begun.size();
}

}  // namespace

TokenSource::Stop OwnSource::Start(const RunAsk& ask, RunEvents events) {
  const auto run = std::make_shared<OwnRun>(to_read_, std::move(events));
  run->HasToRead(PromptTokensOf(ask.request));
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
    run->HasToRead(0);
    post_([run, why = started.status()] {
      if (!run->stopped) run->events.on_failure(why);
    });
  }
  return [run] {
    run->stopped = true;
    run->HasToRead(0);
    run->generation.reset();
  };
}

}  // namespace troupe
