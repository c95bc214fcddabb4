// ContainerChecksum of bytes that come piece by piece.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

namespace troupe {

class RunningChecksum {
 public:
  RunningChecksum();
  ~RunningChecksum();
  RunningChecksum(const RunningChecksum&) = delete;
  RunningChecksum& operator=(const RunningChecksum&) = delete;

  void Add(std::span<const std::byte> bytes);
  std::uint64_t value() const;  // of all so far

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace troupe
