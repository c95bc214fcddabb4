// What peers answer: what a pass is given of it, what is learnt from it, and what follows from
// silence. peer_calls.cc asks.
#include <algorithm>
#include <utility>

#include "cluster/answer_rows.h"
#include "cluster/peer_calls.h"

namespace troupe {
bool PeerCalls::Fits(const SentCall& call, const PeerAnswer& answer) const {
  if (answer.rows.form != call.answer) return false;
  if (!answer.experts.empty() && answer.rows.width != shape_.width) return false;
  return std::ranges::all_of(answer.experts, [&](const ExpertRows& got) {
    return std::ranges::find(call.experts, got.expert) != call.experts.end() &&
           (call.layer != layer_ || batch_.RowsOf(got.expert).size() == got.rows);
  });
}

std::span<const float> PeerCalls::FloatsOf(const WireRows& rows, std::size_t first,
                                           std::size_t count) {
  if (rows.form == RowForm::kFloat) {
    return {rows.Floats(first).data(), count * rows.width};
  }
  std::vector<float>& read = read_.emplace_back(count * rows.width);
  for (std::size_t i = 0; i < count; ++i) {
    ReadAnswerRow(rows.form, rows.Row(first + i),
                  std::span(read).subspan(i * rows.width, rows.width));
  }
  return read;
}

bool PeerCalls::OnAnswer(const Event& event, const PeerAnswer& answer) {
  const auto found = std::ranges::find(sent_, answer.call, &SentCall::call);
  if (found == sent_.end() || peers_[found->peer].link != event.link) return false;
  SentCall& call = *found;
  if (!Fits(call, answer)) {
    OnMalformed(event.link, "does not fit what was asked");
    OnRefused(answer.call);
    return false;
  }
  bool used = false;
  std::size_t row = 0;
  for (const ExpertRows& got : answer.experts) {
    std::erase(call.experts, got.expert);
    if (flow_.OnAnswered(answer.call, got.expert)) {
      used = true;
      answered_.push_back({.expert = got.expert,
                           .form = answer.rows.form,
                           .values = FloatsOf(answer.rows, row, got.rows)});
      if (options_.verify > 0 || suspects_) MaybeKeep(call, answered_.back());
    }
    row += got.rows;
  }
  call.times.computed += answer.computed_micros * 1e-6;
  call.times.waited = std::max(call.times.waited, answer.waited_micros * 1e-6);
  if (!answer.last) return used;
  call.times.seconds = static_cast<double>(event.at - call.sent) * 1e-9;
  if (late_.OnInTime(call.peer, event.at)) {
    Remark(fmt::format("node {} answers in time again", peers_[call.peer].name));
  }
  // Whatever the peer says, it was not longer than here.
  call.times.waited = std::min(call.times.waited, call.times.seconds);
  call.times.computed = std::min(call.times.computed, call.times.seconds - call.times.waited);
  peers_[call.peer].speed->OnAnswered(call.times, event.at);
  answered_seconds_.Add(call.times);
  OnRefused(answer.call);  // of what it still owes
  return used;
}

void PeerCalls::MaybeKeep(const SentCall& call, const Rows& answer) {
  const std::span<const std::uint32_t> all = batch_.RowsOf(answer.expert);
  const RowForm form = shape_.forms[batch_.layer];
  const std::size_t bytes = WireRowBytes(form, shape_.width);
  std::vector<std::uint32_t> drawn;
  {
    const MutexLock lock(mu_);
    drawn = checks_.Draw(peers_[call.peer].start, all.size(), bytes + shape_.width * sizeof(float));
  }
  if (drawn.empty()) return;
  SpotCheck check{.start = peers_[call.peer].start,
                  .id = {batch_.layer, answer.expert},
                  .form = form,
                  .rows = drawn.size(),
                  .asked = std::vector<std::byte>(drawn.size() * bytes),
                  .answer_form = answer.form,
                  .answer = {}};
  check.answer.reserve(drawn.size() * shape_.width);
  for (std::size_t i = 0; i < drawn.size(); ++i) {
    WriteRow(all[drawn[i]], std::span(check.asked).subspan(i * bytes, bytes));
    const auto values = answer.values.subspan(drawn[i] * shape_.width, shape_.width);
    check.answer.insert(check.answer.end(), values.begin(), values.end());
  }
  const MutexLock lock(mu_);
  checks_.Keep(std::move(check));
}

void PeerCalls::Remark(std::string text) {
  constexpr std::size_t kMost = 100;  // should nobody take them
  const MutexLock lock(mu_);
  if (remarks_.size() < kMost) remarks_.push_back(std::move(text));
}

std::vector<std::string> PeerCalls::TakeRemarks() {
  const MutexLock lock(mu_);
  return std::exchange(remarks_, {});
}

std::vector<SpotCheck> PeerCalls::TakeChecks() {
  const MutexLock lock(mu_);
  return checks_.Take();
}

// Two that work together could have this node remember a start for each time that one of them
// starts anew and the other accuses it: of each peer the life that is here counts alone.
void PeerCalls::Suspect(std::uint64_t start) {
  std::vector<std::uint64_t> lives = {start};
  for (const PeerEntry& peer : directory_.Entries()) lives.push_back(peer.start);
  suspects_ = true;
  const MutexLock lock(mu_);
  checks_.Suspect(start);
  checks_.ForgetSuspectsBut(lives);
}

std::size_t PeerCalls::suspects() const {
  const MutexLock lock(mu_);
  return checks_.suspects();
}

std::uint64_t PeerCalls::rows_not_checked() const {
  const MutexLock lock(mu_);
  return checks_.left_out();
}

void PeerCalls::OnRefused(PeerCallId call) {
  flow_.OnRefused(call);
  std::erase_if(sent_, [call](const SentCall& sent) { return sent.call == call; });
}

void PeerCalls::OnMalformed(LinkId link, std::string_view how) {
  {
    const MutexLock lock(mu_);
    ++malformed_;
  }
  const auto peer = std::ranges::find(peers_, link, &Peer::link);
  if (peer == peers_.end() || std::exchange(peer->malformed_of, peer->start) == peer->start) return;
  Remark(fmt::format("an answer of node {} {}: it counts for nothing", peer->name, how));
}

void PeerCalls::Handle(Event& event) {
  if (event.gone) {
    const PeerIndex peer = *event.gone;
    flow_.OnLost(peer);
    std::erase_if(sent_, [peer](const SentCall& sent) { return sent.peer == peer; });
    return;
  }
  const Result<PeerMessageKind> kind = KindOfFrame(event.frame);
  if (!kind.ok()) return OnMalformed(event.link, "cannot be read");
  if (*kind == PeerMessageKind::kAskRefused) {
    if (const auto refused = DecodePeerAskRefused(event.frame); refused.ok()) {
      const auto sent = std::ranges::find(sent_, refused->call, &SentCall::call);
      if (sent == sent_.end() || peers_[sent->peer].link != event.link) return;
      if (refused->reason == PeerAskRefused::Reason::kBusy) {
        peers_[sent->peer].speed->OnLate(static_cast<double>(event.at - sent->sent) * 1e-9,
                                         event.at);
        flow_.OnBusy(refused->call, clock_.Now());
      }
      OnRefused(refused->call);
    } else {
      OnMalformed(event.link, "cannot be read");
    }
    return;
  }
  const auto answer = DecodePeerAnswer(event.frame);
  if (!answer.ok()) return OnMalformed(event.link, "cannot be read");
  if (OnAnswer(event, *answer)) kept_.push_back(std::move(event.frame));
}

void PeerCalls::SeeWhoIsLate(Nanos now) {
  const auto next = flow_.NextTime();
  if (!next || *next > now) return;
  const std::vector<PeerCallId> late = flow_.OnTime(now);
  for (const SentCall& call : sent_) {
    if (std::ranges::find(late, call.call) == late.end()) continue;
    peers_[call.peer].speed->OnLate(static_cast<double>(now - call.sent) * 1e-9, now);
    if (late_.OnLate(call.peer, now)) {
      Remark(fmt::format("node {} is late again and again: others and the disk answer in its place",
                         peers_[call.peer].name));
    }
  }
}

void PeerCalls::Drain() {
  kept_.clear();
  read_.clear();
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
  has_begun_ = false;
  in_place_of_disk_.clear();
}

void PeerCalls::OnFrame(LinkId link, std::vector<std::byte> frame) {
  const Nanos now = clock_.Now();
  const MutexLock lock(mu_);
  const std::size_t bytes = sizeof(Event) + frame.size();
  if (inbox_bytes_ + bytes > options_.most_unread) {
    ++dropped_;
    return;
  }
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
  CallCounters counters = counters_;
  counters.dropped = dropped_;
  counters.malformed = malformed_;
  return counters;
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
