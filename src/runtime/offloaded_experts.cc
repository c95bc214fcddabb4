#include "runtime/offloaded_experts.h"

#include <algorithm>

namespace troupe {

std::string ToString(const MissEvent& event) {
  std::string line = fmt::format("{}: {} by {} token{}", ToString(event.id),
                                 event.joined ? "on its way when asked for" : "missed",
                                 event.tokens, event.tokens == 1 ? "" : "s");
  line += fmt::format("; slot {}", event.slot);
  if (event.evicted) line += fmt::format(" of {}", ToString(*event.evicted));
  line += fmt::format("; {} there after {:.2f} ms, waited for {:.2f} ms", ToString(event.bytes),
                      event.load_seconds * 1e3, event.waited_seconds * 1e3);
  return line;
}

Bytes OffloadedExperts::SlotBytes(const ExpertLayouts& layouts) {
  std::uint64_t largest = 0;
  for (const ExpertLayout& layout : layouts) largest = std::max(largest, layout.SlotBytes());
  return Bytes(AlignUp(largest, kDirectAlignment.count()));
}

Result<std::unique_ptr<OffloadedExperts>> OffloadedExperts::Create(
    ExpertLayouts layouts, std::unique_ptr<ExpertStore> store, std::unique_ptr<AsyncReader> reader,
    ThreadPool& pool, const Clock& clock, Options options) {
  const Bytes slot = SlotBytes(layouts);
  const LoaderOptions loader_options = options.loader;
  TROUPE_ASSIGN_OR_RETURN(AlignedBuffer slots,
                          AlignedBuffer::Allocate(options.cache.slots * slot,
                                                  {.alignment = kHugePage, .huge_pages = true}));
  if (store->direct()) reader->RegisterMemory(slots.bytes());
  std::unique_ptr<OffloadedExperts> experts(
      new OffloadedExperts(std::move(layouts), std::move(store), std::move(slots), slot.count(),
                           clock, std::move(options)));
  TROUPE_ASSIGN_OR_RETURN(
      experts->loader_,
      ExpertLoader::Create(*experts->store_, std::move(reader), slot, pool, clock, loader_options));
  return experts;
}

OffloadedExperts::OffloadedExperts(ExpertLayouts layouts, std::unique_ptr<ExpertStore> store,
                                   AlignedBuffer slots, std::size_t slot_bytes, const Clock& clock,
                                   Options options)
    : layouts_(std::move(layouts)),
      store_(std::move(store)),
      slots_(std::move(slots)),
      slot_bytes_(slot_bytes),
      clock_(clock),
      cache_(std::move(options.cache), std::move(options.policy)) {}

std::span<std::byte> OffloadedExperts::Slot(std::uint32_t slot) {
  return slots_.bytes().subspan(slot * slot_bytes_, slot_bytes_);
}

void OffloadedExperts::Forget() {
  unplaced_.clear();
  waiting_.clear();
  ready_.clear();
  given_.clear();
  ready_pins_.clear();
  given_pins_.clear();
}

void OffloadedExperts::Give(ExpertId id) {
  ready_pins_.push_back(cache_.PinResident(id));
  ready_.push_back(
      {.expert = id.expert, .weights = layouts_[id.layer].At(Slot(cache_.SlotOf(id)).data())});
}

void OffloadedExperts::Ask(std::uint32_t layer, std::span<const ExpertDemand> demands) {
  Forget();
  layer_ = layer;
  for (const ExpertDemand& demand : demands) {
    const ExpertId id{layer, demand.expert};
    const Residence residence = cache_.Ask(id, demand.tokens);
    if (residence == Residence::kResident) {
      Give(id);  // and with that pinned, before the misses choose their victims
      continue;
    }
    Waiting waiting{.event = {.id = id,
                              .tokens = demand.tokens,
                              .joined = residence == Residence::kLoading,
                              .bytes = Bytes(layouts_[layer].SourceBytes())},
                    .asked = clock_.Now(),
                    .stall_before = stall_seconds_};
    if (residence == Residence::kLoading) {
      waiting.event.slot = cache_.SlotOf(id);
      loader_->Promote(id);
    } else {
      unplaced_.push_back(id);
    }
    waiting_.push_back(std::move(waiting));
  }
}

void OffloadedExperts::Place() {
  std::size_t placed = 0;
  for (; placed < unplaced_.size(); ++placed) {
    const ExpertId id = unplaced_[placed];
    const auto admission = cache_.Admit(id);
    if (!admission) break;
    const auto waiting =
        std::ranges::find(waiting_, id, [](const Waiting& w) { return w.event.id; });
    waiting->event.slot = admission->slot;
    waiting->event.evicted = admission->evicted;
    const std::uint64_t bytes = AlignUp(layouts_[id.layer].SlotBytes(), kDirectAlignment.count());
    loader_->Request(id, Slot(admission->slot).first(bytes), Urgency::kDemand);
  }
  unplaced_.erase(unplaced_.begin(), unplaced_.begin() + static_cast<std::ptrdiff_t>(placed));
}

Status OffloadedExperts::CollectEnded() {
  Status failed;
  for (LoadEnd& end : loader_->TakeEnded()) {
    const auto waiting =
        std::ranges::find(waiting_, end.id, [](const Waiting& w) { return w.event.id; });
    if (!end.status.ok()) {
      cache_.Abandon(end.id);
      // A load that nobody waits for any more failed for nobody.
      if (waiting != waiting_.end() && failed.ok()) failed = std::move(end.status);
      continue;
    }
    cache_.Loaded(end.id);
    if (waiting == waiting_.end()) continue;
    waiting->event.load_seconds = static_cast<double>(clock_.Now() - waiting->asked) * 1e-9;
    Give(end.id);
  }
  return failed;
}

Result<std::span<const ReadyExpert>> OffloadedExperts::Take(bool wait) {
  given_pins_.clear();
  Place();
  loader_->Poll();
  Status status = CollectEnded();
  if (wait && ready_.empty() && status.ok()) {
    const Nanos start = clock_.Now();
    while (ready_.empty() && status.ok()) {
      Place();
      loader_->Wait();
      status = CollectEnded();
    }
    stall_seconds_ += static_cast<double>(clock_.Now() - start) * 1e-9;
  }
  if (!status.ok()) {
    Forget();
    return status;
  }
  std::swap(given_, ready_);
  std::swap(given_pins_, ready_pins_);
  ready_.clear();
  for (const ReadyExpert& given : given_) {
    const auto waiting = std::ranges::find(waiting_, ExpertId{layer_, given.expert},
                                           [](const Waiting& w) { return w.event.id; });
    if (waiting == waiting_.end()) continue;  // it was resident
    waiting->event.waited_seconds = stall_seconds_ - waiting->stall_before;
    if (observer_) observer_(waiting->event);
    waiting_.erase(waiting);
  }
  return std::span<const ReadyExpert>(given_);
}

ExpertUsage OffloadedExperts::usage() const {
  const CacheStats& cache = cache_.stats();
  const LoaderStats& loader = loader_->stats();
  return {.hits = cache.hits,
          .misses = cache.misses + cache.joined,
          .reads = loader.reads,
          .bytes_read = loader.bytes_read,
          .stall_seconds = stall_seconds_};
}

}  // namespace troupe
