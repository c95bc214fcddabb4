// The book of loads ahead: which experts were begun to be loaded before they were asked for, and
// whose slot each took. A miss of one that was pushed out is the price of the load that did it.
// Pure; what it costs and pays is for those to say who keep it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

#include "base/bytes.h"
#include "expert/expert_grid.h"

namespace troupe {

class AheadLoads {
 public:
  static Bytes BytesFor(ExpertGrid grid);

  explicit AheadLoads(ExpertGrid grid);

  // Loaded or loading ahead of the first question.
  bool Has(ExpertId id) const { return ahead_[grid_.Index(id)]; }
  std::uint64_t count() const;

  void Begin(ExpertId id, std::optional<ExpertId> evicted);
  // It is asked for, evicted or called off. False: it was not ahead.
  bool End(ExpertId id);

  // It is asked for: whether one ahead had pushed it out since the last time.
  bool WasDisplaced(ExpertId id) const { return displaced_by_[grid_.Index(id)] != kNobody; }
  void ForgetDisplacing(ExpertId id);
  // What `id` pushed out is no longer missing because of it: it came true, and its load would have
  // taken that slot anyway; or the slot is free, and what takes it next would have done the same.
  void Forgive(ExpertId id);

 private:
  static constexpr std::uint32_t kNobody = std::numeric_limits<std::uint32_t>::max();

  ExpertGrid grid_;
  std::vector<bool> ahead_;
  // By index in the grid: whose slot a load took, and the other way round.
  std::vector<std::uint32_t> displaced_, displaced_by_;
};

}  // namespace troupe
