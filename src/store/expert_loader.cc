#include "store/expert_loader.h"

#include <algorithm>
#include <iterator>
#include <limits>
#include <tuple>
#include <utility>

#include "store/arrival_order.h"

namespace troupe {
namespace {

constexpr std::uint64_t kAlign = kDirectAlignment.count();

// While the loop waits; a few tens of microseconds.
constexpr std::uint64_t kComparedAtOnce = (64_KiB).count();

// While kernels run: a piece takes some hundred microseconds, and to ask for it one.
constexpr Nanos kServedEvery = 50'000;

std::uint64_t AlignDown(std::uint64_t n) { return n & ~(kAlign - 1); }

// A load has at most three extents, and direct reads widen each at both ends.
std::uint64_t StagingStride(Bytes largest_expert) {
  return AlignUp(largest_expert.count(), kAlign) + 3 * 2 * kAlign;
}

}  // namespace

struct ExpertLoader::Load {
  ExpertId id;
  std::span<std::byte> slot;
  ExpertStore* store = nullptr;
  Urgency urgency = Urgency::kDemand;
  std::uint64_t number = 0;  // of its request
  std::byte* staging = nullptr;
  bool started = false;
  std::vector<Extent> extents;
  std::vector<std::span<const std::byte>> parts;  // the extents' bytes in memory
  std::deque<std::size_t> unsubmitted;            // pieces
  std::size_t outstanding = 0;                    // pieces submitted, or to be tried again
  std::uint64_t left = 0;                         // bytes that have not come
  ArrivalOrder order;
  std::unique_ptr<ArrivalCheck> check;  // null: it need not be compared
  std::uint64_t compared = 0, compared_early = 0;
  Status status;
};

Bytes ExpertLoader::StagingBytes(bool direct, Bytes largest_expert, const LoaderOptions& options) {
  if (direct) return Bytes();
  // Whole huge pages become resident with the first byte.
  return Bytes(AlignUp(options.staging * StagingStride(largest_expert), kHugePage.count()));
}

Result<std::unique_ptr<ExpertLoader>> ExpertLoader::Create(ExpertStore& store,
                                                           std::unique_ptr<AsyncReader> reader,
                                                           Bytes largest_expert, ThreadPool& pool,
                                                           const Clock& clock,
                                                           const LoaderOptions& options) {
  TROUPE_CHECK(options.piece.count() >= kAlign && options.piece.count() % kAlign == 0);
  TROUPE_CHECK(options.prefetch_piece.count() >= kAlign &&
               options.prefetch_piece.count() % kAlign == 0);
  TROUPE_CHECK(options.staging >= 1);
  std::unique_ptr<ExpertLoader> loader(
      new ExpertLoader(store, std::move(reader), pool, clock, options));
  const Bytes staging = StagingBytes(store.direct(), largest_expert, options);
  if (staging == Bytes()) return loader;
  // Huge pages for the same reason as the slots have them: a read into one is few segments.
  TROUPE_ASSIGN_OR_RETURN(
      loader->staging_,
      AlignedBuffer::Allocate(staging, {.alignment = kHugePage, .huge_pages = true}));
  loader->staging_stride_ = StagingStride(largest_expert);
  for (std::uint32_t i = options.staging; i > 0; --i) {
    loader->free_staging_.push_back(loader->staging_.data() + (i - 1) * loader->staging_stride_);
  }
  loader->reader_->RegisterMemory(loader->staging_.bytes());
  return loader;
}

ExpertLoader::ExpertLoader(ExpertStore& store, std::unique_ptr<AsyncReader> reader,
                           ThreadPool& pool, const Clock& clock, const LoaderOptions& options)
    : store_(store), reader_(std::move(reader)), pool_(pool), clock_(clock), options_(options) {
  pool_.Add(*this);
}

ExpertLoader::~ExpertLoader() {
  pool_.Remove(*this);
  reader_.reset();  // reads under way end before their staging buffers go
}

void ExpertLoader::Request(ExpertId id, std::span<std::byte> slot, Urgency urgency,
                           ExpertStore* from) {
  TROUPE_CHECK(from == nullptr || from->direct());
  auto load = std::make_unique<Load>();
  load->id = id;
  load->slot = slot;
  load->store = from == nullptr ? &store_ : from;
  load->urgency = urgency;
  load->number = requests_++;
  load->left = slot.size();
  QueueOf(urgency).push_back(load.get());
  TROUPE_CHECK(loads_.emplace(id, std::move(load)).second);
}

void ExpertLoader::Promote(ExpertId id) {
  const auto found = loads_.find(id);
  if (found == loads_.end()) return;  // it has ended, and waits to be collected
  Load* load = found->second.get();
  if (load->urgency == Urgency::kDemand) return;
  std::deque<Load*>& queue = QueueOf(std::exchange(load->urgency, Urgency::kDemand));
  ++stats_.promoted;
  const auto queued = std::find(queue.begin(), queue.end(), load);
  if (queued == queue.end()) return;  // all its reads are under way
  queue.erase(queued);
  // Earlier requests go first: one may have started, and hold the staging buffer that others need.
  std::deque<Load*>& demand = QueueOf(Urgency::kDemand);
  demand.insert(std::ranges::upper_bound(demand, load->number, {}, &Load::number), load);
}

CallOff ExpertLoader::Cancel(ExpertId id) {
  const auto found = loads_.find(id);
  if (found == loads_.end()) return CallOff::kTooLate;
  Load* load = found->second.get();
  if (load->urgency == Urgency::kDemand) return CallOff::kTooLate;
  if (load->started) {
    if (load->unsubmitted.empty()) return CallOff::kTooLate;
    DropUnsubmitted(*load);
    if (load->outstanding == 0) complete_.push_back(load);
    load->status = Error(Code::kCancelled, "{}: called off", ToString(id));
    ++stats_.cancelled;
    return CallOff::kEnding;
  }
  std::erase(QueueOf(load->urgency), load);
  loads_.erase(found);
  ++stats_.cancelled;
  return CallOff::kGone;
}

Bytes ExpertLoader::BytesLeft(ExpertId id) const {
  const auto found = loads_.find(id);
  return found == loads_.end() ? Bytes() : Bytes(found->second->left);
}

// A load that was called off ends, and is begun anew, without having been compared.
bool ExpertLoader::HasBegun(ExpertId id, Bytes bytes) const {
  const auto found = loads_.find(id);
  if (found == loads_.end()) return false;
  const Load& load = *found->second;
  const bool lies =
      load.store->direct() && load.parts.size() == 1 && load.parts[0].data() == load.slot.data();
  return lies && load.urgency == Urgency::kDemand && load.status.ok() && load.left > 0 &&
         load.order.HasCome(bytes.count());
}

Bytes ExpertLoader::AheadOfDemand() const {
  std::uint64_t bytes = 0;
  for (const auto& [id, load] : loads_) {
    // Of a guess only the reads that are under way.
    const std::uint64_t most = load->urgency == Urgency::kPrefetch
                                   ? load->outstanding * options_.prefetch_piece.count()
                                   : load->left;
    bytes += std::min(most, load->left);
  }
  return Bytes(bytes);
}

bool ExpertLoader::Start(Load& load) {
  if (!load.store->direct()) {
    if (free_staging_.empty()) return false;
    load.staging = free_staging_.back();
    free_staging_.pop_back();
  }
  load.started = true;
  load.check = load.store->BeginCheck(load.id);
  CutIntoPieces(load);
  return true;
}

// Widens each extent to the alignment of direct reads and cuts it into pieces. `needed` leaves the
// widening out, since a file may end inside the last piece.
void ExpertLoader::CutIntoPieces(Load& load) {
  load.store->Locate(load.id, load.extents);
  const Bytes piece = load.urgency == Urgency::kPrefetch ? options_.prefetch_piece : options_.piece;
  std::byte* const base = load.store->direct() ? load.slot.data() : load.staging;
  std::uint64_t used = 0;
  for (const Extent& extent : load.extents) {
    if (extent.bytes == 0) {  // a matrix that these experts do not have
      load.parts.emplace_back();
      continue;
    }
    const std::uint64_t begin = AlignDown(extent.offset);
    const std::uint64_t end = extent.offset + extent.bytes;
    const std::uint64_t aligned_end = AlignUp(end, kAlign);
    TROUPE_CHECK(used + (aligned_end - begin) <=
                 (load.store->direct() ? load.slot.size() : staging_stride_));
    load.parts.emplace_back(base + used + (extent.offset - begin), extent.bytes);
    for (std::uint64_t at = begin; at < aligned_end;) {
      const std::uint64_t length = std::min(piece.count(), aligned_end - at);
      std::size_t tag = pieces_.size();
      if (free_pieces_.empty()) {
        pieces_.emplace_back();
      } else {
        tag = free_pieces_.back();
        free_pieces_.pop_back();
      }
      pieces_[tag] = {.load = &load,
                      .file = extent.file,
                      .offset = at,
                      .target = {base + used, length},
                      .needed = std::min(length, end - at),
                      .number = load.order.Expect(load.parts.size() - 1,
                                                  std::min(at + length, end) - extent.offset),
                      .retried = false};
      load.unsubmitted.push_back(tag);
      at += length;
      used += length;
    }
  }
}

// The order of reading: pieces tried again, then demand, foreseen experts and prefetches, each in
// the order of their requests.
bool ExpertLoader::NextPiece(std::size_t& piece) {
  if (!retries_.empty()) {
    piece = retries_.back();
    retries_.pop_back();
    return true;
  }
  for (std::deque<Load*>& queue : queues_) {
    if (queue.empty()) continue;
    const bool ahead = &queue == &QueueOf(Urgency::kPrefetch);
    if (ahead && ahead_reads_ >= options_.prefetch_reads) continue;
    // Staging buffers run out only while loads are under way, and each of these gives one back. So
    // a load that has started must be read to its end, even if others are more urgent.
    auto next = queue.begin();
    if (!(*next)->started && !Start(**next)) next = std::ranges::find_if(queue, &Load::started);
    if (next == queue.end()) continue;
    Load& load = **next;
    piece = load.unsubmitted.front();
    load.unsubmitted.pop_front();
    ++load.outstanding;
    pieces_[piece].ahead = ahead;
    ahead_reads_ += ahead ? 1 : 0;
    if (load.unsubmitted.empty()) queue.erase(next);
    return true;
  }
  return false;
}

void ExpertLoader::SubmitPieces() {
  std::vector<ReadRequest> requests;
  for (std::size_t room = reader_->depth() - reader_->under_way(); room > 0; --room) {
    std::size_t tag = 0;
    if (!NextPiece(tag)) break;
    const Piece& piece = pieces_[tag];
    requests.push_back({.fd = piece.load->store->files()[piece.file].fd(),
                        .offset = piece.offset,
                        .target = piece.target,
                        .tag = tag});
  }
  if (requests.empty()) return;
  const bool was_idle = reader_->under_way() == 0;
  if (was_idle) busy_since_ = clock_.Now();
  stats_.reads += requests.size();
  reader_->Submit(requests);
  if (was_idle) watch_.OnBegun(busy_since_, clock_.Now());
}

Status ExpertLoader::Describe(const Piece& piece, const ReadAnswer& answer) const {
  const std::string place =
      fmt::format("{}: {}: {} bytes at byte {}", piece.load->store->files()[piece.file].path(),
                  ToString(piece.load->id), piece.target.size(), piece.offset);
  if (!answer.status.ok()) {
    return Status(answer.status).WithContext(fmt::format("{} cannot be read", place));
  }
  return DataLoss("{}: {} were read, expected {}", place, answer.bytes, piece.needed);
}

void ExpertLoader::TakeAnswer(const ReadAnswer& answer) {
  Piece& piece = pieces_[answer.tag];
  Load& load = *piece.load;
  stats_.bytes_read += answer.bytes;
  if (std::exchange(piece.ahead, false)) --ahead_reads_;
  if (!answer.status.ok() || answer.bytes < piece.needed) {
    if (!piece.retried && load.status.ok()) {
      piece.retried = true;
      ++stats_.retries;
      retries_.push_back(answer.tag);
      return;
    }
    if (load.status.ok()) load.status = Describe(piece, answer);
    DropUnsubmitted(load);
  }
  if (load.status.ok()) load.order.OnCame(piece.number);
  load.left -= std::min<std::uint64_t>(load.left, piece.needed);
  free_pieces_.push_back(answer.tag);
  if (--load.outstanding == 0 && load.unsubmitted.empty()) complete_.push_back(&load);
}

void ExpertLoader::DropUnsubmitted(Load& load) {
  if (load.unsubmitted.empty()) return;
  std::erase(QueueOf(load.urgency), &load);
  std::ranges::copy(load.unsubmitted, std::back_inserter(free_pieces_));
  load.unsubmitted.clear();
}

// Of the answers that have just been collected.
void ExpertLoader::NoteTime(Nanos began) {
  const Nanos now = clock_.Now();
  stats_.busy_seconds += static_cast<double>(now - busy_since_) * 1e-9;
  SeenReads came{.reads = answers_.size()};
  for (const ReadAnswer& answer : answers_) came.bytes += answer.bytes;
  if (observer_) observer_(busy_since_, now, came.bytes);
  busy_since_ = now;
  watch_.OnLooked(began, now, came, reader_->under_way() > 0);
  stats_.seen = watch_.sum();
}

std::size_t ExpertLoader::Collect(std::optional<Nanos> wait) {
  if (reader_->under_way() == 0) return 0;
  answers_.clear();
  const Nanos began = clock_.Now();
  reader_->Collect(answers_, wait);
  NoteTime(began);
  for (const ReadAnswer& answer : answers_) TakeAnswer(answer);
  return answers_.size();
}

void ExpertLoader::Compare(Load& load, std::uint64_t most) {
  const ArrivalOrder::Stretch next = load.order.Take(most);
  load.check->Add(next.part, load.parts[next.part].subspan(next.begin, next.bytes));
  load.compared += next.bytes;
}

// A little of what has come, of the most urgent load that has not come whole. False: there is none.
bool ExpertLoader::CompareArrived() {
  const auto order = [](const Load& load) { return std::tuple(load.urgency, load.number); };
  Load* first = nullptr;
  for (const auto& [id, load] : loads_) {
    if (load->check == nullptr || !load->status.ok() || !load->order.HasMore()) continue;
    if (first == nullptr || order(*load) < order(*first)) first = load.get();
  }
  if (first == nullptr) return false;
  Compare(*first, kComparedAtOnce);
  first->compared_early = first->compared;
  return true;
}

Status ExpertLoader::Finish(Load& load) {
  for (const Extent& extent : load.extents) {
    const Status unchanged = load.store->files()[extent.file].CheckUnchanged();
    if (!unchanged.ok() && !load.store->CompareEachTime()) return unchanged;
  }
  if (load.check == nullptr) load.check = load.store->BeginCheck(load.id);  // it was written to
  if (load.check != nullptr) {
    while (load.order.HasMore()) Compare(load, std::numeric_limits<std::uint64_t>::max());
    TROUPE_RETURN_IF_ERROR(load.check->Finish());
  }
  return load.store->Finish(load.id, load.parts, load.slot);
}

// Comparing and packing run on all threads of the pool, one load each; bookkeeping then on this
// one.
void ExpertLoader::FinishLoads() {
  if (complete_.empty()) return;
  const std::vector<Load*> loads = std::exchange(complete_, {});
  const Nanos began = clock_.Now();
  pool_.Run(loads.size(), [&](std::size_t i, std::size_t) {
    if (loads[i]->status.ok()) loads[i]->status = Finish(*loads[i]);
  });
  stats_.finishing_seconds += static_cast<double>(clock_.Now() - began) * 1e-9;
  for (Load* load : loads) {
    const bool called_off = load->status.code() == Code::kCancelled;
    if (!called_off) ++(load->status.ok() ? stats_.loads : stats_.failures);
    stats_.compared_bytes += load->compared;
    stats_.compared_early += load->compared_early;
    if (load->staging != nullptr) free_staging_.push_back(load->staging);
    ended_.push_back({.id = load->id, .status = std::move(load->status)});
    loads_.erase(load->id);
  }
}

// What has come is finished after the region: that takes the pool.
void ExpertLoader::Serve() {
  if (reader_->under_way() == 0) return;
  const Nanos now = clock_.Now();
  if (now - served_at_ < kServedEvery) return;
  served_at_ = now;
  const std::uint64_t before = reader_->under_way();
  Collect(Nanos{0});
  stats_.served_reads += before - reader_->under_way();
  SubmitPieces();
}

void ExpertLoader::Poll() {
  SubmitPieces();
  Collect(Nanos{0});
  FinishLoads();
  SubmitPieces();
}

void ExpertLoader::WaitFor(Nanos longest) {
  Poll();
  if (!ended_.empty()) return;
  Collect(CompareArrived() ? Nanos{0} : longest);
  SubmitPieces();
  FinishLoads();
  SubmitPieces();
}

void ExpertLoader::WaitForPiece() {
  SubmitPieces();
  const bool is_there = !complete_.empty() || !ended_.empty() || Collect(Nanos{0}) > 0;
  for (bool has_come = is_there; !has_come && reader_->under_way() > 0;) {
    has_come = Collect(CompareArrived() ? std::optional<Nanos>(0) : std::nullopt) > 0;
  }
  SubmitPieces();
  FinishLoads();
  SubmitPieces();
}

void ExpertLoader::Wait() {
  TROUPE_CHECK(!loads_.empty() || !ended_.empty());
  Poll();
  while (ended_.empty()) {
    if (complete_.empty()) Collect(CompareArrived() ? std::optional<Nanos>(0) : std::nullopt);
    SubmitPieces();  // keep the queue full before spending time on what has arrived
    FinishLoads();
    SubmitPieces();
  }
}

std::vector<LoadEnd> ExpertLoader::TakeEnded() { return std::exchange(ended_, {}); }

}  // namespace troupe
