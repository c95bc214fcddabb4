// A block of memory with the alignment that kernels (64 bytes), direct reads (4 KiB) or huge pages
// (2 MiB) need. Running out of memory is a Status.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <span>

#include "base/bytes.h"
#include "base/check.h"
#include "base/status.h"

namespace troupe {

inline constexpr Bytes kCacheLine = 64_B;
inline constexpr Bytes kPage = 4_KiB;
inline constexpr Bytes kHugePage = 2_MiB;

struct BufferOptions {
  Bytes alignment = kCacheLine;  // a power of two
  // Asks the kernel for transparent huge pages; it may decline, and then nothing else changes.
  bool huge_pages = false;
};

class AlignedBuffer {
 public:
  AlignedBuffer() = default;
  // The contents are unspecified.
  static Result<AlignedBuffer> Allocate(Bytes size, const BufferOptions& options = {});

  // Gives the system back the whole pages from `offset` on, huge ones where they were asked for:
  // what lies in them is lost, and who writes there later has new ones. False: the system refuses,
  // as it does for locked memory.
  bool GiveBackFrom(Bytes offset);

  AlignedBuffer(AlignedBuffer&& other) noexcept;
  AlignedBuffer& operator=(AlignedBuffer&& other) noexcept;

  Bytes size() const { return size_; }
  Bytes capacity() const { return capacity_; }  // size rounded up to the alignment
  std::byte* data() { return memory_.get(); }
  const std::byte* data() const { return memory_.get(); }
  std::span<std::byte> bytes() { return {memory_.get(), size_.count()}; }
  std::span<const std::byte> bytes() const { return {memory_.get(), size_.count()}; }

  // The buffer as elements of T; the size must be a whole number of them.
  template <typename T>
  std::span<T> As() {
    TROUPE_CHECK(size_.count() % sizeof(T) == 0);
    return {reinterpret_cast<T*>(memory_.get()), size_.count() / sizeof(T)};
  }
  template <typename T>
  std::span<const T> As() const {
    TROUPE_CHECK(size_.count() % sizeof(T) == 0);
    return {reinterpret_cast<const T*>(memory_.get()), size_.count() / sizeof(T)};
  }

 private:
  struct Free {
    void operator()(std::byte* memory) const { std::free(memory); }
  };

  AlignedBuffer(std::byte* memory, Bytes size, Bytes capacity, Bytes page)
      : memory_(memory), size_(size), capacity_(capacity), page_(page) {}

  std::unique_ptr<std::byte, Free> memory_;
  Bytes size_;
  Bytes capacity_;
  Bytes page_ = kPage;
};

}  // namespace troupe
