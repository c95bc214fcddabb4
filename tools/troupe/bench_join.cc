#include "troupe/bench_join.h"

#include <algorithm>
#include <chrono>
#include <memory>
#include <thread>

#include "base/mutex.h"
#include "runtime/batcher.h"
#include "runtime/engine_runner.h"
#include "troupe/bench_batch.h"

namespace troupe {
namespace {

// Tokens that every sequence decodes before the prompt joins.
constexpr std::size_t kTokensBefore = 16;
// How often the waiting thread looks: seldom enough to take nothing from the passes.
constexpr std::chrono::milliseconds kLook(1);

// When a request's tokens came: written on the engine's thread, read here.
class TokenTimes {
 public:
  void Note(Nanos now) {
    const MutexLock lock(mu_);
    times_.push_back(now);
  }
  std::vector<Nanos> Get() const {
    const MutexLock lock(mu_);
    return times_;
  }
  std::size_t count() const {
    const MutexLock lock(mu_);
    return times_.size();
  }

 private:
  mutable Mutex mu_;
  std::vector<Nanos> times_ TROUPE_GUARDED_BY(mu_);
};

struct Asked {
  std::shared_ptr<Ticket> ticket;
  std::shared_ptr<TokenTimes> times;
  Nanos submitted = 0;
};

class JoinTimer {
 public:
  JoinTimer(Engine& engine, TokenIds text, const JoinWork& work)
      : engine_(engine),
        runner_(engine, /*keeps_prefixes=*/false),  // or the second prompt would not be read
        most_(engine.plan().context()),
        text_(text),
        work_(work) {}

  Result<JoinTimes> Run() {
    TROUPE_ASSIGN_OR_RETURN(
        batcher_, Batcher::Create(runner_, engine_.tokenizer(), clock_,
                                  {.limits = {.most_rows = engine_.plan().memory.chunk}}));
    for (std::size_t i = 0; i < kJoinedSequences; ++i) {
      TROUPE_ASSIGN_OR_RETURN(Asked asked, Ask(i * text_.size() / kJoinedSequences, work_.prompt,
                                               most_ - std::min(most_, work_.prompt)));
      decodes_.push_back(std::move(asked));
    }
    TROUPE_RETURN_IF_ERROR(WaitForTokens(1));
    const Nanos all_decode = clock_.Now();
    TROUPE_RETURN_IF_ERROR(WaitForTokens(kTokensBefore));
    TROUPE_ASSIGN_OR_RETURN(const Asked joined, Ask(0, work_.joined_prompt, 1));
    TROUPE_RETURN_IF_ERROR(joined.ticket->Wait().status());
    for (const Asked& decode : decodes_) {
      if (decode.ticket->done()) return EndedTooEarly();
    }
    const Nanos read = joined.times->Get().front();  // every token of that pass is noted by now
    JoinTimes times{.prompt_seconds = static_cast<double>(read - joined.submitted) * 1e-9};
    for (const Asked& decode : decodes_) {
      decode.ticket->Cancel();
      TROUPE_RETURN_IF_ERROR(decode.ticket->Wait().status());
      const std::vector<Nanos> came = decode.times->Get();
      Append(GapsWithin(came, all_decode, joined.submitted), times.gaps_before);
      Append(GapsWithin(came, joined.submitted, read), times.gaps);
    }
    TROUPE_ASSIGN_OR_RETURN(const Asked alone, Ask(0, work_.joined_prompt, 1));
    TROUPE_RETURN_IF_ERROR(alone.ticket->Wait().status());
    times.prompt_seconds_alone =
        static_cast<double>(alone.times->Get().front() - alone.submitted) * 1e-9;
    return times;
  }

 private:
  static void Append(const std::vector<double>& more, std::vector<double>& all) {
    all.insert(all.end(), more.begin(), more.end());
  }

  static Status EndedTooEarly() {
    return Error(
        Code::kResourceExhausted,
        "a sequence ended before the prompt was read: a larger --ctx, or more --memory for "
        "the contexts of {} sequences, lets it go on",
        kJoinedSequences + 1);
  }

  Result<Asked> Ask(std::size_t first, std::size_t prompt, std::size_t tokens) {
    Asked asked{.times = std::make_shared<TokenTimes>(), .submitted = clock_.Now()};
    BatchRequest request{.prompt = TextWindow(text_, first, prompt),
                         .options = {.max_tokens = tokens, .ignore_end = true}};
    request.options.sampler.temperature = 0;
    request.sinks.on_logits = [this, times = asked.times](TokenId, std::span<const float>) {
      times->Note(clock_.Now());
      return OkStatus();
    };
    TROUPE_ASSIGN_OR_RETURN(asked.ticket, batcher_->Submit(std::move(request)));
    return asked;
  }

  Status WaitForTokens(std::size_t count) {
    for (const Asked& decode : decodes_) {
      while (decode.times->count() < count) {
        if (decode.ticket->done()) {
          TROUPE_RETURN_IF_ERROR(decode.ticket->Wait().status());
          return EndedTooEarly();
        }
        std::this_thread::sleep_for(kLook);
      }
    }
    return OkStatus();
  }

  MonotonicClock clock_;
  Engine& engine_;
  EngineRunner runner_;
  std::unique_ptr<Batcher> batcher_;
  const std::size_t most_;
  TokenIds text_;
  const JoinWork work_;
  std::vector<Asked> decodes_;
};

}  // namespace

std::vector<double> GapsWithin(std::span<const Nanos> times, Nanos from, Nanos to) {
  std::vector<double> gaps;
  for (std::size_t i = 1; i < times.size(); ++i) {
    if (times[i] <= from || times[i - 1] >= to) continue;
    gaps.push_back(static_cast<double>(times[i] - times[i - 1]) * 1e-9);
  }
  return gaps;
}

Result<JoinTimes> TimeJoin(Engine& engine, TokenIds text, const JoinWork& work) {
  return JoinTimer(engine, text, work).Run();
}

}  // namespace troupe
