#include "text/grammar/matcher.h"

#include <algorithm>
#include <utility>

namespace troupe {
namespace {

// Cells that are no longer needed are dropped beyond these numbers: few enough to copy quickly when
// all bytes are read, and not so few that dropping would take the time while they are.
constexpr std::size_t kCellsAfterwards = 1024;
constexpr std::size_t kCellsMeanwhile = 32 * 1024;

}  // namespace

Matcher::Matcher(std::shared_ptr<const Automaton> automaton, StackLimits limits)
    : automaton_(std::move(automaton)),
      cells_meanwhile_(std::min(kCellsMeanwhile, limits.cells / 2)),
      pool_(*automaton_, limits) {
  const bool is_empty = automaton_->start() == Automaton::kReturnNode;
  tops_ = {is_empty ? StackPool::kBottom
                    : pool_.Intern({.node = automaton_->start(), .below = StackPool::kOnlyBottom})};
}

Result<bool> Matcher::Accept(std::string_view bytes) {
  std::vector<CellId> tops = tops_;
  std::size_t cells_before_dropping = cells_meanwhile_;
  pool_.ResetWork();
  for (const char byte : bytes) {
    TROUPE_ASSIGN_OR_RETURN(const StackPool::Expansion* const expansion, pool_.Expand(tops));
    tops = pool_.Read(expansion->readers, static_cast<std::uint8_t>(byte));
    if (tops.empty()) return false;
    if (pool_.size() > cells_before_dropping) {
      tops.insert(tops.end(), tops_.begin(), tops_.end());
      pool_.KeepOnly(tops);
      std::ranges::copy(std::span(tops).last(tops_.size()), tops_.begin());
      tops.resize(tops.size() - tops_.size());
      cells_before_dropping = cells_meanwhile_ + 2 * pool_.size();
    }
  }
  tops_ = std::move(tops);
  if (pool_.size() > kCellsAfterwards) pool_.KeepOnly(tops_);
  return true;
}

Result<bool> Matcher::CanEnd() {
  pool_.ResetWork();
  TROUPE_ASSIGN_OR_RETURN(const StackPool::Expansion* const expansion, pool_.Expand(tops_));
  return expansion->reaches_bottom;
}

Result<bool> Matcher::IsDone() {
  pool_.ResetWork();
  TROUPE_ASSIGN_OR_RETURN(const StackPool::Expansion* const expansion, pool_.Expand(tops_));
  return expansion->reaches_bottom && expansion->readers.empty();
}

Result<std::bitset<256>> Matcher::AllowedBytes() {
  pool_.ResetWork();
  TROUPE_ASSIGN_OR_RETURN(const StackPool::Expansion* const expansion, pool_.Expand(tops_));
  std::bitset<256> allowed;
  for (const CellId reader : expansion->readers) {
    const AutomatonNode& node = automaton_->node(pool_.cell(reader).node);
    for (const ByteEdge& edge : automaton_->EdgesOf(node)) {
      for (std::size_t byte = edge.first; byte <= edge.last; ++byte) allowed[byte] = true;
    }
  }
  return allowed;
}

}  // namespace troupe
