// Brings experts from a store into slots of memory: demand before prefetch, each load once however
// often it is asked for, a failed or short read tried once more and then the error of that load
// alone. Reads are cut into pieces, so that one expert keeps a deep queue busy.
//
// Has no thread of its own: reading is the AsyncReader's work, and what remains is microseconds of
// bookkeeping whenever the token loop calls (Poll, Wait) and between the tasks of its regions, so
// that the reader has its next pieces while kernels run. Experts are compared with their checksums
// as they come, in the time in which the loop waits anyway; the rest of that, and putting them
// together, runs on the pool that the loop computes with, between its regions. Threads: one at a
// time.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <vector>

#include "base/bytes.h"
#include "base/clock.h"
#include "base/status.h"
#include "base/thread_pool.h"
#include "expert/expert_id.h"
#include "expert/flow/load_port.h"
#include "io/aligned_buffer.h"
#include "io/async_reader.h"
#include "store/expert_store.h"
#include "store/seen_reads.h"

namespace troupe {

struct LoaderOptions {
  Bytes piece = 1_MiB;             // of one read
  Bytes prefetch_piece = 512_KiB;  // of one that demand may have to wait for
  std::uint32_t staging = 8;  // staging buffers, each for one expert, if the store is not direct
  // The most prefetch reads under way at once. New demand waits for no more than these to end, and
  // they are enough to keep the medium busy.
  std::uint32_t prefetch_reads = 3;
};

struct LoaderStats {
  std::uint64_t loads = 0;     // ended well
  std::uint64_t failures = 0;  // ended with an error
  std::uint64_t cancelled = 0;
  std::uint64_t promoted = 0;  // prefetches that became demand before they had arrived
  std::uint64_t reads = 0;
  std::uint64_t served_reads = 0;  // of these, taken while a region ran
  std::uint64_t retries = 0;
  std::uint64_t bytes_read = 0;
  // Compared with what was recorded of them; and of these, before the last piece of their load had
  // come, so that nothing waited for it.
  std::uint64_t compared_bytes = 0, compared_early = 0;
  double finishing_seconds = 0;  // between the last piece of loads and their ends
  double busy_seconds = 0;       // during which at least one read was under way, or lay ready
  SeenReads seen;                // of the reads, those that say how fast the medium is
};

class ExpertLoader final : private ThreadPool::BetweenTasks {
 public:
  // Memory of the staging buffers for a store that is direct or not.
  static Bytes StagingBytes(bool direct, Bytes largest_expert, const LoaderOptions& options);

  // All but `reader` must outlive the loader. A slot handed to Request is as long as its expert,
  // rounded up to kDirectAlignment.
  static Result<std::unique_ptr<ExpertLoader>> Create(ExpertStore& store,
                                                      std::unique_ptr<AsyncReader> reader,
                                                      Bytes largest_expert, ThreadPool& pool,
                                                      const Clock& clock,
                                                      const LoaderOptions& options);
  ~ExpertLoader();
  ExpertLoader(const ExpertLoader&) = delete;
  ExpertLoader& operator=(const ExpertLoader&) = delete;

  // Queues a load of an expert that is not being loaded. Nothing is read before Poll or Wait.
  // `from` is a store of other copies of the same experts, in place of the loader's own: it must
  // outlive the loader and be direct.
  void Request(ExpertId id, std::span<std::byte> slot, Urgency urgency,
               ExpertStore* from = nullptr);
  // A prefetch has become demand. No effect if it already is, or if its load has ended and was not
  // collected yet.
  void Promote(ExpertId id);
  // Cancels a prefetch. If none of it was submitted to the reader it is gone at once; otherwise it
  // ends as soon as the reads under way have arrived. Too late for demand, and for a prefetch whose
  // reads are all under way.
  CallOff Cancel(ExpertId id);

  // Submits reads to the reader and collects its answers, without waiting.
  void Poll();
  // The same, until at least one load has ended. Something must be under way.
  void Wait();
  // The same, but no longer than that.
  void WaitFor(Nanos longest);
  // The same, until a read has come or a load has ended. Something must be under way.
  void WaitForPiece();
  // Loads that ended since the last call, in the order of their ends.
  std::vector<LoadEnd> TakeEnded();

  std::size_t under_way() const { return loads_.size(); }
  // That are still to come of an expert's load; none if it has ended.
  Bytes BytesLeft(ExpertId id) const;
  // Whether the first bytes of an expert on its way lie in its slot, of a demand that has not
  // failed: it will end with all of them as they are and compared, or with an error. Never of a
  // store that is not direct.
  bool HasBegun(ExpertId id, Bytes bytes) const;
  // That are read before a demand which would be requested now.
  Bytes AheadOfDemand() const;
  const LoaderStats& stats() const { return stats_; }
  // Is told of each look at reads under way: since when they were, or since the last look, until
  // when, and how many bytes had come. Null: nobody.
  using ReadsObserver = std::function<void(Nanos begin, Nanos end, std::uint64_t bytes)>;
  void set_reads_observer(ReadsObserver observer) { observer_ = std::move(observer); }
  const AsyncReader& reader() const { return *reader_; }
  // As the reader's.
  bool ForgetMemory(std::span<std::byte> memory) { return reader_->ForgetMemory(memory); }

 private:
  struct Load;
  struct Piece {
    Load* load = nullptr;
    std::uint32_t file = 0;
    std::uint64_t offset = 0;
    std::span<std::byte> target;
    std::size_t needed = 0;  // fewer than the target where the file may end inside it
    std::size_t number = 0;  // in the load's order
    bool retried = false;
    bool ahead = false;  // submitted as part of a prefetch
  };

  ExpertLoader(ExpertStore& store, std::unique_ptr<AsyncReader> reader, ThreadPool& pool,
               const Clock& clock, const LoaderOptions& options);

  void Serve() override;
  bool Start(Load& load);
  void CutIntoPieces(Load& load);
  void SubmitPieces();
  bool NextPiece(std::size_t& piece);
  std::size_t Collect(std::optional<Nanos> wait);  // how many reads have come
  void TakeAnswer(const ReadAnswer& answer);
  std::deque<Load*>& QueueOf(Urgency urgency) { return queues_[static_cast<std::size_t>(urgency)]; }
  void DropUnsubmitted(Load& load);
  bool CompareArrived();
  void Compare(Load& load, std::uint64_t most);
  Status Finish(Load& load);
  void FinishLoads();
  void NoteTime(Nanos began);
  Status Describe(const Piece& piece, const ReadAnswer& answer) const;

  ExpertStore& store_;
  std::unique_ptr<AsyncReader> reader_;
  ThreadPool& pool_;
  const Clock& clock_;
  LoaderOptions options_;

  AlignedBuffer staging_;
  std::size_t staging_stride_ = 0;
  std::vector<std::byte*> free_staging_;

  std::map<ExpertId, std::unique_ptr<Load>> loads_;
  std::array<std::deque<Load*>, kUrgencies> queues_;  // loads with pieces not yet submitted
  std::uint64_t requests_ = 0;
  std::vector<Piece> pieces_;  // a piece's index is its tag
  std::vector<std::size_t> free_pieces_, retries_;
  std::size_t ahead_reads_ = 0;  // of pieces under way
  std::vector<Load*> complete_;  // all read, to be finished
  std::vector<LoadEnd> ended_;
  std::vector<ReadAnswer> answers_;
  Nanos busy_since_ = 0, served_at_ = 0;
  ReadWatch watch_;
  LoaderStats stats_;
  ReadsObserver observer_;
};

}  // namespace troupe
