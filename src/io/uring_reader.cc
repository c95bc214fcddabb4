#include "io/uring_reader.h"

#include <liburing.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <limits>
#include <thread>
#include <utility>

#include "base/bytes.h"
#include "io/deadline.h"

namespace troupe {
namespace {

constexpr Bytes kMaxPiece = 1_GiB;  // the kernel registers no more at once
constexpr unsigned kMaxPieces = 1024;
constexpr std::size_t kMaxRead = 0x7ffff000;  // the system reads no more at once
constexpr int kMaxAttempts = 4;  // at a read that was interrupted, or found no resource

struct ExitRing {
  void operator()(io_uring* ring) const {
    io_uring_queue_exit(ring);
    delete ring;
  }
};
using Ring = std::unique_ptr<io_uring, ExitRing>;

class UringReader final : public AsyncReader {
 public:
  UringReader(Ring ring, std::size_t depth) : ring_(std::move(ring)), slots_(depth) {
    for (std::size_t i = depth; i > 0; --i) free_.push_back(i - 1);
  }

  ~UringReader() override {
    std::vector<ReadAnswer> discarded;
    while (in_kernel_ > 0) {
      AwaitOne(kForever);
      TakeOut(discarded);
    }
    // A ring that is closed gives its memory back later, from a kernel thread: until then pages
    // that this process has freed are still charged to it. Asked, the kernel gives them back at
    // once.
    if (has_table_) io_uring_unregister_buffers(ring_.get());
  }

  std::string_view name() const override { return "io_uring"; }
  std::size_t depth() const override { return slots_.size(); }
  std::size_t under_way() const override { return slots_.size() - free_.size() + refused_.size(); }

  void Submit(std::span<const ReadRequest> requests) override {
    TROUPE_CHECK(requests.size() <= depth() - under_way());
    for (const ReadRequest& request : requests) {
      // io_uring takes an offset of -1 for the current file position.
      if (request.offset > std::numeric_limits<std::int64_t>::max()) {
        refused_.push_back(AnswerTo(request, -EINVAL));
        continue;
      }
      const std::size_t slot = free_.back();
      free_.pop_back();
      slots_[slot] = {.request = request, .attempts = 0};
      Queue(slot);
    }
    HandIn();
  }

  void Collect(std::vector<ReadAnswer>& answers, std::optional<Nanos> wait) override {
    const std::size_t before = answers.size();
    std::move(refused_.begin(), refused_.end(), std::back_inserter(answers));
    refused_.clear();
    TakeOut(answers);
    const Deadline deadline(clock_, wait);
    while (answers.size() == before && under_way() > 0) {
      HandIn();
      const Nanos left = deadline.Left();
      if (left == 0) return;
      AwaitOne(left);
      TakeOut(answers);
    }
    HandIn();
  }

  bool RegisterMemory(std::span<std::byte> memory) override {
    if (!has_table_) {
      has_table_ = io_uring_register_buffers_sparse(ring_.get(), kMaxPieces) == 0;
    }
    bool any = false;
    while (has_table_ && !memory.empty() && pieces_.size() < kMaxPieces) {
      const auto piece = memory.first(std::min<std::size_t>(memory.size(), kMaxPiece.count()));
      const iovec where = {.iov_base = piece.data(), .iov_len = piece.size()};
      // Usually refused because of RLIMIT_MEMLOCK; plain reads are used then.
      if (io_uring_register_buffers_update_tag(ring_.get(), static_cast<unsigned>(pieces_.size()),
                                               &where, nullptr, 1) != 1) {
        break;
      }
      pieces_.push_back(piece);
      any = true;
      memory = memory.subspan(piece.size());
    }
    return any;
  }

  bool ForgetMemory(std::span<std::byte> memory) override {
    bool all = true;
    for (std::size_t i = 0; i < pieces_.size(); ++i) {
      const std::span<const std::byte> piece = pieces_[i];
      if (piece.data() + piece.size() <= memory.data() ||
          memory.data() + memory.size() <= piece.data()) {
        continue;
      }
      const iovec nothing = {};
      const int changed = io_uring_register_buffers_update_tag(
          ring_.get(), static_cast<unsigned>(i), &nothing, nullptr, 1);
      if (changed == 1) {
        pieces_[i] = {};
      } else {
        all = false;
      }
    }
    return all;
  }

 private:
  struct Slot {
    ReadRequest request;
    int attempts = 0;
  };

  // Writes the slot's read into the submission ring, where it waits for HandIn.
  void Queue(std::size_t slot) {
    io_uring_sqe* entry = io_uring_get_sqe(ring_.get());
    TROUPE_CHECK(entry != nullptr);  // the ring holds `depth` of them
    const ReadRequest& request = slots_[slot].request;
    const auto bytes = static_cast<unsigned>(std::min(request.target.size(), kMaxRead));
    if (const int piece = PieceAround(request.target); piece >= 0) {
      io_uring_prep_read_fixed(entry, request.fd, request.target.data(), bytes, request.offset,
                               piece);
    } else {
      io_uring_prep_read(entry, request.fd, request.target.data(), bytes, request.offset);
    }
    io_uring_sqe_set_data64(entry, slot);
    ++queued_;
  }

  // A kernel short of memory may leave some in the queue; the next call tries again.
  void HandIn() {
    while (queued_ > 0) {
      const int taken = io_uring_submit(ring_.get());
      if (taken == -EINTR) continue;
      TROUPE_CHECK(taken >= 0 || taken == -EAGAIN || taken == -EBUSY);
      if (taken <= 0) return;
      queued_ -= static_cast<std::size_t>(taken);
      in_kernel_ += static_cast<std::size_t>(taken);
    }
  }

  // Returns when an answer is there, or earlier.
  void AwaitOne(Nanos left) {
    if (in_kernel_ == 0) {  // HandIn submitted nothing, and only time can change that
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
      return;
    }
    io_uring_cqe* answer = nullptr;
    __kernel_timespec limit = {.tv_sec = left / 1'000'000'000, .tv_nsec = left % 1'000'000'000};
    const int result = left == kForever ? io_uring_wait_cqe(ring_.get(), &answer)
                                        : io_uring_wait_cqe_timeout(ring_.get(), &answer, &limit);
    TROUPE_CHECK(result == 0 || result == -ETIME || result == -EINTR || result == -EAGAIN);
  }

  void TakeOut(std::vector<ReadAnswer>& answers) {
    io_uring_cqe* answer = nullptr;
    while (io_uring_peek_cqe(ring_.get(), &answer) == 0) {
      const std::size_t slot = io_uring_cqe_get_data64(answer);
      const int result = answer->res;
      io_uring_cqe_seen(ring_.get(), answer);
      --in_kernel_;
      if ((result == -EAGAIN || result == -EINTR) && ++slots_[slot].attempts < kMaxAttempts) {
        Queue(slot);
        continue;
      }
      answers.push_back(AnswerTo(slots_[slot].request, result));
      free_.push_back(slot);
    }
  }

  int PieceAround(std::span<const std::byte> target) const {
    for (std::size_t i = 0; i < pieces_.size(); ++i) {
      const std::byte* begin = pieces_[i].data();
      if (target.data() >= begin && target.data() + target.size() <= begin + pieces_[i].size()) {
        return static_cast<int>(i);
      }
    }
    return -1;
  }

  const MonotonicClock clock_;
  Ring ring_;
  std::vector<Slot> slots_;
  std::vector<std::size_t> free_;    // slots
  std::vector<ReadAnswer> refused_;  // before the kernel saw them
  std::size_t queued_ = 0;           // in the submission ring
  std::size_t in_kernel_ = 0;        // taken by the kernel and not yet taken out
  bool has_table_ = false;           // of registered memory
  std::vector<std::span<const std::byte>> pieces_;
};

}  // namespace

Result<std::unique_ptr<AsyncReader>> MakeUringReader(std::size_t depth) {
  TROUPE_CHECK(depth > 0 && depth <= kMaxReaderDepth);
  auto raw = std::make_unique<io_uring>();
  if (const int e = io_uring_queue_init(static_cast<unsigned>(depth), raw.get(), 0); e < 0) {
    return Status(Code::kUnavailable, ErrnoStatus(-e, "io_uring").message());
  }
  Ring ring(raw.release());
  if ((ring->features & IORING_FEAT_EXT_ARG) == 0) {  // a wait with a limit
    return Error(Code::kUnavailable, "io_uring: kernel older than 5.11");
  }
  return std::unique_ptr<AsyncReader>(std::make_unique<UringReader>(std::move(ring), depth));
}

}  // namespace troupe
