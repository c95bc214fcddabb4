#include "cluster/peer_calls.h"

#include <algorithm>
#include <cstring>
#include <random>
#include <utility>

namespace troupe {
namespace {

// With calls that nobody waits for any more: their answers still tell how fast a peer is.
constexpr std::size_t kMostRemembered = 64;
constexpr std::uint32_t kNoRow = ~0u;
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
      flow_(options.rules),
      holders_(shape_.grid.Count()),
      activity_(shape_.grid),
      checks_(options.verify, options.most_to_check, options.seed ? *options.seed : Unforeseen()) {}

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
  const std::size_t row_bytes = WireRowBytes(answers_, shape_.width);
  for (const Peer& peer : peers_) places_.push_back(peer.speed->Expected(now, row_bytes));
  return places_;
}

std::span<const std::uint32_t> PeerCalls::HoldersOf(ExpertId id) const {
  return holders_[shape_.grid.Index(id)];
}

void PeerCalls::OnAsked(const ExpertBatch& batch, RowForm answers) {
  answers_ = answers;
  for (const ExpertDemand& demand : batch.demands) {
    activity_.Add({batch.layer, demand.expert}, demand.tokens);
  }
}

void PeerCalls::Begin(const ExpertBatch& batch) {
  Forget();
  Drain();
  TellFigures();
  batch_ = batch;
  has_begun_ = true;
}

// `first` goes before all others.
std::vector<PeerIndex> PeerCalls::HoldersByCost(ExpertId id, std::optional<PeerIndex> first) const {
  std::vector<PeerIndex> holders = holders_[shape_.grid.Index(id)];
  std::ranges::sort(holders, {}, [&](PeerIndex peer) {
    const Place& place = places_[peer];
    return std::pair(peer != first, place.queued_seconds + place.latency_seconds);
  });
  return holders;
}

void PeerCalls::Ask(const ExpertBatch& batch, std::span<const AnsweredElsewhere> misses) {
  Begin(batch);
  std::vector<std::vector<PeerIndex>> choices;
  std::vector<AskedExpert> asked;
  for (const AnsweredElsewhere& miss : misses) {
    choices.push_back(HoldersByCost({batch.layer, miss.expert}, miss.place));
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

bool PeerCalls::AskInPlaceOfDisk(const ExpertBatch& batch, std::uint32_t expert) {
  if (!has_begun_) {
    (void)Places();
    Begin(batch);
    flow_.Ask({}, places_);
  }
  if (std::ranges::find(in_place_of_disk_, expert) != in_place_of_disk_.end()) return false;
  in_place_of_disk_.push_back(expert);
  const std::vector<PeerIndex> holders = HoldersByCost({batch.layer, expert}, std::nullopt);
  if (holders.empty()) return false;
  flow_.AskInPlaceOfDisk({.expert = expert,
                          .rows = static_cast<std::uint32_t>(batch.RowsOf(expert).size()),
                          .holders = holders});
  Dispatch();
  return true;
}

void PeerCalls::OnLoaded(std::uint32_t expert) {
  flow_.OnLoaded(expert);
  SendCancels();
}

void PeerCalls::TellFigures() {
  std::vector<MeasuredLink> links;
  for (const Peer& peer : peers_) {
    if (peer.link == 0) continue;
    links.push_back({.peer = peer.name,
                     .round_trip_seconds = peer.speed->round_trip_seconds(),
                     .byte_seconds = peer.speed->byte_seconds()});
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
              .answer = answers_,
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

// Of the layer under way all, or their answers would be lost: a layer asks each holder of an expert
// for it at most twice. Those of layers before are the first ones.
void PeerCalls::Remember(SentCall sent) {
  while (sent_.size() >= kMostRemembered && sent_.front().layer != layer_) {
    sent_.erase(sent_.begin());
  }
  sent_.push_back(std::move(sent));
}

// Sends what is to be sent; a peer that cannot be sent to is as good as gone.
void PeerCalls::Dispatch() {
  for (;;) {
    const std::vector<CallToSend> calls = flow_.TakeCalls(clock_.Now());
    if (calls.empty()) break;
    for (const CallToSend& call : calls) {
      SentCall sent{.call = call.call,
                    .peer = call.peer,
                    .layer = layer_,
                    .sent = clock_.Now(),
                    .answer = answers_,
                    .times = {.experts = static_cast<std::uint32_t>(call.experts.size()),
                              .rows = 0,
                              .row_bytes = WireRowBytes(answers_, shape_.width)},
                    .experts = call.experts};
      for (const std::uint32_t expert : call.experts) {
        sent.times.rows += static_cast<std::uint32_t>(batch_.RowsOf(expert).size());
      }
      const LinkId link = peers_[call.peer].link;
      if (link == 0 || !send_(link, FrameOf(call)).ok()) {
        flow_.OnRefused(call.call);
        continue;
      }
      Remember(std::move(sent));
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

}  // namespace troupe
