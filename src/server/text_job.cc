#include "server/text_job.h"

#include <algorithm>
#include <chrono>
#include <deque>
#include <numeric>
#include <utility>

#include "api/model_access.h"
#include "base/mutex.h"
#include "server/answer_costs.h"
#include "server/answer_size.h"
#include "server/seconds_since.h"
#include "server/served_model.h"
#include "server/sse.h"
#include "server/token_logprobs.h"

namespace troupe {
namespace {

using SteadyClock = std::chrono::steady_clock;

class TextJob : public std::enable_shared_from_this<TextJob> {
 public:
  TextJob(ModelUse use, const JobOptions& options, std::unique_ptr<AnswerFormat> format,
          HttpReplyPtr reply, JobListener listener, JobRequests requests)
      : use_(std::move(use)),
        options_(options),
        listener_(std::move(listener)),
        format_(std::move(format)),
        reply_(std::move(reply)),
        requests_(std::move(requests)),
        choices_(requests_.count()),
        later_(requests_.count()) {
    std::iota(later_.begin(), later_.end(), 0);
    left_ = choices_.size();
  }

  void Start() {
    reply_->WhenGone([weak = weak_from_this()] {
      if (const auto self = weak.lock()) self->Cancel();
    });
    reply_->WhenDoubted([weak = weak_from_this()] {
      const auto self = weak.lock();
      return !self || self->SaySomething();  // one that is over has said all
    });
    if (options_.stream) Beat();
    StartMore(options_.together);
    if (!options_.stream && MayBlank()) Beat();  // what can be refused was, with its own status
  }

 private:
  struct Choice {
    ChoiceAnswer answer;
    std::vector<TokenLogprob> untold;  // tokens whose text has not been shown
    std::optional<Generation> generation;
    bool ended = false;
    std::optional<SteadyClock::time_point> last_piece;
  };

  Model& model() const { return *use_.served().model; }

  void Beat() {
    if (options_.pulse == nullptr) return;
    options_.pulse->Add([weak = weak_from_this()] {
      const auto self = weak.lock();
      return self && (self->options_.stream ? self->OnPulse() : self->OnPulseOfWhole());
    });
  }

  void StartMore(std::size_t most) {
    for (; most > 0; --most) {
      std::size_t choice = 0;
      bool unwanted = false;
      {
        const MutexLock lock(mu_);
        if (later_.empty()) return;
        choice = later_.front();
        later_.pop_front();
        ++under_way_;
        unwanted = cancelled_;
      }
      if (unwanted) {  // the client left before anything began
        Answer nothing;
        nothing.finish = FinishReason::kCancelled;
        return OnEnd(choice, nothing);
      }
      Result<Generation> started = StartOne(choice);
      if (!started.ok()) {
        if (started.status().retry_after() > 0 && ComesAgain(choice)) return;
        OnEnd(choice, started.status());
        return Cancel();
      }
      Keep(choice, *std::move(started));
    }
  }

  // The time that it waited, here or while it was parked, is a part of its own.
  Result<Generation> StartOne(std::size_t choice) {
    Request request = requests_.Make(choice);
    if (request.timeout) {
      *request.timeout -= SteadyClock::now() - options_.came;
      if (request.timeout->count() <= 0) {
        return Status(Code::kDeadlineExceeded, "the request's timeout has passed");
      }
    }
    return use_.served().Start(std::move(request), CallbacksOf(choice));
  }

  // The queue is full of others' requests: this one comes again when another of this job ends.
  bool ComesAgain(std::size_t refused) {
    const MutexLock lock(mu_);
    if (under_way_ == 1 || cancelled_) return false;
    --under_way_;
    later_.push_front(refused);
    return true;
  }

  Callbacks CallbacksOf(std::size_t choice) {
    const auto self = shared_from_this();
    Callbacks callbacks{
        .on_piece = [self,
                     choice](const Piece& piece) { return self->OnPiece(choice, piece.text); },
        .on_end = [self, choice](const Result<Answer>& answer) { self->HaveEnd(choice, answer); }};
    if (options_.stream && options_.progress) {
      callbacks.on_read = [self](std::size_t read, std::size_t all) { self->OnRead(read, all); };
    }
    if (options_.prompt_logprobs) {
      callbacks.on_prompt = [self, choice](TokenId token, std::span<const float> logits) {
        self->OnPrompt(choice, token, logits);
      };
    }
    if (options_.logprobs) {
      callbacks.on_logits = [self, choice](TokenId token, std::span<const float> logits) {
        return self->OnLogits(choice, token, logits);
      };
    }
    return callbacks;
  }

  // The handle of a request that has ended meanwhile is not needed any more; that of one that is to
  // be cancelled is, as the end of a handle that is destroyed is not told.
  void Keep(std::size_t choice, Generation generation) {
    {
      const MutexLock lock(mu_);
      if (choices_[choice].ended) return;
      if (!cancelled_) {
        choices_[choice].generation.emplace(std::move(generation));
        return;
      }
    }
    generation.Cancel();
    const MutexLock lock(mu_);
    dropped_.push_back(std::move(generation));
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

  TokenLogprob Told(TokenId token, std::span<const float> logits) const {
    const Tokenizer& tokenizer = ModelAccess::EngineOf(model()).tokenizer();
    return LogprobOf(tokenizer, token, logits, *options_.logprobs);
  }

  void OnPrompt(std::size_t choice, TokenId token, std::span<const float> logits) {
    TokenLogprob told = Told(token, logits);
    const MutexLock lock(mu_);
    if (!Holds(BytesOfLogprob(told, options_.logprob_bytes)).ok()) return;  // OnLogits says so
    choices_[choice].answer.prompt.push_back(std::move(told));
  }

  // Of an answer that is not streamed: whether there is room for so much more of it.
  Status Holds(std::size_t bytes) TROUPE_REQUIRES(mu_) {
    if (options_.stream || options_.memory == nullptr) return OkStatus();
    held_ += bytes;
    constexpr std::size_t kLongest = kMostAnswerBytes + kMostAnswerBytes / 2;
    if (held_ <= options_.answer.count()) return OkStatus();
    if (held_ <= kLongest) {
      const bool has_share = options_.answer > Bytes();  // one text is too short to need one
      const bool fits = !has_share || options_.memory->GrowTo(options_.kept.count() + held_);
      return fits ? OkStatus() : RequestMemory::NoRoom();
    }
    return InvalidArgument(
        "the answer has become longer than can be held and sent: ask for fewer tokens, or for "
        "\"stream\": true");
  }

  Status OnLogits(std::size_t choice, TokenId token, std::span<const float> logits) {
    TokenLogprob told = Told(token, logits);
    const MutexLock lock(mu_);
    TROUPE_RETURN_IF_ERROR(Holds(BytesOfLogprob(told, options_.logprob_bytes)));
    Choice& one = choices_[choice];
    (options_.stream ? one.untold : one.answer.tokens).push_back(std::move(told));
    return OkStatus();
  }

  void OnRead(std::size_t read, std::size_t all) {
    const MutexLock lock(mu_);
    if (read < all && !cancelled_ && Begin()) Write(format_->Progress(read, all));
  }

  // Before the first text, and after it as well: a call without a mark is held back to its end, and
  // clients hang up on whoever is silent.
  bool OnPulse() {
    const MutexLock lock(mu_);
    if (cancelled_ || left_ == 0) return false;
    if (std::exchange(wrote_, false)) return true;
    return Begin() && Write(format_->Waiting());
  }

  // An answer that is not streamed begins before it is known whether there will be one.
  bool OnPulseOfWhole() {
    const MutexLock lock(mu_);
    if (cancelled_ || left_ == 0) return false;
    if (SteadyClock::now() - options_.came < *options_.blanks_after) return true;
    return WriteBlank();
  }

  bool MayBlank() const { return options_.blanks_after && reply_->MayBreak(); }

  bool WriteBlank() TROUPE_REQUIRES(mu_) {
    if (!std::exchange(blank_, true)) {
      reply_->Begin({.headers = {{"X-Accel-Buffering", "no"}}});
    }
    return reply_->Write("\n");
  }

  // The client may have left.
  bool SaySomething() {
    const MutexLock lock(mu_);
    if (cancelled_) return false;
    if (left_ == 0) return true;
    if (options_.stream) return Begin() && Write(format_->Waiting());
    return MayBlank() && WriteBlank();
  }

  bool OnPiece(std::size_t choice, std::string_view text) {
    const MutexLock lock(mu_);
    if (cancelled_) return false;
    if (first_piece_seconds_ == 0) {
      first_piece_seconds_ = SecondsSince(options_.came);
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
    return Write(events);
  }

  bool Write(const std::string& events) TROUPE_REQUIRES(mu_) {
    wrote_ = wrote_ || !events.empty();
    return reply_->Write(events);
  }

  // Before the format is asked for the events that follow: it may number them.
  bool Begin() TROUPE_REQUIRES(mu_) {
    if (std::exchange(begun_, true)) return true;
    reply_->Begin(StreamHead());
    return Write(format_->Open());
  }

  // The engine's thread has other answers to go on with.
  void HaveEnd(std::size_t choice, const Result<Answer>& answer) {
    if (options_.errands == nullptr) return OnEnd(choice, answer);
    options_.errands->Add(
        [self = shared_from_this(), choice, answer] { self->OnEnd(choice, answer); });
  }

  void OnEnd(std::size_t choice, const Result<Answer>& answer) {
    std::optional<JobEnd> end;
    std::size_t more = 0;
    bool others_end = false;
    {
      const MutexLock lock(mu_);
      Choice& one = choices_[choice];
      if (std::exchange(one.ended, true)) return;
      if (answer.ok()) {
        one.answer.answer = *answer;
        if (Status holds = Holds(answer->text.size()); !holds.ok() && status_.ok()) {
          status_ = std::move(holds);
        }
        if (options_.stream && !cancelled_ && Begin()) {
          const TextDelta untold{.text = "", .tokens = one.untold};
          if (!one.untold.empty()) Write(format_->Delta(choice, untold));
          Write(format_->Close(choice, *answer));
        }
        if (options_.stream) one.answer.answer.text = {};
      } else if (status_.ok()) {
        status_ = answer.status();
      }
      if (cancelled_ || !status_.ok()) {
        // What follows would be refused, too, or be answered for nobody.
        left_ -= later_.size();
        later_.clear();
      }
      --under_way_;
      others_end = !status_.ok() && !cancelled_ && under_way_ > 0;
      more = std::min(later_.size(), options_.together - std::min(options_.together, under_way_));
      if (--left_ == 0) end = MakeEnd();
    }
    if (others_end) Cancel();  // the whole request is an error now
    StartMore(more);
    if (!end) return;
    // Before the client has its answer: what it asks of the metrics then holds this request.
    if (listener_.on_end) listener_.on_end(*end);
    Finish(*end);
  }

  // Once all have ended nobody else says anything. What this takes is taken without the lock, which
  // beats and a client that leaves want meanwhile.
  void Finish(const JobEnd& end) {
    std::unique_ptr<AnswerFormat> format;
    bool begun = false, blank = false;
    {
      const MutexLock lock(mu_);
      if (options_.stream && end.status.ok()) Begin();
      format = std::move(format_);
      begun = begun_;
      blank = blank_;
    }
    const Usage all = UsageOfAll(end.choices);
    reply_->Note({.model = use_.served().options.name,
                  .prompt_tokens = all.prompt_tokens,
                  .answer_tokens = all.generated_tokens});
    if (begun) {
      reply_->Write(end.status.ok() ? format->Last(end.choices) : format->Failure(end.status));
      return reply_->End();
    }
    HttpResponse last = end.status.ok() ? format->Whole(end.choices) : format->Refusal(end.status);
    if (!blank) return reply_->Send(std::move(last));
    reply_->Write(last.body);
    // Nobody is to take an error for an answer, whose status it has.
    end.status.ok() ? reply_->End() : reply_->Break(last.status);
  }

  JobEnd MakeEnd() TROUPE_REQUIRES(mu_) {
    JobEnd end{.status = status_,
               .cancelled = cancelled_ && status_.ok(),
               .choices = {},
               .first_piece_seconds = first_piece_seconds_,
               .seconds = SecondsSince(options_.came)};
    for (Choice& choice : choices_) end.choices.push_back(std::move(choice.answer));
    return end;
  }

  const ModelUse use_;  // first: it ends after the handles to the model's requests
  const JobOptions options_;
  const JobListener listener_;
  Mutex mu_;
  std::unique_ptr<AnswerFormat> format_ TROUPE_GUARDED_BY(mu_);  // null once all have ended
  const HttpReplyPtr reply_;
  JobRequests requests_;  // each is made by one thread; more than one, and nothing of it changes
  std::vector<Choice> choices_ TROUPE_GUARDED_BY(mu_);
  std::vector<Generation> dropped_ TROUPE_GUARDED_BY(mu_);  // cancelled, their ends not yet told
  std::deque<std::size_t> later_ TROUPE_GUARDED_BY(mu_);    // those that are not started yet
  std::size_t under_way_ TROUPE_GUARDED_BY(mu_) = 0;        // taken from later_, and not ended
  std::size_t left_ TROUPE_GUARDED_BY(mu_) = 0;
  std::size_t held_ TROUPE_GUARDED_BY(mu_) = 0;  // bytes of an answer that is not streamed
  bool begun_ TROUPE_GUARDED_BY(mu_) = false;    // the stream
  bool blank_ TROUPE_GUARDED_BY(mu_) = false;    // begun with blanks, of one that is not streamed
  bool wrote_ TROUPE_GUARDED_BY(mu_) = true;  // since the last beat; none begins a stream at once
  bool cancelled_ TROUPE_GUARDED_BY(mu_) = false;
  Status status_ TROUPE_GUARDED_BY(mu_);
  double first_piece_seconds_ TROUPE_GUARDED_BY(mu_) = 0;
};

}  // namespace

void RunTextJob(ModelUse use, JobRequests requests, const JobOptions& options,
                std::unique_ptr<AnswerFormat> format, HttpReplyPtr reply, JobListener listener) {
  std::make_shared<TextJob>(std::move(use), options, std::move(format), std::move(reply),
                            std::move(listener), std::move(requests))
      ->Start();
}

}  // namespace troupe
