#include "fake_cuda/card_memory.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <new>

#include "fake_cuda/programs.h"

namespace troupe {
namespace {

constexpr std::size_t kAround = 256;
constexpr std::byte kNobodys{0xa5}, kNew{0xcd};

}  // namespace

std::uint64_t FakeCardMemory::Allocate(std::uint64_t bytes, std::uint64_t room) {
  if (bytes > room || taken_ > room - bytes) return 0;
  Buffer buffer{.bytes = bytes};
  // make_unique would set all of it to zero, which a card does not.
  buffer.memory.reset(new (std::nothrow) std::byte[bytes + 2 * kAround]);
  if (buffer.memory == nullptr) return 0;
  std::byte* const begin = buffer.memory.get();
  std::fill_n(begin, kAround, kNobodys);
  std::fill_n(begin + kAround, bytes, kNew);
  std::fill_n(begin + kAround + bytes, kAround, kNobodys);
  const std::uint64_t address = reinterpret_cast<std::uintptr_t>(begin + kAround) + kFakeCardBase;
  buffers_[address] = std::move(buffer);
  taken_ += bytes;
  return address;
}

bool FakeCardMemory::Free(std::uint64_t address) {
  const auto found = buffers_.find(address);
  if (found == buffers_.end()) return false;
  const std::byte* const begin = found->second.memory.get();
  const auto is_whole = [](std::byte byte) { return byte == kNobodys; };
  if (!std::all_of(begin, begin + kAround, is_whole) ||
      !std::all_of(begin + kAround + found->second.bytes,
                   begin + kAround + found->second.bytes + kAround, is_whole)) {
    std::fputs("fake CUDA: a kernel has written beside a buffer\n", stderr);
    std::abort();
  }
  taken_ -= found->second.bytes;
  buffers_.erase(found);
  return true;
}

std::byte* FakeCardMemory::Find(std::uint64_t address, std::uint64_t bytes) const {
  auto found = buffers_.upper_bound(address);
  if (found == buffers_.begin()) return nullptr;
  --found;
  const std::uint64_t at = address - found->first;
  if (at > found->second.bytes || bytes > found->second.bytes - at) return nullptr;
  return found->second.memory.get() + kAround + at;
}

}  // namespace troupe
