#include "server/cloud_answer.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "api/model_access.h"
#include "base/mutex.h"
#include "server/access_rules.h"
#include "server/api_error.h"
#include "server/cloud_line_up.h"
#include "server/cut_host.h"
#include "server/seconds_since.h"
#include "server/served_model.h"
#include "split/wire/cloud_line.h"

namespace troupe {
namespace {

class CloudAnswer : public std::enable_shared_from_this<CloudAnswer> {
 public:
  CloudAnswer(SharedUse use, CloudCall& call, HttpReplyPtr reply, const ForEnds& shared,
              JobListener listener)
      : use_(std::move(use)),
        memory_(std::move(call.memory)),
        rule_(std::move(call.rule)),
        reply_(std::move(reply)),
        listener_(std::move(listener)),
        came_(call.came),
        turns_(shared.turns),
        end_(call.end),
        begun_(call.has_begun) {}

  void Start(CloudRequest asked, const ForEnds& shared) {
    if (asked.drafts) drafts_.emplace(shared.drafts.Open(end_, *asked.drafts));
    reply_->WhenGone([weak = weak_from_this()] {
      if (const auto self = weak.lock()) self->Cancel();
    });
    shared.pulse.Add([weak = weak_from_this()] {
      const auto still = weak.lock();
      return still && still->Write(still->Beat());
    });
    const auto self = shared_from_this();
    const EndTurns::Share share{.tokens = PromptTokensOf(asked.request), .who = this};
    const bool enters = turns_.Enter(end_, model().plan().sequences, share,
                                     [self, request = std::move(asked.request)](
                                         EndTurns::Turn turn) { self->Begin(request, turn); });
    if (!enters) return Refuse(Status(Code::kUnavailable, "too many answers of this end wait"));
    if (gone_) turns_.Leave(end_, this);  // before it entered
    if (!is_read_ && WaitSeconds() > kWaitWorthTelling) Write(Beat());
  }

 private:
  Model& model() const { return *use_->served().model; }

  // That it lives, and how long it has to wait until it is read.
  std::string Beat() {
    if (is_read_) return EncodeTokens({});
    told_wait_ = true;
    return Encode(CloudWait{.seconds = WaitSeconds()});
  }

  double WaitSeconds() const {
    const BatchCounters now = ModelAccess::CountersOf(model());
    const EndTurns::Ahead ahead = place_.has_turn() ? EndTurns::Ahead() : turns_.Before(end_, this);
    return place_.WaitSeconds(now, ahead, model().plan().sequences);
  }

  void Begin(const Request& request, EndTurns::Turn& turn) {
    if (gone_) return;  // while it waited: the turn is the next one's
    turn_.emplace(std::move(turn));
    place_.HasTurn(ModelAccess::CountersOf(model()));
    const auto self = shared_from_this();
    Result<Generation> started = ModelAccess::Start(
        model(), request,
        {.on_end = [self](const Result<Answer>& answer) { self->OnEnd(answer); },
         .on_logits = [self](TokenId token,
                             std::span<const float>) { return self->OnToken(token); },
         .on_read = [self](std::size_t, std::size_t) { self->OnRead(); }},
        drafts_ ? drafts_->draft() : nullptr);
    if (!started.ok()) {
      Refuse(started.status());
      turn_.reset();
      return;
    }
    Keep(*std::move(started));
  }

  // An end that believes that it waits may take it back. While others are before it, what it has
  // was found in the prefix cache.
  void OnRead() {
    if (WaitSeconds() > kWaitWorthTelling) return;
    if (!is_read_.exchange(true) && told_wait_) Write(Beat());
  }

  // By a status if nothing was said yet.
  void Refuse(const Status& why) {
    const JobEnd end{.status = why, .choices = {}, .seconds = SecondsSince(came_)};
    if (listener_.on_end) listener_.on_end(end);
    const MutexLock lock(writing_);
    closed_ = true;
    if (!begun_) return reply_->Send(ErrorResponse(why));
    // As a status would say: not now, and no fault of this cloud's.
    const bool is_full = why.code() == Code::kUnavailable;
    reply_->Write(
        Encode(CloudFailure{is_full ? Error(Code::kResourceExhausted, "{}", why.message()) : why}));
    reply_->End();
  }

  // As of TextJob: the end of a handle that is destroyed is not told.
  void Keep(Generation generation) {
    {
      const MutexLock lock(mu_);
      if (ended_) return;
      generation_.emplace(std::move(generation));
    }
    if (gone_) Cancel();
  }

  void Cancel() {
    gone_ = true;
    turns_.Leave(end_, this);
    std::optional<Generation> cancelled;
    {
      const MutexLock lock(mu_);
      cancelled.swap(generation_);
    }
    if (!cancelled) return;
    cancelled->Cancel();  // without the lock: it waits for callbacks, which take it
    const MutexLock lock(mu_);
    generation_.swap(cancelled);
  }

  Status OnToken(TokenId token) {
    is_read_ = true;
    if (first_seconds_ == 0) {
      first_seconds_ = SecondsSince(came_);
      if (listener_.on_first) listener_.on_first(first_seconds_);
    } else if (listener_.on_gap) {
      listener_.on_gap(between_.Seconds());
    }
    between_ = Stopwatch();
    if (gone_ || !Write(EncodeTokens({&token, 1}))) {
      return Status(Code::kCancelled, "the end has left");
    }
    return OkStatus();
  }

  bool Write(std::string_view line) {
    const MutexLock lock(writing_);
    if (closed_) return false;
    if (!std::exchange(begun_, true)) {
      reply_->Begin(
          {.content_type = "application/x-ndjson", .headers = {{"X-Accel-Buffering", "no"}}});
    }
    return reply_->Write(line);
  }

  void OnEnd(const Result<Answer>& answer) {
    {
      const MutexLock lock(mu_);
      ended_ = true;
    }
    JobEnd end{.status = answer.status(),
               .cancelled = answer.ok() && answer->finish == FinishReason::kCancelled,
               .choices = {},
               .first_piece_seconds = first_seconds_,
               .seconds = SecondsSince(came_)};
    if (answer.ok()) end.choices.push_back({.answer = *answer, .tokens = {}});
    if (listener_.on_end) listener_.on_end(end);
    Write(LastLine(answer));
    {
      const MutexLock lock(writing_);
      closed_ = true;
      reply_->End();
    }
    turn_.reset();  // the next one begins within
  }

  // All before it was read is the queue's: what it was parked, or cut, or waited for its turn.
  std::string LastLine(const Result<Answer>& answer) const {
    if (!answer.ok()) return Encode(CloudFailure{answer.status()});
    const Usage& usage = answer->usage;
    return Encode(
        CloudEnd{.reason = answer->finish,
                 .read = usage.prompt_tokens - usage.cached_tokens,
                 .queue_seconds = std::max(first_seconds_ - usage.first_token_seconds, 0.0),
                 .read_seconds = usage.first_token_seconds,
                 .decode_seconds = usage.decode_seconds,
                 .load = LoadOf(use_->served(), turns_.Before(end_))});
  }

  const SharedUse use_;  // first: it ends after the handle to the model's request
  const RequestMemory::Share memory_;
  const std::shared_ptr<const void> rule_;
  std::optional<EndDrafts::Place> drafts_;  // absent: none will come
  std::optional<EndTurns::Turn> turn_;      // from its beginning to its end
  const HttpReplyPtr reply_;
  const JobListener listener_;
  const std::chrono::steady_clock::time_point came_;
  EndTurns& turns_;
  const std::uint64_t end_;
  PlaceInLine place_;
  std::atomic<bool> is_read_ = false;  // a part of its prompt, at least
  std::atomic<bool> told_wait_ = false;
  Stopwatch between_;         // the engine's thread's
  double first_seconds_ = 0;  // the same
  std::atomic<bool> gone_ = false;
  Mutex mu_;
  std::optional<Generation> generation_ TROUPE_GUARDED_BY(mu_);
  bool ended_ TROUPE_GUARDED_BY(mu_) = false;
  Mutex writing_;
  bool begun_ TROUPE_GUARDED_BY(writing_) = false;
  bool closed_ TROUPE_GUARDED_BY(writing_) = false;
};

}  // namespace

void RunCloudAnswer(SharedUse use, CloudCall call, HttpReplyPtr reply, const ForEnds& shared,
                    JobListener listener) {
  std::make_shared<CloudAnswer>(std::move(use), call, std::move(reply), shared, std::move(listener))
      ->Start(std::move(call.asked), shared);
}

std::uint64_t EndOf(const HttpRequest& request) {
  return std::hash<std::string_view>()(KeyOf(request));
}

CloudLoad LoadOf(const ServedModel& served, const EndTurns::Ahead& ahead) {
  const std::size_t cut_prompts = served.cuts == nullptr ? 0 : served.cuts->counters().prompts_now;
  return LoadToTell(ModelAccess::CountersOf(*served.model), ahead, cut_prompts,
                    served.model->plan().sequences);
}

CloudHello HelloTo(const ServedModel& served, const EndTurns::Ahead& ahead) {
  Model& model = *served.model;
  return {.proof = *served.for_ends,
          .context = model.plan().context,
          .sequences = model.plan().sequences,
          .checks_drafts = ModelAccess::EngineOf(model).ChecksDrafts(),
          .cut_tokens = served.cuts == nullptr ? 0 : served.cuts->tokens(),
          .goes_on_behind_cuts = served.cuts != nullptr && ModelAccess::KeepsPrefixes(model),
          .load = LoadOf(served, ahead)};
}

HttpResponse TakeOffer(const EndDrafts& drafts, std::uint64_t end, DraftOffer offer,
                       const Tokenizer& tokenizer) {
  // The pass that checks them is everybody's.
  for (const TokenId id : offer.tokens) {
    if (tokenizer.Contains(id)) continue;
    return ErrorResponse(InvalidArgument(
        "request: draft: token id {}, expected ids of the vocabulary of {}", id, tokenizer.size()));
  }
  const std::shared_ptr<OfferedDraft> draft = drafts.Find(end, offer.drafts);
  if (draft == nullptr) {
    return ErrorResponse(Error(Code::kNotFound, "drafts for an answer that is not being chosen"));
  }
  draft->Offer(offer.number, offer.from, std::move(offer.tokens));
  const OfferedDraft::Counts counts = draft->counts();
  return {.body = Encode(DraftVerdict{.checked = counts.checked, .right = counts.right})};
}

HttpResponse NotForEnds() {
  return ErrorResponse(
      Error(Code::kNotFound, "this server chooses no answers for ends; --for-ends lets it"));
}

HttpResponse OtherModel(const Status& why) {
  constexpr int kConflict = 409;
  return {.status = kConflict, .body = ErrorBody(why, ErrorStyle::kOpenAi, kConflict)};
}

}  // namespace troupe
