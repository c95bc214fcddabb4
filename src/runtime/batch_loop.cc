#include "runtime/batch_loop.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "base/log.h"

namespace troupe {
namespace {

// Tokens that a request may come to: what memory is reserved for.
std::size_t MostTokens(const BatchRequest& request, std::size_t context) {
  const std::size_t prompt =
      request.prompt.size();  // max_tokens counts what the answer begins with
  if (request.embed) return prompt;
  return prompt + std::min(request.options.max_tokens, context - std::min(context, prompt));
}

Status TooLate() { return Status(Code::kDeadlineExceeded, "the request's deadline has passed"); }

}  // namespace

BatchLoop::BatchLoop(PassRunner& runner, const Tokenizer& tokenizer, const Clock& clock,
                     const BatchLimits& limits, const DraftChoice& drafters)
    : runner_(runner),
      tokenizer_(tokenizer),
      clock_(clock),
      runner_limits_(runner.limits()),
      limits_([&] {
        BatchLimits cut = limits;
        cut.most_rows = std::clamp<std::uint32_t>(cut.most_rows, 1, runner_limits_.rows);
        return cut;
      }()),
      drafters_(drafters) {
  DraftGovernorOptions governed;
  if (runner_limits_.reads_experts) governed.turns.settle = kSettleBehindReads;
  drafts_.governor = DraftGovernor(governed);
}

std::size_t BatchLoop::WholeOf(std::span<const TokenId> prompt) const {
  if (!runner_limits_.decoder_start) return 0;
  const auto start = std::ranges::find(prompt, *runner_limits_.decoder_start);
  return static_cast<std::size_t>(start - prompt.begin()) + 1;
}

// Of an encoder-decoder.
Status BatchLoop::CheckWhole(const BatchRequest& request) const {
  if (!runner_limits_.decoder_start) return OkStatus();
  if (request.embed || request.on_prompt) {
    return Error(Code::kUnimplemented,
                 "a prompt's vector or the logits of its tokens: an encoder-decoder has neither");
  }
  const std::size_t whole = WholeOf(request.prompt);
  if (whole < 2 || whole > request.prompt.size()) {
    return InvalidArgument(
        "a prompt of {} tokens, expected some for the encoder and behind them the token {} that "
        "the decoder begins with",
        request.prompt.size(), *runner_limits_.decoder_start);
  }
  if (whole <= runner_limits_.longest_encoded) return OkStatus();
  return ContextFull(
      "a prompt of {} tokens, and the encoder reads at most {} at once (--chunk sets how many)",
      whole, runner_limits_.longest_encoded);
}

Status BatchLoop::Check(const BatchRequest& request) const {
  TROUPE_RETURN_IF_ERROR(CheckWhole(request));
  TROUPE_RETURN_IF_ERROR(TextGeneration::Check(request.prompt.size(), request.options,
                                               {.capacity = runner_limits_.context}));
  const auto check = [this](std::string_view what, TokenId token) {
    if (tokenizer_.Contains(token)) return OkStatus();
    return InvalidArgument("{} token id {}, which is not in the vocabulary of {}", what, token,
                           tokenizer_.size());
  };
  const GenerateOptions& options = request.options;
  for (const TokenId id : request.prompt) TROUPE_RETURN_IF_ERROR(check("the prompt has", id));
  for (const TokenId id : options.begun) {
    TROUPE_RETURN_IF_ERROR(check("the answer begins with", id));
  }
  for (const TokenId id : options.stop_tokens) TROUPE_RETURN_IF_ERROR(check("a stop at", id));
  for (const auto& [id, bias] : options.sampler.logit_bias) {
    TROUPE_RETURN_IF_ERROR(check("a bias for", id));
  }
  return OkStatus();
}

void BatchLoop::Add(std::shared_ptr<Ticket> ticket, BatchRequest request, Nanos since) {
  waiting_.push_back({.ticket = std::move(ticket), .request = std::move(request), .since = since});
}

std::vector<EndedRequest> BatchLoop::Step() {
  std::vector<EndedRequest> ended;
  DropUnwanted(ended);
  Admit(ended);
  const std::uint64_t read = counters_.prompt_tokens;
  pace_.PassBegins(clock_.Now());
  RunPass();
  pace_.PassEnded(counters_.prompt_tokens - read, ReadsOn(), clock_.Now());
  CollectEnded(ended);
  return ended;
}

void BatchLoop::DropUnwanted(std::vector<EndedRequest>& ended) {
  const Nanos now = clock_.Now();
  std::erase_if(waiting_, [&](Waiting& waiting) {
    if (waiting.ticket->cancelled()) {
      ++counters_.cancelled;
      Answer nothing;
      nothing.finish = FinishReason::kCancelled;
      nothing.usage.queue_seconds = Seconds(waiting.since, now);
      ended.push_back({std::move(waiting.ticket), std::move(nothing)});
      return true;
    }
    if (waiting.request.deadline.value_or(now) < now) {
      ++counters_.failed;
      ended.push_back({std::move(waiting.ticket), TooLate()});
      return true;
    }
    return false;
  });
  for (Active& active : active_) {
    if (active.ticket->cancelled()) active.generation.Cancel();
    if (active.deadline.value_or(now) < now) active.generation.Fail(TooLate());
  }
  CollectEnded(ended);
}

// In order of arrival: a request that needs much memory is not overtaken for ever by small ones.
void BatchLoop::Admit(std::vector<EndedRequest>& ended) {
  while (!waiting_.empty() && active_.size() < runner_limits_.sequences) {
    const BatchRequest& first = waiting_.front().request;
    const std::size_t tokens = MostTokens(first, runner_limits_.context);
    const std::optional<ReservedSequence> sequence =
        runner_.Reserve({.prompt = first.prompt,
                         .tokens = tokens,
                         .exact = first.exact,
                         .reads_all = first.embed.has_value() || first.on_prompt,
                         .salt = first.salt,
                         .common = first.common});
    if (!sequence && !active_.empty()) return;
    Waiting next = std::move(waiting_.front());
    waiting_.pop_front();
    if (next.request.embed) next.request.options.max_tokens = 0;
    if (!sequence) {  // nobody holds memory that could become free
      ++counters_.failed;
      ended.push_back(
          {std::move(next.ticket),
           Error(Code::kResourceExhausted,
                 "no memory for a sequence of {} tokens, though nothing else runs", tokens)});
      continue;
    }
    Result<TextGeneration> generation = TextGeneration::Make(
        tokenizer_, std::move(next.request.prompt), next.request.options,
        {.capacity = runner_limits_.context}, clock_, std::move(next.request.sinks));
    TROUPE_CHECK(generation.ok());  // Check has accepted it
    const Nanos now = clock_.Now();
    std::unique_ptr<AnswerDrafts> drafts =
        next.request.embed ? nullptr
                           : DraftsFor(*generation, next.request.exact, next.request.options,
                                       sequence->id, next.ticket->id());
    const auto whole = static_cast<std::uint32_t>(WholeOf(generation->prompt()));
    active_.push_back({.ticket = std::move(next.ticket),
                       .generation = std::move(generation).value(),
                       .sequence = sequence->id,
                       .whole = whole,
                       .exact = next.request.exact,
                       .salt = std::move(next.request.salt),
                       .embedding = next.request.embed
                                        ? std::make_unique<EmbeddingSum>(*next.request.embed)
                                        : nullptr,
                       .on_prompt = std::move(next.request.on_prompt),
                       .drafts = std::move(drafts),
                       .deadline = next.request.deadline,
                       .since = now});
    active_.back().generation.usage().queue_seconds = Seconds(next.since, now);
    SkipCached(active_.back(), sequence->cached);
  }
}

void BatchLoop::SkipCached(Active& active, std::size_t tokens) {
  if (tokens == 0) return;
  if (active.generation.usage().cached_tokens == 0) ++counters_.cache_hits;
  counters_.cached_tokens += tokens;
  active.generation.Skip(tokens);
}

// Requests that begin alike and come together, as the answers of one that asks for several: one
// reads, and the others find it in the prefix cache.
bool BatchLoop::WaitsForPrefix(const Active& active) const {
  const std::uint32_t page = runner_limits_.cache_page;
  if (page == 0 || active.ReadsAll() || active.generation.phase() != Phase::kPrompt) return false;
  const std::span<const TokenId> prompt = active.generation.prompt();
  const std::size_t read = prompt.size() - active.generation.prompt_left();
  for (const Active& other : active_) {
    if (&other == &active) return false;
    if (other.generation.phase() != Phase::kPrompt || other.exact != active.exact) continue;
    if (other.embedding || other.salt != active.salt) continue;  // it leaves nothing for this one
    const std::span<const TokenId> theirs = other.generation.prompt();
    if (theirs.size() - other.generation.prompt_left() < read) continue;
    const auto common = static_cast<std::size_t>(
        std::ranges::mismatch(prompt.first(prompt.size() - 1), theirs).in1 - prompt.begin());
    if (common / page * page > read) return true;
  }
  return false;
}

bool BatchLoop::ReadsOn() const {
  return std::ranges::any_of(active_, [](const Active& active) {
    return !active.generation.ended() && active.generation.phase() == Phase::kPrompt;
  });
}

void BatchLoop::RunPass() {
  for (Active& active : active_) {
    if (runner_limits_.cache_page == 0 || active.ReadsAll() ||
        active.generation.phase() != Phase::kPrompt) {
      continue;
    }
    SkipCached(active, runner_.TakeCached(active.sequence, active.generation.prompt()));
  }
  OfferDrafts();
  std::vector<BatchCandidate> candidates;
  for (const Active& active : active_) {
    if (active.generation.ended() || WaitsForPrefix(active)) continue;
    const std::size_t left = active.generation.prompt_left();
    candidates.push_back({.request = active.ticket->id(),
                          .phase = active.generation.phase(),
                          .prompt_left = static_cast<std::uint32_t>(left),
                          .whole = left == active.generation.prompt().size() ? active.whole : 0,
                          .deadline = active.deadline,
                          .passed_over = active.passed_over,
                          .guesses = active.guessed});
  }
  BatchLimits limits = limits_;
  limits.target_seconds =
      std::max(0.0, limits.target_seconds - std::exchange(between_seconds_, 0.0));
  const BatchChoice choice = ChooseBatch(candidates, meter_.speed(), limits);
  if (choice.rows.empty()) return;
  WarnOfTarget(choice);
  for (Active& active : active_) ++active.passed_over;
  const std::vector<PassRows> rows = RowsOf(choice);
  for (const PassRows& group : rows) ActiveOf(group.request).passed_over = 0;

  Status together = RunRows(rows);
  if (together.ok() || WasAbandoned(together, rows)) return;
  if (rows.size() == 1) {
    ActiveOf(rows.front().request).generation.Fail(std::move(together));
    return;
  }
  // One of them needs what cannot be had. Alone, each shows whether it is the one.
  for (const PassRows& group : rows) {
    Status alone = RunRows({&group, 1});
    if (!alone.ok() && !WasAbandoned(alone, {&group, 1})) {
      ActiveOf(group.request).generation.Fail(std::move(alone));
    }
  }
}

// Once: a time that no pass with decodes in it can keep to makes prompts beside them slow, and
// nobody sooner.
void BatchLoop::WarnOfTarget(const BatchChoice& choice) {
  const std::uint32_t decodes = choice.RowsIn(Phase::kDecode);
  if (warned_of_target_ || decodes == 0 || choice.RowsIn(Phase::kPrompt) == 0) return;
  const double alone = meter_.speed().decode.At(decodes);
  if (alone <= limits_.target_seconds) return;
  warned_of_target_ = true;
  LogWarning(
      "the next tokens of {} answers alone take a pass of {:.1f} ms, longer than the {:.1f} ms of "
      "--pass-ms: prompts beside them are read slowly",
      decodes, alone * 1e3, limits_.target_seconds * 1e3);
}

std::uint32_t BatchLoop::RowsBetween(const RowSeconds& seconds, std::uint32_t most) const {
  std::uint32_t decodes = 0;
  bool reads = false;
  for (const Active& active : active_) {
    if (active.generation.ended()) continue;
    const bool is_prompt = active.generation.phase() == Phase::kPrompt;
    reads = reads || is_prompt;
    decodes += is_prompt ? 0 : 1;
  }
  if (decodes == 0) return most;
  BatchLimits limits = limits_;
  const double alone = meter_.speed().decode.At(decodes);
  if (reads) limits.target_seconds = (limits.target_seconds + alone) / 2;
  return PromptRowsBeside(alone, seconds, most, limits);
}

std::vector<PassRows> BatchLoop::RowsOf(const BatchChoice& choice) {
  std::vector<PassRows> rows;
  for (const BatchRows& group : choice.rows) {
    Active& active = ActiveOf(group.request);
    const TextGeneration& generation = active.generation;
    std::span<const TokenId> tokens = generation.NextTokens(group.rows);
    if (group.guesses > 0) {
      active.fed.resize(group.guesses);
      active.fed.insert(active.fed.begin(), tokens.begin(), tokens.end());
      tokens = active.fed;
    }
    rows.push_back({.sequence = active.sequence,
                    .request = group.request,
                    .tokens = tokens,
                    .phase = group.phase,
                    .exact = active.exact,
                    .wants_logits = group.phase == Phase::kDecode ||
                                    (!active.embedding && group.rows == generation.prompt_left()),
                    .guessed = group.guesses,
                    .embedding = active.embedding.get(),
                    .on_row = VisitorOf(active),
                    .unwanted = &active.ticket->cancelled_flag()});
  }
  return rows;
}

RowVisitor BatchLoop::VisitorOf(const Active& active) {
  if (!active.on_prompt || active.generation.phase() != Phase::kPrompt) return {};
  const std::span<const TokenId> prompt = active.generation.prompt();
  const std::span<const TokenId> next = prompt.last(active.generation.prompt_left() - 1);
  return [&active, next](std::size_t row, std::span<const float> logits) {
    if (row < next.size()) active.on_prompt(next[row], logits);
  };
}

// As all requests in it were cancelled while it ran: DropUnwanted ends them.
bool BatchLoop::WasAbandoned(const Status& status, std::span<const PassRows> rows) {
  return status.code() == Code::kCancelled &&
         std::ranges::all_of(rows, [this](const PassRows& group) {
           return ActiveOf(group.request).ticket->cancelled();
         });
}

Status BatchLoop::RunRows(std::span<const PassRows> rows) {
  const Nanos start = clock_.Now();
  const Status status = runner_.Run(rows);
  const double seconds = Seconds(start, clock_.Now());
  counters_.pass_seconds += seconds;
  if (!status.ok()) {
    ++(WasAbandoned(status, rows) ? counters_.abandoned_passes : counters_.failed_passes);
    return status;
  }
  ++counters_.passes;
  TakeResults(rows, seconds);
  return OkStatus();
}

void BatchLoop::TakeResults(std::span<const PassRows> rows, double seconds) {
  std::vector<std::uint32_t> right(rows.size());
  bool guessed = false;
  double checks_seconds = 0;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    Active& active = ActiveOf(rows[i].request);
    const RowsCost& cost = runner_.costs()[i];
    Usage& usage = active.generation.usage();
    usage.expert_uses += cost.expert_uses;
    usage.experts += cost.experts;
    counters_.experts += cost.experts;
    if (rows[i].phase == Phase::kDecode) {
      usage.decode_experts += cost.experts;
      usage.decode_pass_seconds += seconds;
    } else {
      active.generation.Read(rows[i].tokens.size() - rows[i].guessed);
    }
    guessed = guessed || rows[i].guessed > 0;
    if (active.ticket->cancelled()) active.generation.Cancel();
    if (!rows[i].wants_logits || active.generation.ended()) continue;
    double check_seconds = 0;
    right[i] = TakeGuesses(active, i, rows[i], check_seconds);
    usage.decode_pass_seconds += check_seconds;
    checks_seconds += check_seconds;
  }
  if (guessed) runner_.KeepGuesses(right);
  counters_.pass_seconds += checks_seconds;
  NoteDrafts(rows, right, seconds + checks_seconds);
}

void BatchLoop::CollectEnded(std::vector<EndedRequest>& ended) {
  std::erase_if(active_, [&](Active& active) {
    using State = TextGeneration::State;
    TextGeneration& generation = active.generation;
    if (!generation.ended()) return false;
    const ExpertUsage rest = runner_.EndRequest(active.ticket->id());  // of passes that failed
    generation.usage().experts += rest;
    counters_.experts += rest;
    runner_.Release(active.sequence);
    const double seconds = Seconds(active.since, clock_.Now());
    request_seconds_ =
        request_seconds_ == 0 ? seconds : request_seconds_ + 0.2 * (seconds - request_seconds_);
    if (generation.state() == State::kFailed) {
      ++counters_.failed;
      ended.push_back({std::move(active.ticket), generation.status()});
      return true;
    }
    ++(generation.state() == State::kFinished ? counters_.finished : counters_.cancelled);
    Answer answer = std::move(generation).TakeAnswer();
    if (active.embedding) answer.embedding = active.embedding->Value();
    ended.push_back({std::move(active.ticket), std::move(answer)});
    return true;
  });
}

std::vector<EndedRequest> BatchLoop::EndAll(const Status& why) {
  std::vector<EndedRequest> ended;
  DropUnwanted(ended);
  for (Active& active : active_) active.generation.Fail(why);
  CollectEnded(ended);
  for (Waiting& waiting : waiting_) {
    ++counters_.failed;
    ended.push_back({std::move(waiting.ticket), why});
  }
  waiting_.clear();
  return ended;
}

const BatchLoop::Active& BatchLoop::ActiveOf(RequestId id) const {
  const auto found =
      std::ranges::find(active_, id, [](const Active& active) { return active.ticket->id(); });
  TROUPE_CHECK(found != active_.end());
  return *found;
}

BatchLoop::Active& BatchLoop::ActiveOf(RequestId id) {
  return const_cast<Active&>(std::as_const(*this).ActiveOf(id));
}

}  // namespace troupe
