// ContainerChecksum (container_format.h) of bytes that come part by part.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

namespace troupe {

class PartsChecksum {
 public:
  PartsChecksum();
  ~PartsChecksum();
  PartsChecksum(const PartsChecksum&) = delete;
  PartsChecksum& operator=(const PartsChecksum&) = delete;

  void Add(std::span<const std::byte> part);
  std::uint64_t value() const;  // of all parts so far

 private:
  struct State;
  const std::unique_ptr<State> state_;
};

}  // namespace troupe
