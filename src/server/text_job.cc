#include "server/text_job.h"

#include <chrono>
#include <utility>

#include "api/model_access.h"
#include "base/mutex.h"
#include "server/sse.h"
#include "server/token_logprobs.h"

namespace troupe {
namespace {

using SteadyClock = std::chrono::steady_clock;

double SecondsSince(SteadyClock::time_point start) {
  return std::chrono::duration<double>(SteadyClock::now() - start).count();
}

class TextJob : public std::enable_shared_from_this<TextJob> {
 public:
  TextJob(Model& model, const JobOptions& options, std::unique_ptr<AnswerFormat> format,
          HttpReplyPtr reply, JobListener listener, std::size_t choices)
      : model_(model),
        options_(options),
        listener_(std::move(listener)),
        format_(std::move(format)),
        reply_(std::move(reply)),
        choices_(choices) {
    left_ = choices;
  }

  void Start(std::vector<Request> requests) {
    reply_->WhenGone([weak = weak_from_this()] {
      if (const auto self = weak.lock()) self->Cancel();
    });
    for (std::size_t c = 0; c < requests.size(); ++c) {
      Result<Generation> started = model_.Start(std::move(requests[c]), CallbacksOf(c));
      if (!started.ok()) {
        // What follows would be refused, too, or be answered for nobody.
        for (std::size_t rest = c + 1; rest < requests.size(); ++rest)
          OnEnd(rest, started.status());
        OnEnd(c, started.status());
        return Cancel();
      }
      Keep(c, *std::move(started));
    }
  }

 private:
  struct Choice {
    ChoiceAnswer answer;
    std::vector<TokenLogprob> untold;  // tokens whose text has not been shown
    std::optional<Generation> generation;
    bool ended = false;
    std::optional<SteadyClock::time_point> last_piece;
  };

  Callbacks CallbacksOf(std::size_t choice) {
    const auto self = shared_from_this();
    Callbacks callbacks{
        .on_piece = [self,
                     choice](const Piece& piece) { return self->OnPiece(choice, piece.text); },
        .on_end = [self, choice](const Result<Answer>& answer) { self->OnEnd(choice, answer); }};
    if (options_.stream) {
      callbacks.on_read = [self](std::size_t read, std::size_t all) { self->OnRead(read, all); };
    }
    if (options_.logprobs) {
      callbacks.on_logits = [self, choice](TokenId token, std::span<const float> logits) {
        return self->OnLogits(choice, token, logits);
      };
    }
    return callbacks;
  }

  // The handle of a request that has ended meanwhile is not needed any more.
  void Keep(std::size_t choice, Generation generation) {
    std::optional<Generation> dropped(std::move(generation));
    const MutexLock lock(mu_);
    if (!choices_[choice].ended && !cancelled_) choices_[choice].generation.swap(dropped);
  }

  void Cancel() {
    std::vector<Generation> cancelled;
    {
      const MutexLock lock(mu_);
      cancelled_ = true;
      for (Choice& choice : choices_) {
        if (choice.generation) cancelled.push_back(*std::exchange(choice.generation, std::nullopt));
      }
    }
    // Without the lock: it waits for callbacks, which take it. Their ends are told, unlike those of
    // handles that are destroyed.
    for (Generation& generation : cancelled) generation.Cancel();
    const MutexLock lock(mu_);
    for (Generation& generation : cancelled) dropped_.push_back(std::move(generation));
  }

  Status OnLogits(std::size_t choice, TokenId token, std::span<const float> logits) {
    TokenLogprob told =
        LogprobOf(ModelAccess::EngineOf(model_).tokenizer(), token, logits, *options_.logprobs);
    const MutexLock lock(mu_);
    Choice& one = choices_[choice];
    (options_.stream ? one.untold : one.answer.tokens).push_back(std::move(told));
    return OkStatus();
  }

  // Clients wait long for the first token of a long prompt, and less gladly in silence.
  void OnRead(std::size_t read, std::size_t all) {
    const MutexLock lock(mu_);
    if (read < all && !cancelled_ && Begin()) reply_->Write(format_->Progress(read, all));
  }

  bool OnPiece(std::size_t choice, std::string_view text) {
    const MutexLock lock(mu_);
    if (cancelled_) return false;
    if (first_piece_seconds_ == 0) {
      first_piece_seconds_ = SecondsSince(start_);
      if (listener_.on_first) listener_.on_first(first_piece_seconds_);
    }
    Choice& one = choices_[choice];
    const auto now = SteadyClock::now();
    if (one.last_piece && listener_.on_gap) {
      listener_.on_gap(std::chrono::duration<double>(now - *one.last_piece).count());
    }
    one.last_piece = now;
    if (!options_.stream) return true;
    if (!Begin()) return false;
    const std::string events = format_->Delta(choice, {.text = text, .tokens = one.untold});
    one.untold.clear();
    return reply_->Write(events);
  }

  // Before the format is asked for the events that follow: it may number them.
  bool Begin() TROUPE_REQUIRES(mu_) {
    if (std::exchange(begun_, true)) return true;
    reply_->Begin({.content_type = std::string(kEventStream)});
    return reply_->Write(format_->Open());
  }

  void OnEnd(std::size_t choice, const Result<Answer>& answer) {
    std::optional<JobEnd> end;
    {
      const MutexLock lock(mu_);
      Choice& one = choices_[choice];
      if (std::exchange(one.ended, true)) return;
      if (answer.ok()) {
        one.answer.answer = *answer;
        if (options_.stream && !cancelled_ && Begin()) {
          std::string events;
          if (!one.untold.empty()) {
            events = format_->Delta(choice, {.text = "", .tokens = one.untold});
          }
          events += format_->Close(choice, *answer);
          reply_->Write(events);
        }
      } else if (status_.ok()) {
        status_ = answer.status();
      }
      if (--left_ > 0) return;
      end = MakeEnd();
    }
    // Before the client has its answer: what it asks of the metrics then holds this request.
    if (listener_.on_end) listener_.on_end(*end);
    const MutexLock lock(mu_);
    Finish(end->choices);
  }

  void Finish(std::span<const ChoiceAnswer> answers) TROUPE_REQUIRES(mu_) {
    if (begun_) {
      reply_->Write(status_.ok() ? format_->Last(answers) : format_->Failure(status_));
      reply_->End();
    } else if (!status_.ok()) {
      reply_->Send(format_->Refusal(status_));
    } else if (options_.stream) {
      if (Begin()) reply_->Write(format_->Last(answers));
      reply_->End();
    } else {
      reply_->Send(format_->Whole(answers));
    }
  }

  JobEnd MakeEnd() TROUPE_REQUIRES(mu_) {
    JobEnd end{.status = status_,
               .cancelled = cancelled_ && status_.ok(),
               .choices = {},
               .first_piece_seconds = first_piece_seconds_,
               .seconds = SecondsSince(start_)};
    for (Choice& choice : choices_) end.choices.push_back(std::move(choice.answer));
    return end;
  }

  Model& model_;
  const JobOptions options_;
  const JobListener listener_;
  const SteadyClock::time_point start_ = SteadyClock::now();
  Mutex mu_;
  const std::unique_ptr<AnswerFormat> format_ TROUPE_GUARDED_BY(mu_);
  const HttpReplyPtr reply_;
  std::vector<Choice> choices_ TROUPE_GUARDED_BY(mu_);
  std::vector<Generation> dropped_ TROUPE_GUARDED_BY(mu_);  // cancelled, their ends not yet told
  std::size_t left_ TROUPE_GUARDED_BY(mu_) = 0;
  bool begun_ TROUPE_GUARDED_BY(mu_) = false;  // the stream
  bool cancelled_ TROUPE_GUARDED_BY(mu_) = false;
  Status status_ TROUPE_GUARDED_BY(mu_);
  double first_piece_seconds_ TROUPE_GUARDED_BY(mu_) = 0;
};

}  // namespace

void RunTextJob(Model& model, std::vector<Request> requests, const JobOptions& options,
                std::unique_ptr<AnswerFormat> format, HttpReplyPtr reply, JobListener listener) {
  const std::size_t choices = requests.size();
  std::make_shared<TextJob>(model, options, std::move(format), std::move(reply),
                            std::move(listener), choices)
      ->Start(std::move(requests));
}

}  // namespace troupe
