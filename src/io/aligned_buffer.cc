#include "io/aligned_buffer.h"

#include <sys/mman.h>

#include <bit>
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
  return AlignedBuffer(static_cast<std::byte*>(memory), size, capacity);
}

AlignedBuffer::AlignedBuffer(AlignedBuffer&& other) noexcept
    : memory_(std::move(other.memory_)),
      size_(std::exchange(other.size_, Bytes())),
      capacity_(std::exchange(other.capacity_, Bytes())) {}

AlignedBuffer& AlignedBuffer::operator=(AlignedBuffer&& other) noexcept {
  memory_ = std::move(other.memory_);
  size_ = std::exchange(other.size_, Bytes());
  capacity_ = std::exchange(other.capacity_, Bytes());
  return *this;
}

}  // namespace troupe
