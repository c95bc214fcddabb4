#include "io/aligned_buffer.h"

#include <sys/mman.h>

#include <bit>
#include <cstdint>
#include <limits>
#include <utility>

namespace troupe {

Result<AlignedBuffer> AlignedBuffer::Allocate(Bytes size, const BufferOptions& options) {
  const std::uint64_t alignment = options.alignment.count();
  TROUPE_CHECK(std::has_single_bit(alignment));
  // Past this AlignUp would wrap.
  if (size.count() > std::numeric_limits<std::int64_t>::max() - alignment) {
    return Error(Code::kResourceExhausted, "no memory for {}", ToString(size));
  }
  const Bytes capacity(AlignUp(size.count() == 0 ? 1 : size.count(), alignment));
  void* memory = std::aligned_alloc(alignment, capacity.count());
  if (memory == nullptr) {
    return Error(Code::kResourceExhausted, "no memory for {}", ToString(size));
  }
  if (options.huge_pages && alignment >= kPage.count()) {
    // A refusal costs speed only, and where huge pages are switched off it is the normal answer.
    (void)::madvise(memory, capacity.count(), MADV_HUGEPAGE);
  }
  const bool huge = options.huge_pages && alignment >= kHugePage.count();
  return AlignedBuffer(static_cast<std::byte*>(memory), size, capacity, huge ? kHugePage : kPage);
}

bool AlignedBuffer::GiveBackFrom(Bytes offset) {
  // Half a huge page that is given back stays charged until memory is short.
  const auto begin = reinterpret_cast<std::uintptr_t>(memory_.get());
  const std::uint64_t first = AlignUp(begin + offset.count(), page_.count());
  const std::uint64_t last = (begin + capacity_.count()) & ~(kPage.count() - 1);
  if (first >= last) return true;
  return ::madvise(reinterpret_cast<void*>(first), last - first, MADV_DONTNEED) == 0;
}

AlignedBuffer::AlignedBuffer(AlignedBuffer&& other) noexcept
    : memory_(std::move(other.memory_)),
      size_(std::exchange(other.size_, Bytes())),
      capacity_(std::exchange(other.capacity_, Bytes())),
      page_(other.page_) {}

AlignedBuffer& AlignedBuffer::operator=(AlignedBuffer&& other) noexcept {
  memory_ = std::move(other.memory_);
  size_ = std::exchange(other.size_, Bytes());
  capacity_ = std::exchange(other.capacity_, Bytes());
  page_ = other.page_;
  return *this;
}

}  // namespace troupe
