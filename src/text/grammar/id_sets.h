// Sets of small numbers, each set kept once and named by a number itself.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/bytes.h"

namespace troupe {

using SetId = std::uint32_t;

class IdSets {
 public:
  IdSets();

  // Of ids in ascending order, each once. The same set has the same id; ids count up from 0.
  SetId Intern(std::span<const std::uint32_t> ids);
  std::span<const std::uint32_t> Get(SetId set) const {
    return std::span(ids_).subspan(begins_[set], begins_[set + 1] - begins_[set]);
  }
  std::size_t size() const { return begins_.size() - 1; }
  std::size_t total() const { return ids_.size(); }  // of all sets together
  Bytes bytes() const {                              // of memory
    return Bytes(ids_.capacity() * sizeof(std::uint32_t) +
                 begins_.capacity() * sizeof(std::size_t) + slots_.capacity() * sizeof(SetId));
  }

 private:
  std::size_t SlotOf(std::span<const std::uint32_t> ids) const;

  std::vector<std::uint32_t> ids_;
  std::vector<std::size_t> begins_;  // of each set in ids_, and the end of the last
  std::vector<SetId> slots_;         // open addressing
};

}  // namespace troupe
