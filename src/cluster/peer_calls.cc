#include "cluster/peer_calls.h"

#include <algorithm>
#include <cstring>
#include <random>
#include <utility>

#include "base/check.h"
#include "base/log.h"

namespace troupe {
namespace {

// Calls that nobody waits for any more: their answers still tell how fast a peer is.
constexpr std::size_t kMostRemembered = 64;
constexpr std::uint32_t kNoRow = ~0u;
constexpr std::size_t kMostToCheck = 8;  // at a time: what passes leave no time for is not checked
constexpr std::size_t kMostRowsToCheck = 8;  // of an answer: a liar is found by any of them

// A peer that knew which answers are checked could lie in the others.
std::uint64_t Unforeseen() {
  std::random_device random;
  return (std::uint64_t{random()} << 32) | random();
}

// None would mean for ever.
std::uint32_t AtLeastAMicro(Nanos time) {
  return static_cast<std::uint32_t>(std::clamp<Nanos>(time / 1000, 1, 0xffffffff));
}

}  // namespace

PeerCalls::PeerCalls(CallShape shape, PeerDirectory& directory, SendFrame send, const Clock& clock,
                     const Options& options)
    : shape_(std::move(shape)),
      directory_(directory),
      send_(std::move(send)),
      clock_(clock),
      options_(options),
      random_(options.verify > 0 ? Unforeseen() : 1),
      flow_(options.rules),
      holders_(shape_.grid.Count()),
      activity_(shape_.grid) {}

void PeerCalls::LookAtPeers() {
  const std::uint64_t version = directory_.version();
  if (version == seen_) return;
  seen_ = version;
  const std::vector<PeerEntry> entries = directory_.Entries();
  for (std::size_t i = 0; i < entries.size(); ++i) {
    if (i == peers_.size()) {
      peers_.push_back({.name = entries[i].name, .speed = nullptr, .held = {}});
      peers_[i].speed =
          std::make_unique<PeerSpeed>(peers_[i].name, entries[i].round_trip_seconds, clock_.Now());
    }
    if (peers_[i].link != entries[i].link && entries[i].link != 0) {
      peers_[i].speed->OnGreeted(entries[i].round_trip_seconds);
    }
    peers_[i].link = entries[i].link;
    peers_[i].start = entries[i].start;
    peers_[i].held = entries[i].held;
  }
  for (std::uint32_t layer = 0; layer < shape_.grid.layers; ++layer) {
    for (std::uint32_t expert = 0; expert < shape_.grid.experts; ++expert) {
      const ExpertId id{layer, expert};
      std::vector<PeerIndex>& holders = holders_[shape_.grid.Index(id)];
      holders.clear();
      for (PeerIndex peer = 0; peer < peers_.size(); ++peer) {
        if (peers_[peer].link != 0 && peers_[peer].held.Has(id)) holders.push_back(peer);
      }
    }
  }
}

std::span<const Place> PeerCalls::Places() {
  LookAtPeers();
  places_.clear();
  const Nanos now = clock_.Now();
  for (const Peer& peer : peers_) places_.push_back(peer.speed->Expected(now));
  return places_;
}

std::span<const std::uint32_t> PeerCalls::HoldersOf(ExpertId id) const {
  return holders_[shape_.grid.Index(id)];
}

void PeerCalls::OnAsked(const ExpertBatch& batch) {
  for (const ExpertDemand& demand : batch.demands) {
    activity_.Add({batch.layer, demand.expert}, demand.tokens);
  }
}

void PeerCalls::Ask(const ExpertBatch& batch, std::span<const AnsweredElsewhere> misses) {
  Forget();
  Drain();
  TellFigures();
  batch_ = batch;
  std::vector<std::vector<PeerIndex>> choices;
  std::vector<AskedExpert> asked;
  for (const AnsweredElsewhere& miss : misses) {
    const ExpertId id{batch.layer, miss.expert};
    std::vector<PeerIndex> holders = holders_[shape_.grid.Index(id)];
    std::ranges::sort(holders, {}, [&](PeerIndex peer) {
      const Place& place = places_[peer];
      return std::pair(peer != miss.place, place.queued_seconds + place.latency_seconds);
    });
    choices.push_back(std::move(holders));
  }
  for (std::size_t i = 0; i < misses.size(); ++i) {
    asked.push_back({.expert = misses[i].expert,
                     .rows = static_cast<std::uint32_t>(batch.RowsOf(misses[i].expert).size()),
                     .holders = choices[i],
                     .load_seconds = misses[i].load_seconds});
  }
  flow_.Ask(asked, places_);
  Dispatch();
}

void PeerCalls::TellFigures() {
  std::vector<MeasuredLink> links;
  for (const Peer& peer : peers_) {
    if (peer.link == 0) continue;
    links.push_back({.peer = peer.name,
                     .round_trip_seconds = peer.speed->Measured().latency_seconds,
                     .row_seconds = peer.speed->way_row_seconds()});
  }
  const MutexLock lock(mu_);
  links_ = std::move(links);
}

void PeerCalls::WriteRow(std::uint32_t row, std::span<std::byte> to) const {
  if (shape_.forms[batch_.layer] == RowForm::kInt8) {
    PackRow({batch_.input.Groups(row), shape_.width / kGroupCols}, to);
  } else {
    std::memcpy(to.data(), batch_.input.Values(row), to.size());
  }
}

// Each row once, however many of the call's experts want it.
std::vector<std::byte> PeerCalls::FrameOf(const CallToSend& call) {
  place_of_.assign(batch_.input.tokens, kNoRow);
  rows_.clear();
  std::vector<std::vector<std::uint16_t>> rows_of;
  PeerAsk ask{.call = call.call,
              .layer = static_cast<std::uint16_t>(batch_.layer),
              .deadline_micros = AtLeastAMicro(call.given_up_after),
              .experts = {},
              .rows = {.form = shape_.forms[batch_.layer], .width = shape_.width, .bytes = {}}};
  for (const std::uint32_t expert : call.experts) {
    for (const std::uint32_t row : batch_.RowsOf(expert)) {
      if (place_of_[row] != kNoRow) continue;
      place_of_[row] = 0;
      rows_.push_back(row);
    }
  }
  std::ranges::sort(rows_);
  for (std::size_t i = 0; i < rows_.size(); ++i) {
    place_of_[rows_[i]] = static_cast<std::uint32_t>(i);
  }
  for (const std::uint32_t expert : call.experts) {
    std::vector<std::uint16_t>& rows = rows_of.emplace_back();
    for (const std::uint32_t row : batch_.RowsOf(expert)) {
      rows.push_back(static_cast<std::uint16_t>(place_of_[row]));
    }
  }
  for (std::size_t i = 0; i < call.experts.size(); ++i) {
    ask.experts.push_back(
        {.expert = static_cast<std::uint16_t>(call.experts[i]), .rows = rows_of[i]});
  }
  ask.rows.count = rows_.size();
  RowFrame frame = MakeFrame(ask);
  for (std::size_t i = 0; i < rows_.size(); ++i) WriteRow(rows_[i], frame.Row(i));
  return std::move(frame).Take();
}

// Sends what is to be sent; a peer that cannot be sent to is as good as gone.
void PeerCalls::Dispatch() {
  for (;;) {
    const std::vector<CallToSend> calls = flow_.TakeCalls(clock_.Now());
    if (calls.empty()) break;
    for (const CallToSend& call : calls) {
      SentCall sent{
          .call = call.call,
          .peer = call.peer,
          .layer = layer_,
          .sent = clock_.Now(),
          .times = {.experts = static_cast<std::uint32_t>(call.experts.size()), .rows = 0},
          .experts = call.experts};
      for (const std::uint32_t expert : call.experts) {
        sent.times.rows += static_cast<std::uint32_t>(batch_.RowsOf(expert).size());
      }
      const LinkId link = peers_[call.peer].link;
      if (link == 0 || !send_(link, FrameOf(call)).ok()) {
        flow_.OnRefused(call.call);
        continue;
      }
      if (sent_.size() >= kMostRemembered) sent_.erase(sent_.begin());
      sent_.push_back(std::move(sent));
    }
  }
  const std::vector<std::uint32_t> to_load = flow_.TakeToLoad();
  to_load_.insert(to_load_.end(), to_load.begin(), to_load.end());
  SendCancels();
}

// What they still answer tells how fast they are all the same.
void PeerCalls::SendCancels() {
  for (const CallToCancel& cancel : flow_.TakeCancels()) {
    const LinkId link = peers_[cancel.peer].link;
    if (link != 0)
      (void)send_(link, Encode(PeerCancel{cancel.call}));  // who has gone need not know
  }
}

bool PeerCalls::Fits(const SentCall& call, const PeerAnswer& answer) const {
  if (answer.rows.form != RowForm::kFloat) return false;
  if (!answer.experts.empty() && answer.rows.width != shape_.width) return false;
  return std::ranges::all_of(answer.experts, [&](const ExpertRows& got) {
    return std::ranges::find(call.experts, got.expert) != call.experts.end() &&
           (call.layer != layer_ || batch_.RowsOf(got.expert).size() == got.rows);
  });
}

bool PeerCalls::OnAnswer(const Event& event, const PeerAnswer& answer) {
  const auto found = std::ranges::find(sent_, answer.call, &SentCall::call);
  if (found == sent_.end() || peers_[found->peer].link != event.link) return false;
  SentCall& call = *found;
  if (!Fits(call, answer)) {
    LogWarning("peer {}: an answer that does not fit what was asked", peers_[call.peer].name);
    OnRefused(answer.call);
    return false;
  }
  bool used = false;
  std::size_t row = 0;
  for (const ExpertRows& got : answer.experts) {
    std::erase(call.experts, got.expert);
    if (flow_.OnAnswered(answer.call, got.expert)) {
      used = true;
      answered_.push_back(
          {.expert = got.expert,
           .values = {answer.rows.Floats(row).data(), std::size_t{got.rows} * shape_.width}});
      if (options_.verify > 0 && random_.Uniform() < options_.verify)
        MaybeKeep(call, answered_.back());
    }
    row += got.rows;
  }
  call.times.computed += answer.computed_micros * 1e-6;
  call.times.waited = std::max(call.times.waited, answer.waited_micros * 1e-6);
  if (!answer.last) return used;
  call.times.seconds = static_cast<double>(event.at - call.sent) * 1e-9;
  // Whatever the peer says, it was not longer than here.
  call.times.waited = std::min(call.times.waited, call.times.seconds);
  call.times.computed = std::min(call.times.computed, call.times.seconds - call.times.waited);
  peers_[call.peer].speed->OnAnswered(call.times, event.at);
  answered_seconds_.Add(call.times);
  OnRefused(answer.call);  // of what it still owes
  return used;
}

void PeerCalls::MaybeKeep(const SentCall& call, const Rows& answer) {
  const ExpertId id{batch_.layer, answer.expert};
  const std::span<const std::uint32_t> all = batch_.RowsOf(answer.expert);
  const std::span<const std::uint32_t> rows = all.first(std::min(all.size(), kMostRowsToCheck));
  SpotCheck check{.start = peers_[call.peer].start,
                  .id = id,
                  .form = shape_.forms[batch_.layer],
                  .rows = rows.size(),
                  .asked = {},
                  .answer = {}};
  check.answer.assign(
      answer.values.begin(),
      answer.values.begin() + static_cast<std::ptrdiff_t>(rows.size() * shape_.width));
  const std::size_t bytes = WireRowBytes(check.form, shape_.width);
  check.asked.resize(rows.size() * bytes);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    WriteRow(rows[i], std::span(check.asked).subspan(i * bytes, bytes));
  }
  const MutexLock lock(mu_);
  if (checks_.size() < kMostToCheck) checks_.push_back(std::move(check));
}

std::vector<SpotCheck> PeerCalls::TakeChecks() {
  const MutexLock lock(mu_);
  return std::exchange(checks_, {});
}

void PeerCalls::OnRefused(PeerCallId call) {
  flow_.OnRefused(call);
  std::erase_if(sent_, [call](const SentCall& sent) { return sent.call == call; });
}

void PeerCalls::Handle(Event& event) {
  if (event.gone) {
    const PeerIndex peer = *event.gone;
    flow_.OnLost(peer);
    std::erase_if(sent_, [peer](const SentCall& sent) { return sent.peer == peer; });
    return;
  }
  const Result<PeerMessageKind> kind = KindOfFrame(event.frame);
  if (!kind.ok()) return;
  if (*kind == PeerMessageKind::kAskRefused) {
    if (const auto refused = DecodePeerAskRefused(event.frame); refused.ok()) {
      const auto sent = std::ranges::find(sent_, refused->call, &SentCall::call);
      if (sent == sent_.end() || peers_[sent->peer].link != event.link) return;
      if (refused->reason == PeerAskRefused::Reason::kBusy) {
        peers_[sent->peer].speed->OnLate(static_cast<double>(event.at - sent->sent) * 1e-9,
                                         event.at);
      }
      OnRefused(refused->call);
    }
    return;
  }
  if (const auto answer = DecodePeerAnswer(event.frame); answer.ok()) {
    if (OnAnswer(event, *answer)) kept_.push_back(std::move(event.frame));
  }
}

void PeerCalls::SeeWhoIsLate(Nanos now) {
  const auto next = flow_.NextTime();
  if (!next || *next > now) return;
  const std::vector<PeerCallId> late = flow_.OnTime(now);
  for (const SentCall& call : sent_) {
    if (std::ranges::find(late, call.call) == late.end()) continue;
    peers_[call.peer].speed->OnLate(static_cast<double>(now - call.sent) * 1e-9, now);
  }
}

void PeerCalls::Drain() {
  kept_.clear();
  answered_.clear();
  {
    const MutexLock lock(mu_);
    events_.swap(inbox_);
    inbox_bytes_ = 0;
  }
  for (Event& event : events_) Handle(event);
  events_.clear();
}

PeerCalls::News PeerCalls::Take() {
  Drain();
  SeeWhoIsLate(clock_.Now());
  Dispatch();
  told_to_load_ = std::exchange(to_load_, {});
  {
    const MutexLock lock(mu_);
    counters_ = flow_.counters();
    seconds_ = answered_seconds_;
  }
  return {.answered = answered_, .to_load = told_to_load_};
}

void PeerCalls::Wait(std::optional<Nanos> longest) {
  if (!to_load_.empty()) return;
  std::optional<Nanos> until;
  const Nanos now = clock_.Now();
  if (longest) until = now + *longest;
  if (const auto next = flow_.NextTime()) until = std::min(until.value_or(*next), *next);
  const MutexLock lock(mu_);
  while (inbox_.empty()) {
    if (!until) {
      came_.Wait(mu_);
      continue;
    }
    const Nanos left = *until - clock_.Now();
    if (left <= 0) return;
    came_.WaitFor(mu_, left);
  }
}

void PeerCalls::Forget() {
  ++layer_;  // what still comes does not belong to the batch, whose memory others use now
  flow_.Forget();
  SendCancels();
  to_load_.clear();
}

void PeerCalls::OnFrame(LinkId link, std::vector<std::byte> frame) {
  const Nanos now = clock_.Now();
  const MutexLock lock(mu_);
  const std::size_t bytes = sizeof(Event) + frame.size();
  if (inbox_bytes_ + bytes > options_.most_unread) return;
  inbox_bytes_ += bytes;
  inbox_.push_back({.gone = {}, .link = link, .at = now, .frame = std::move(frame)});
  came_.NotifyOne();
}

void PeerCalls::OnGone(PeerIndex peer) {
  const MutexLock lock(mu_);
  inbox_.push_back({.gone = peer, .frame = {}});
  came_.NotifyOne();
}

CallCounters PeerCalls::counters() const {
  const MutexLock lock(mu_);
  return counters_;
}

CallSeconds PeerCalls::seconds() const {
  const MutexLock lock(mu_);
  return seconds_;
}

std::vector<MeasuredLink> PeerCalls::Links() const {
  const MutexLock lock(mu_);
  return links_;
}

}  // namespace troupe
