#include "cluster/step_fetcher.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include "cluster/face/node_buffers.h"
#include "cluster/plan/coming_speed.h"
#include "cluster/wire/fetch.h"
#include "cluster/wire/message_kind.h"
#include "store/container_format.h"

namespace troupe {
namespace {

// Times the seconds that such a link takes with its rests: then it has become slower.
constexpr double kPatience = 4;
constexpr Nanos kAtLeast = 1'000'000'000;

}  // namespace

StepFetcher::StepFetcher(Model model, const PeerDirectory& directory, SendFrame send)
    : model_(std::move(model)),
      directory_(directory),
      send_(std::move(send)),
      fetch_([](std::span<const std::byte> bytes) { return ContainerChecksum(bytes); }) {}

std::vector<std::uint32_t> StepFetcher::Begin(const HoldStep& step,
                                              std::span<const MeasuredLink> links,
                                              double disk_bytes_per_second) {
  const auto row_bytes = static_cast<double>(model_.row_bytes);
  std::map<std::string, double> speeds;
  for (const MeasuredLink& link : links) {
    // It gives at least a row in an empty call's time.
    const double seconds =
        link.byte_seconds > 0 ? row_bytes * link.byte_seconds : link.round_trip_seconds;
    if (seconds > 0) speeds[link.peer] = row_bytes / seconds;
  }
  std::vector<PeerEntry> peers = directory_.Entries();
  std::erase_if(peers, [&](const PeerEntry& peer) {
    return peer.link == 0 || disk_bytes_per_second <= 0 ||
           speeds[peer.name] < kLeastOfDisk * disk_bytes_per_second;
  });
  std::ranges::sort(peers, {}, [&](const PeerEntry& peer) { return -speeds[peer.name]; });
  std::vector<ExpertFetch::Wanted> wanted;
  std::vector<std::uint32_t> coming;
  for (const std::uint32_t expert : step.experts) {
    if (wanted.size() == kExpertsFetched) break;  // the memory of no more is in the plan
    const ExpertId id{step.layer, expert};
    const auto checksum = model_.checksum_of(id);
    if (!checksum || peers.empty()) break;
    ExpertFetch::Wanted one{
        .id = id, .bytes = model_.bytes_of(id.layer), .checksum = *checksum, .sources = {}};
    const double seconds =
        2 * static_cast<double>(one.bytes) / (kLeastOfDisk * disk_bytes_per_second);
    one.longest = kAtLeast + static_cast<Nanos>(kPatience * seconds * 1e9);
    for (const PeerEntry& peer : peers) {
      if (peer.held.Has(id)) one.sources.push_back(peer.link);
    }
    if (!one.sources.empty()) {
      wanted.push_back(std::move(one));
      coming.push_back(expert);
    }
    if (wanted.empty()) break;  // the first one is read, and others with it
  }
  active_ = !wanted.empty();
  if (active_) fetch_.Begin(std::move(wanted));
  return coming;
}

std::optional<FetchedExperts> StepFetcher::OnTime(Nanos now) {
  if (!active_) return std::nullopt;
  while (const auto request = fetch_.Next(now)) {
    const PeerFetch fetch{.id = request->number, .expert = request->id, .offset = request->offset};
    if (!send_(request->source, Encode(fetch)).ok()) fetch_.OnLost(request->source);
  }
  std::optional<FetchedExperts> done = fetch_.TakeDone();
  active_ = !done;
  return done;
}

std::optional<Nanos> StepFetcher::NextTime() const {
  return active_ ? fetch_.NextTime() : std::nullopt;
}

void StepFetcher::OnFrame(LinkId link, std::span<const std::byte> frame, Nanos now) {
  const Result<PeerMessageKind> kind = KindOfFrame(frame);
  if (!kind.ok()) return;
  if (*kind == PeerMessageKind::kFetchRefused) {
    if (const auto refused = DecodePeerFetchRefused(frame); refused.ok()) {
      fetch_.OnRefused(link, refused->id);
    }
    return;
  }
  const Result<PeerPiece> piece = DecodePeerPiece(frame);
  if (!piece.ok()) return;  // as if it had not come
  fetch_.OnPiece(link,
                 {.number = piece->id,
                  .id = piece->expert,
                  .total = piece->total,
                  .offset = piece->offset,
                  .checksum = piece->hash == kNoHash ? std::nullopt : std::optional(piece->hash),
                  .data = piece->data},
                 now);
}

}  // namespace troupe
