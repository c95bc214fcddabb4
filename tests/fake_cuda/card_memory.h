// The card's memory: buffers with bytes around them that nobody may write to, at addresses that the
// processor cannot read.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>

namespace troupe {

class FakeCardMemory {
 public:
  // 0: there is no such room.
  std::uint64_t Allocate(std::uint64_t bytes, std::uint64_t room);
  // False where no buffer begins there. Ends the program where something was written beside it.
  bool Free(std::uint64_t address);

  // Where these bytes lie; null where they are not all in one buffer.
  std::byte* Find(std::uint64_t address, std::uint64_t bytes) const;

 private:
  struct Buffer {
    std::uint64_t bytes = 0;
    std::unique_ptr<std::byte[]> memory;
  };
  std::map<std::uint64_t, Buffer> buffers_;  // by their addresses
  std::uint64_t taken_ = 0;
};

}  // namespace troupe
