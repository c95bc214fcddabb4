#include "split/cut_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace troupe {
namespace {

double SecondsBetween(Nanos from, Nanos to) { return static_cast<double>(to - from) * 1e-9; }
Nanos NanosOf(double seconds) { return static_cast<Nanos>(seconds * 1e9); }
double InSeconds(Nanos time) { return static_cast<double>(time) * 1e-9; }

// The cloud may keep a message, or a prompt that wants its turn, for so long, and for thrice what
// the plan expects of the whole: then its end had better do without.
constexpr double kMostWaitSeconds = 10, kMostOfPlan = 3;

// Messages on the link at a time: as many as keep it busy. Rows go first: the cloud's layers wait
// for them.
constexpr std::size_t kMostSending = 4;

// Before a message that found no room is sent again: so long, and twice as long by each time up to
// the most; or longer if the cloud says so.
constexpr double kFirstAgainSeconds = 0.05, kMostAgainSeconds = 1;

std::vector<TokenId> CutTokens(const Request& request, const CutPlan& plan) {
  std::vector<TokenId> tokens = std::get<std::vector<TokenId>>(request.prompt);
  tokens.insert(tokens.end(), request.begun.begin(), request.begun.end());
  if (plan.prefix > 0) tokens.resize(std::min(tokens.size(), plan.prefix));
  return tokens;
}

}  // namespace

Result<std::shared_ptr<CutRun>> CutRun::Start(CutWorld& world, Ask ask, RunEvents events) {
  TROUPE_ASSIGN_OR_RETURN(StateEncoder encoder, world.EncoderFor(ask.plan, ask.exact));
  const std::size_t tokens = CutTokens(ask.request, ask.plan).size();
  TROUPE_ASSIGN_OR_RETURN(CutWorld::RunLower lower,
                          world.OpenLower(ask.plan.layer, tokens, ask.plan.prefix > 0));
  const std::shared_ptr<CutRun> run(
      new CutRun(world, std::move(ask), std::move(encoder), std::move(lower), std::move(events)));
  if (run->ask_.far_at_once) run->StartFar();
  run->Do(run->flow_.Begin());
  return run;
}

CutRun::CutRun(CutWorld& world, Ask ask, StateEncoder encoder, CutWorld::RunLower lower,
               RunEvents events)
    : world_(world),
      ask_(std::move(ask)),
      tokens_(CutTokens(ask_.request, ask_.plan)),
      encoder_(std::move(encoder)),
      lower_(std::move(lower)),
      events_(std::move(events)),
      flow_(tokens_.size(), ask_.plan.chunk,
            ask_.plan.prefix > 0 ? kMostAheadWithKeys : CutFlow::kMostAhead),
      begun_(world.Now()) {
  ++world_.counts().begun;
}

CutRun::~CutRun() { Stop(); }

void CutRun::StartFar() {
  moved_ = world_.Now();
  const std::weak_ptr<CutRun> weak = weak_from_this();
  const auto tell = [weak](auto event) {
    return [weak, event](const auto&... what) {
      const auto self = weak.lock();
      if (self && !self->ended_) event(*self, what...);
    };
  };
  RunEvents events;
  events.on_heard = tell([](CutRun& self) { self.events_.on_heard(); });
  events.on_ready = tell([](CutRun& self) {
    self.ready_ = true;
    self.Do(self.flow_.OnCloudReady());
  });
  events.on_tokens = tell([](CutRun& self, std::span<const TokenId> tokens) {
    self.OnFirstToken();
    self.events_.on_tokens(tokens);
  });
  events.on_end = tell([](CutRun& self, FinishReason reason, const Usage& usage) {
    self.End(OkStatus());
    self.events_.on_end(reason, usage);
  });
  events.on_failure = tell([](CutRun& self, const Status& why) { self.End(why); });
  const StateCode code = encoder_.code();
  const CutAsk cut{.name = ask_.name,
                   .layer = ask_.plan.layer,
                   .code = code,
                   .basis = world_.BasisOf(ask_.plan.layer, code),
                   .prefix = ask_.plan.prefix};
  stop_far_ = world_.StartFar({.request = ask_.request, .drafts = ask_.drafts, .cut = cut},
                              std::move(events));
}

void CutRun::TellWork() const {
  if (events_.on_work) events_.on_work();
}

// While its rows wait for the end's engine nobody else says that it lives.
void CutRun::OnTime() {
  if (ended_ || over_) return;
  const auto self = shared_from_this();
  SendNext();
  const bool waits_here = !stop_far_ || (!WaitsForCloud() && flow_.computed() < tokens_.size());
  if (waits_here) return TellWork();
  const double most = kMostWaitSeconds + kMostOfPlan * ask_.plan.seconds;
  if (WaitsForCloud() && SecondsBetween(moved_, world_.Now()) > most) {
    End(Error(Code::kDeadlineExceeded, "the cloud has not taken the rows of a prompt in time"));
  }
}

void CutRun::Do(const CutFlow::Step& step) {
  if (step.compute) Compute(*step.compute);
  for (const CutFlow::Chunk& chunk : step.send) {
    if (!over_) Send(chunk);
  }
}

void CutRun::Compute(const CutFlow::Chunk& chunk) {
  const auto first = tokens_.begin() + static_cast<std::ptrdiff_t>(chunk.first);
  lower_({first, first + static_cast<std::ptrdiff_t>(chunk.tokens)},
         [weak = weak_from_this(), chunk](const CutWorld::Lower& lower) {
           const auto self = weak.lock();
           if (self && !self->over_) self->OnLower(chunk, lower);
         });
}

void CutRun::OnLower(const CutFlow::Chunk& chunk, const CutWorld::Lower& lower) {
  if (!lower.status.ok()) return End(OfTheEnd(lower.status));
  const Nanos began = lower.ended - NanosOf(lower.seconds);
  for (BusyTime* const lane : {&end_, &world_.counts().end}) lane->Add(began, lower.ended);
  world_.meter().OnEnd(chunk.tokens, ask_.plan.layer, lower.seconds);
  computed_[chunk.first] = {.rows = lower.rows, .keys = lower.keys};
  TellWork();
  if (events_.on_read) events_.on_read(flow_.computed(), tokens_.size());
  if (over_) return;
  if (!stop_far_) StartFar();
  Do(flow_.OnComputed());
}

void CutRun::Send(const CutFlow::Chunk& chunk) {
  auto computed = computed_.extract(chunk.first);
  CutCounts& counts = world_.counts();
  const Nanos began = world_.Now();
  rows_waiting_.push_back(
      {.chunk = chunk.first,
       .bytes = encoder_.Encode(static_cast<std::uint32_t>(chunk.first), computed.mapped().rows)});
  const std::size_t row_bytes = rows_waiting_.back().bytes.size() - kStateFrameBytes;
  world_.OnEncoded(ask_.plan, {.rows = chunk.tokens,
                               .bytes = row_bytes,
                               .rans = encoder_.code().rans,
                               .seconds = InSeconds(world_.Now() - began)});
  counts.bytes_spared += chunk.tokens * encoder_.row_bytes() - row_bytes;
  counts.rows += chunk.tokens;
  counts.rows_before[ask_.plan.layer] += chunk.tokens;
  if (!encoder_.code().exact()) counts.lossy_rows += chunk.tokens;
  counts.bytes += rows_waiting_.back().bytes.size();
  left_[chunk.first] = 1 + computed.mapped().keys.size();
  for (std::vector<std::byte>& keys : computed.mapped().keys) {
    counts.keys_bytes += keys.size();
    keys_waiting_.push_back({.chunk = chunk.first, .bytes = std::move(keys)});
  }
  SendNext();
}

// What found no room and is due goes before what is new: it would wait as long as keys and values
// take all places, and is given up if it has waited for too long.
void CutRun::SendNext() {
  const Nanos now = world_.Now();
  while (sending_.size() < kMostSending) {
    std::deque<Message>* from = &refused_;
    auto next =
        std::ranges::find_if(refused_, [&](const Message& one) { return one.again <= now; });
    if (next == refused_.end()) {
      from = rows_waiting_.empty() ? &keys_waiting_ : &rows_waiting_;
      next = from->begin();
      if (from->empty()) return;
      if (sending_.empty() && refused_.empty()) moved_ = now;
    }
    Message message = std::move(*next);
    from->erase(next);
    Put(std::move(message));
  }
}

void CutRun::Put(Message message) {
  const std::uint64_t id = ++last_message_;
  Sending& sending = sending_[id];
  sending.message = std::move(message);
  sending.sent = world_.Now();
  world_.meter().OnSent();
  // Also of an answer that is here already: what the last rows took is to be known.
  sending.stop =
      world_.SendStates(ask_.name, sending.message.bytes,
                        [self = shared_from_this(), id](const Result<StatesReceipt>& receipt) {
                          self->OnReceipt(id, receipt);
                        });
}

// One that found no room, which others may leave. False: it is not worth another try.
bool CutRun::KeepForLater(Message message, const Status& why) {
  if (why.retry_after() <= 0) return false;
  const Nanos now = world_.Now();
  if (message.pause == 0) message.refused = now;
  message.pause =
      std::clamp(2 * message.pause, NanosOf(kFirstAgainSeconds), NanosOf(kMostAgainSeconds));
  message.again = now + std::max(message.pause, NanosOf(why.retry_after()));
  if (SecondsBetween(message.refused, message.again) > kMostWaitSeconds) return false;
  refused_.push_back(std::move(message));
  return true;
}

void CutRun::OnReceipt(std::uint64_t id, const Result<StatesReceipt>& receipt) {
  auto found = sending_.extract(id);
  if (found.empty()) return;
  Sending& done = found.mapped();
  if (!receipt.ok()) {
    world_.meter().OnLost();
    if (over_) return;
    if (!KeepForLater(std::move(done.message), receipt.status())) return End(receipt.status());
    return SendNext();
  }
  CountReceipt(*receipt, done.message.bytes.size(), done.sent);
  const bool is_through = --left_.at(done.message.chunk) == 0;
  const CutFlow::Step next = is_through ? flow_.OnTaken() : CutFlow::Step();
  if (over_) return Report();
  SendNext();
  Do(next);
}

// What the cloud did not take of the time was the link's.
void CutRun::CountReceipt(const StatesReceipt& receipt, std::size_t bytes, Nanos sent) {
  const Nanos now = moved_ = world_.Now();
  TellWork();
  const double link =
      std::max(0.0, SecondsBetween(sent, now) - receipt.waited_seconds - receipt.seconds);
  for (BusyTime* const lane : {&link_, &world_.counts().link}) {
    lane->Add(sent, sent + NanosOf(link));
  }
  CutMeter& meter = world_.meter();
  meter.OnThrough(bytes, sent, sent + NanosOf(link), NanosOf(world_.RoundTripSeconds()));
  if (receipt.rows == 0) return;
  for (BusyTime* const lane : {&cloud_, &world_.counts().cloud}) {
    lane->Add(now - NanosOf(receipt.seconds), now);
  }
  meter.OnCloud(receipt.rows, world_.layers() - ask_.plan.layer, receipt.waited_seconds,
                receipt.seconds, now);
}

void CutRun::Report() {
  if (!answered_ || flow_.under_way() > 0) return;
  world_.Report(fmt::format(
      "a prompt of {} tokens, cut before layer {}, {} at a time, took {:.3f} s: the end computed "
      "{:.3f} s of it, the link was busy {:.3f} s, the cloud {:.3f} s",
      tokens_.size(), ask_.plan.layer, ask_.plan.chunk, SecondsBetween(begun_, ended_at_),
      end_.seconds(), link_.seconds(), cloud_.seconds()));
}

Status CutRun::OfTheEnd(const Status& why) {
  const bool reads_as_the_clouds =
      why.code() == Code::kResourceExhausted || why.code() == Code::kFailedPrecondition;
  return reads_as_the_clouds ? Error(Code::kUnavailable, "{}", why.message()) : why;
}

void CutRun::EndCut(const Status& status) {
  if (std::exchange(over_, true)) return;
  answered_ = status.ok();
  ended_at_ = world_.Now();
  lower_ = {};
  computed_.clear();
  rows_waiting_.clear();
  keys_waiting_.clear();
  refused_.clear();
  if (!answered_) {
    for (const auto& [id, sending] : std::exchange(sending_, {})) {
      sending.stop();
      world_.meter().OnLost();
    }
  }
  if (answered_) ++world_.counts().answered;
  if (answered_ && ask_.plan.prefix > 0) ++world_.counts().went_on;
  world_.OnCutOver(status);
  Report();
}

// From here on it is an answer like any other.
void CutRun::OnFirstToken() { EndCut(OkStatus()); }

// Says so to who asked only if it did not do.
void CutRun::End(const Status& status) {
  const auto self = shared_from_this();
  if (std::exchange(ended_, true)) return;
  if (!over_ && !status.ok()) ++world_.counts().failed;
  EndCut(status);
  if (const auto stop = std::exchange(stop_far_, {}); stop) stop();
  if (!status.ok()) events_.on_failure(status);
}

void CutRun::Stop() {
  if (std::exchange(ended_, true)) return;
  EndCut(Status(Code::kCancelled, "stopped"));
  if (const auto stop = std::exchange(stop_far_, {}); stop) stop();
}

}  // namespace troupe
