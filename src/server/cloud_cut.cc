#include "server/cloud_cut.h"

#include <charconv>
#include <cstring>
#include <iterator>
#include <span>
#include <utility>

#include "api/model_access.h"
#include "server/api_error.h"
#include "server/seconds_since.h"
#include "server/served_model.h"
#include "split/wire/cloud_line.h"

namespace troupe {
namespace {

// Messages that wait for one before them.
constexpr std::ptrdiff_t kMostWaiting = 8;

}  // namespace

CloudCut::CloudCut(SharedUse use, CloudCall call, HttpReplyPtr reply, const ForEnds& shared,
                   JobListener listener)
    : use_(std::move(use)),
      call_(std::move(call)),
      end_(call_.end),
      name_(call_.asked.cut->name),
      prefix_(call_.asked.cut->prefix),
      reply_(std::move(reply)),
      shared_(shared),
      listener_(std::move(listener)),
      came_(call_.came) {}

Engine& CloudCut::engine() const { return ModelAccess::EngineOf(*use_->served().model); }

void CloudCut::Run(SharedUse use, CloudCall call, HttpReplyPtr reply, const ForEnds& shared,
                   JobListener listener) {
  const std::shared_ptr<CloudCut> cut(
      new CloudCut(std::move(use), std::move(call), std::move(reply), shared, std::move(listener)));
  if (const Status status = cut->Prepare(); !status.ok()) return cut->Finish(status);
  cut->reply_->WhenGone([weak = cut->weak_from_this()] {
    if (const auto self = weak.lock()) self->Finish(Status(Code::kCancelled, "the end has left"));
  });
  shared.pulse.Add([weak = cut->weak_from_this()] {
    const auto still = weak.lock();
    return still && still->Beat();
  });
  const bool enters =
      cut->host().Enter(cut->end_, cut->tokens_, cut.get(),
                        [cut](EndTurns::Turn turn) { cut->Begin(std::move(turn)); });
  if (!enters) cut->Finish(Status(Code::kUnavailable, "too many answers of this end wait"));
}

// What a cut can answer, and whether both sides mean the same by it.
Status CloudCut::Prepare() {
  if (use_->served().cuts == nullptr) {
    return InvalidArgument("this cloud takes no prompts that are cut by layers (--cut-tokens)");
  }
  const CutAsk& ask = *call_.asked.cut;
  const Request& request = call_.asked.request;
  TROUPE_RETURN_IF_ERROR(CheckPromptCut(engine().config(), ask.layer));
  if (prefix_ == 0 && (request.rule || request.max_tokens != request.begun.size() + 1)) {
    return InvalidArgument(
        "the answer to a prompt that is cut to its end is one token, without a rule");
  }
  Model& model = *use_->served().model;
  TROUPE_ASSIGN_OR_RETURN(BatchRequest batch, ModelAccess::Prepare(model, request));
  TROUPE_RETURN_IF_ERROR(ModelAccess::Check(model, batch));
  TROUPE_RETURN_IF_ERROR(ModelAccess::HoldRule(model, request).status());
  static const MonotonicClock kClock;
  TROUPE_ASSIGN_OR_RETURN(
      TextGeneration text,
      TextGeneration::Make(engine().tokenizer(), std::move(batch.prompt), batch.options,
                           {.capacity = model.plan().context}, kClock));
  if (prefix_ > 0) TROUPE_RETURN_IF_ERROR(CheckPrefix(text.prompt().size()));
  const std::size_t tokens = prefix_ > 0 ? prefix_ : text.prompt().size();
  TROUPE_ASSIGN_OR_RETURN(StateDecoder decoder, host().DecoderFor(ask));
  const std::uint32_t layers = engine().config().layers;
  TROUPE_ASSIGN_OR_RETURN(std::shared_ptr<PartLane::Prompt> prompt,
                          host().lane().Open({ask.layer, layers}, tokens));
  tokens_ = tokens;
  text_.emplace(std::move(text));
  decoder_.emplace(std::move(decoder));
  const MutexLock lock(mu_);
  prompt_ = std::move(prompt);
  if (prefix_ > 0) keys_ = CutKeys(host().lane().pool().type(), ask.layer, prefix_);
  return OkStatus();
}

Status CloudCut::CheckPrefix(std::size_t tokens) const {
  if (!ModelAccess::KeepsPrefixes(*use_->served().model)) {
    return InvalidArgument("this cloud keeps no prefixes, and goes on behind no cuts");
  }
  if (!call_.asked.cut->code.exact()) {
    return InvalidArgument("rows by a lossy code, exact ones expected: the answer goes on");
  }
  if (call_.asked.cut->process == 0) {
    return InvalidArgument("process: 0, expected the number that the end has drawn");
  }
  if (prefix_ >= tokens || prefix_ % KvLayout::kTile != 0) {
    return InvalidArgument("a cut of the first {} tokens of {}, a multiple of {} expected", prefix_,
                           tokens, KvLayout::kTile);
  }
  return OkStatus();
}

void CloudCut::Begin(EndTurns::Turn turn) {
  {
    const MutexLock lock(mu_);
    if (finished_) return;  // the turn is the next one's
    turn_.emplace(std::move(turn));
    heard_ = begun_seconds_ = SecondsSince(came_);
  }
  // Not before: those that wait for their turn hold no rule.
  Result<std::shared_ptr<const void>> rule =
      ModelAccess::HoldRule(*use_->served().model, call_.asked.request);
  if (!rule.ok()) return Finish(rule.status());
  call_.rule = *std::move(rule);
  if (!host().Open(end_, name_, shared_from_this())) {
    return Finish(Status(Code::kCancelled, "the engine was closed"));
  }
  const bool is_over = [&] {
    const MutexLock lock(mu_);
    return finished_;
  }();
  if (is_over) return host().Close(end_, name_, this);
  Write(Encode(CloudReady()));
}

void CloudCut::TakeStates(CutHost* host, std::uint64_t end, std::string_view name,
                          std::string_view message, HttpReplyPtr reply) {
  std::uint64_t number = 0;
  const auto [rest, error] = std::from_chars(name.data(), name.data() + name.size(), number);
  const bool is_number = error == std::errc() && rest == name.data() + name.size();
  const std::shared_ptr<CloudCut> cut =
      host != nullptr && is_number ? host->Find(end, number) : nullptr;
  if (cut != nullptr && IsKeysMessage(std::as_bytes(std::span(message)))) {
    return cut->TakeKeys(message, std::move(reply));
  }
  if (cut != nullptr) return cut->Take(message, std::move(reply));
  reply->Send(ErrorResponse(Error(Code::kNotFound, "rows for no prompt that is being read")));
}

void CloudCut::Take(std::string_view message, HttpReplyPtr reply) {
  std::optional<std::size_t> first;  // of new ones
  const Status status = [&]() -> Status {
    const MutexLock lock(mu_);
    if (finished_) return Error(Code::kNotFound, "rows for a prompt that is over");
    const auto bytes = std::as_bytes(std::span(message));
    const Result<StateFrame> frame = ReadFrame(bytes);
    if (!frame.ok()) return InvalidArgument("{}", frame.status().message());
    const auto same = messages_.find(frame->first);
    if (same == messages_.end() || same->second.count != frame->rows) {
      TROUPE_RETURN_IF_ERROR(Keep(*frame, bytes.size(), reply));
      first = frame->first;
      return OkStatus();
    }
    if (same->second.done) {
      reply->Send({.body = Encode(same->second.receipt)});
    } else {
      same->second.replies.push_back(reply);
    }
    return OkStatus();
  }();
  if (!status.ok()) return reply->Send(ErrorResponse(status));
  if (!first) return;
  host().decoding().Add([self = shared_from_this(), first = *first, copy = std::string(message)] {
    self->Decode(first, copy);
  });
}

Status CloudCut::CheckRows(const StateFrame& frame) {
  const std::size_t end = frame.first + frame.rows;
  if (frame.first < next_ || end > tokens_) {
    return InvalidArgument("rows {} to {} of a prompt of {} tokens, expected those from {} on",
                           frame.first, end, tokens_, next_);
  }
  const auto after = messages_.lower_bound(frame.first);
  bool is_twice = after != messages_.end() && after->first < end;
  if (after != messages_.begin()) {
    const auto& [first, before] = *std::prev(after);
    is_twice |= first + before.count > frame.first;
  }
  if (is_twice) {
    return InvalidArgument("rows {} to {}, of which some have come already", frame.first, end);
  }
  const auto waiting = std::distance(messages_.upper_bound(next_), messages_.end());
  if (frame.first > next_ && waiting >= kMostWaiting) {
    return Error(Code::kUnavailable, "too many rows wait for those before");
  }
  return OkStatus();
}

Status CloudCut::Keep(const StateFrame& frame, std::size_t bytes, HttpReplyPtr reply) {
  TROUPE_RETURN_IF_ERROR(CheckRows(frame));
  TROUPE_RETURN_IF_ERROR(decoder_->CheckFrame(frame));
  // Of an entropy coder they lie there as codes as well, while they are read.
  const Bytes rows(std::size_t{frame.rows} * frame.width * sizeof(float) +
                   (frame.code.rans ? frame.rows_bytes() : 0));
  Message next;
  next.count = frame.rows;
  TROUPE_ASSIGN_OR_RETURN(next.memory, host().waiting_memory().Take(Bytes(bytes) + rows));
  next.replies.push_back(std::move(reply));
  messages_[frame.first] = std::move(next);
  return OkStatus();
}

// Where they are no such rows others may come in their place.
void CloudCut::Decode(std::size_t first, std::string_view message) {
  Result<StateDecoder::States> states = decoder_->Decode(std::as_bytes(std::span(message)));
  std::vector<HttpReplyPtr> refused;
  {
    const MutexLock lock(mu_);
    const auto found = messages_.find(first);
    if (finished_ || found == messages_.end()) return;
    if (states.ok()) {
      found->second.rows = std::move(states->rows);
      found->second.decoded = true;
      heard_ = SecondsSince(came_);
    } else {
      refused.swap(found->second.replies);
      messages_.erase(found);
    }
  }
  for (const HttpReplyPtr& reply : refused) {
    reply->Send(ErrorResponse(InvalidArgument("{}", states.status().message())));
  }
  RunNext();
}

void CloudCut::RunNext() {
  for (;;) {
    std::shared_ptr<PartLane::Prompt> prompt;
    PartLane::Piece piece;
    std::size_t first = 0;
    {
      const MutexLock lock(mu_);
      const auto found = messages_.find(next_);
      if (finished_ || found == messages_.end()) return;
      if (found->second.runs || !found->second.decoded) return;
      found->second.runs = true;
      first = next_;
      next_ += found->second.count;
      piece.stream = std::move(found->second.rows);
      if (next_ == tokens_ && prefix_ == 0) piece.wanted = PartLane::Wanted::kLogits;
      prompt = prompt_;
    }
    host().lane().Run(std::move(prompt), std::move(piece),
                      [self = shared_from_this(), first](const PartLane::Outcome& outcome) {
                        self->OnRun(first, outcome);
                      });
  }
}

void CloudCut::OnRun(std::size_t first, const PartLane::Outcome& outcome) {
  if (!outcome.status.ok()) return Finish(outcome.status);
  std::vector<HttpReplyPtr> replies;
  StatesReceipt receipt;
  {
    const MutexLock lock(mu_);
    if (finished_) return;
    Message& message = messages_[first];
    message.done = true;
    message.memory.reset();
    message.receipt = receipt = {.rows = message.count,
                                 .waited_seconds = outcome.waited_seconds,
                                 .seconds = outcome.seconds};
    replies.swap(message.replies);
    heard_ = SecondsSince(came_);
  }
  for (const HttpReplyPtr& reply : replies) reply->Send({.body = Encode(receipt)});
  if (!outcome.logits.empty()) return Choose(outcome.logits);
  GoOnIfAll();
}

// On the engine's thread.
void CloudCut::Choose(std::span<const float> logits) {
  text_->Read(text_->prompt_left());
  const std::size_t begun = text_->answer().tokens.size();
  if (const Status status = text_->Accept(logits, engine().sampler_scratch()); !status.ok()) {
    return Finish(status);
  }
  const std::span<const TokenId> tokens = std::span(text_->answer().tokens).subspan(begun);
  if (!tokens.empty()) Write(EncodeTokens(tokens));
  double queued = 0;
  {
    const MutexLock lock(mu_);
    queued = begun_seconds_;
  }
  if (listener_.on_first) listener_.on_first(SecondsSince(came_));
  CloudLoad load = LoadOf(use_->served(), shared_.turns.Before(end_));
  load.under_way -= std::min(load.under_way, 1U);  // this one is over
  Write(Encode(CloudEnd{.reason = text_->answer().finish,
                        .read = 0,
                        .queue_seconds = queued,
                        .read_seconds = SecondsSince(came_) - queued,
                        .decode_seconds = 0,
                        .load = load}));
  Finish(OkStatus());
}

bool CloudCut::Write(std::string_view line) {
  const MutexLock lock(writing_);
  if (closed_) return false;
  if (!std::exchange(wrote_, true)) {
    reply_->Begin(
        {.content_type = "application/x-ndjson", .headers = {{"X-Accel-Buffering", "no"}}});
  }
  return reply_->Write(line);
}

bool CloudCut::Beat() {
  bool is_late = false;
  {
    const MutexLock lock(mu_);
    if (finished_) return false;
    const CutLimits& limits = host().limits();
    const double now = SecondsSince(came_);
    const double most = limits.silence_seconds + limits.row_seconds * static_cast<double>(tokens_);
    is_late = turn_ && (now - heard_ > limits.silence_seconds || now - begun_seconds_ > most);
    // What is being decoded, or in the lane, is not the end's to hurry.
    for (const auto& [first, message] : messages_) {
      is_late &= message.done || (message.decoded && !message.runs);
    }
    is_late &= keys_pending_ == 0 && !goes_on_;
  }
  if (!is_late) return Write(EncodeTokens({}));
  // Not now, and no trouble of this cloud.
  Finish(Error(Code::kResourceExhausted, "the rows of the cut prompt came too late"));
  return false;
}

void CloudCut::Finish(const Status& status) {
  const auto self = shared_from_this();  // the host may be the last one who has it
  std::optional<EndTurns::Turn> turn;
  std::shared_ptr<PartLane::Prompt> prompt;
  std::map<std::size_t, Message> messages;
  {
    const MutexLock lock(mu_);
    if (std::exchange(finished_, true)) return;
    if (turn_) turn.emplace(std::move(*turn_));
    turn_.reset();
    prompt.swap(prompt_);
    messages.swap(messages_);
  }
  if (use_->served().cuts != nullptr) host().Leave(end_, this);
  JobEnd end{.status = status,
             .cancelled = status.code() == Code::kCancelled,
             .choices = {},
             .seconds = SecondsSince(came_)};
  if (status.ok()) end.choices.push_back({.answer = text_->answer(), .tokens = {}});
  if (listener_.on_end) listener_.on_end(end);
  for (auto& [first, message] : messages) {
    if (message.done) continue;
    for (const HttpReplyPtr& reply : message.replies) reply->Send(ErrorResponse(status));
  }
  {
    const MutexLock lock(writing_);
    if (!std::exchange(closed_, true)) {
      if (!status.ok() && !wrote_) {
        reply_->Send(ErrorResponse(status));
      } else {
        if (!status.ok()) reply_->Write(Encode(CloudFailure{status}));
        reply_->End();
      }
    }
  }
  if (use_->served().cuts != nullptr) host().Close(end_, name_, this);
}

}  // namespace troupe
