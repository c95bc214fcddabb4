#include "split/own_source.h"

#include <memory>
#include <optional>

namespace troupe {
namespace {

struct OwnRun {
  RunEvents events;
  bool stopped = false;                  // the loop's thread's, as all here
  std::optional<Generation> generation;  // until it is stopped

  void OnEnd(const Result<Answer>& answer) {
    if (stopped) return;
    if (!answer.ok()) return events.on_failure(answer.status());
    events.on_end(answer->finish, answer->usage);
  }
};

}  // namespace

TokenSource::Stop OwnSource::Start(const RunAsk& ask, RunEvents events) {
  const auto run = std::make_shared<OwnRun>();
  run->events = std::move(events);
  Callbacks callbacks{
      .on_end = [run, post = post_](
                    const Result<Answer>& answer) { post([run, answer] { run->OnEnd(answer); }); },
      .on_logits =
          [run, post = post_](TokenId token, std::span<const float>) {
            post([run, token] {
              if (!run->stopped) run->events.on_tokens({&token, 1});
            });
            return OkStatus();
          },
      .on_read =
          [run, post = post_](std::size_t read, std::size_t all) {
            post([run, read, all] {
              if (!run->stopped) run->events.on_read(read, all);
            });
          }};
  Result<Generation> started = model_.Start(ask.request, std::move(callbacks));
  if (started.ok()) {
    run->generation.emplace(*std::move(started));
  } else {
    post_([run, why = started.status()] {
      if (!run->stopped) run->events.on_failure(why);
    });
  }
  return [run] {
    run->stopped = true;
    run->generation.reset();
  };
}

}  // namespace troupe
