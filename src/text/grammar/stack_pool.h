// The stacks of a pushdown automaton (automaton.h) and how a byte moves them. A stack is a cell and
// what it stands on, which is a set of cells: stacks that differ only further down are one. Equal
// cells and equal sets exist once, so that all stacks that a text can have are a short list of cell
// ids, and copies share what lies below. A cell stands where reading goes on: what can be reached
// from there without reading is found when it is needed. Not thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/bytes.h"
#include "base/status.h"
#include "text/grammar/automaton.h"
#include "text/grammar/id_sets.h"

namespace troupe {

using CellId = std::uint32_t;

struct StackCell {
  NodeId node = Automaton::kReturnNode;
  std::uint32_t need = 0;  // repetitions that the loop at this cell must make
  std::uint32_t room = 0;  // and may make; kUnbounded if any number
  SetId below = 0;         // the cells where to go on when the rule ends

  bool operator==(const StackCell&) const = default;
};

struct StackLimits {
  std::size_t stacks = 4096;        // at a time, counted with what is reached without reading
  std::size_t cells = 500'000;      // held
  std::uint64_t work = 20'000'000;  // ways from cell to cell between two ResetWork()
};

class StackPool {
 public:
  // Under every stack: whoever arrives there has read a whole text.
  static constexpr CellId kBottom = 0;
  static constexpr SetId kOnlyBottom = 0;

  explicit StackPool(const Automaton& automaton, StackLimits limits = {});

  // Of a cell whose node is not kReturn.
  CellId Intern(const StackCell& cell);
  const StackCell& cell(CellId id) const { return cells_[id]; }
  std::span<const CellId> CellsBelow(CellId id) const { return sets_.Get(cells_[id].below); }
  std::size_t size() const { return cells_.size(); }
  Bytes bytes() const {  // of memory
    return sets_.bytes() +
           Bytes(cells_.capacity() * sizeof(StackCell) + slots_.capacity() * sizeof(CellId) +
                 visited_.capacity() * sizeof(std::uint32_t));
  }

  // Forgets all cells but these and those below them, and renames them in place.
  void KeepOnly(std::vector<CellId>& tops);
  void ResetWork() { work_ = 0; }
  std::uint64_t work() const { return work_; }  // since then

  // What a set of stacks can do next. Overwritten by the next Expand.
  struct Expansion {
    std::vector<CellId> readers;  // cells in nodes that read a byte
    bool reaches_bottom = false;
  };
  // kResourceExhausted if a limit is passed: the grammar is too ambiguous to follow.
  Result<const Expansion*> Expand(std::span<const CellId> tops);

  // The most work of a Read by these readers, whatever the byte.
  std::uint64_t ReadingWork(std::span<const CellId> readers) const;

  // The sorted tops after a byte that the readers of an expansion read; none if it does not fit.
  std::vector<CellId> Read(std::span<const CellId> readers, std::uint8_t byte);

 private:
  std::size_t SlotOf(const StackCell& cell) const;
  void Rehash(std::size_t slots);
  void Visit(CellId id);
  void GoTo(const StackCell& cell);
  void EnterRule(NodeId rule, const StackCell& after);
  void Follow(const StackCell& cell, const AutomatonNode& node);

  const Automaton* automaton_;
  StackLimits limits_;
  std::vector<StackCell> cells_;  // each after those below it
  IdSets sets_;
  std::vector<CellId> slots_;           // open addressing; kBottom: free
  std::vector<std::uint32_t> visited_;  // by cell: the expansion that saw it last
  std::uint32_t expansion_number_ = 0;
  std::vector<CellId> pending_;
  std::vector<StackCell> arrived_;
  std::uint64_t work_ = 0;
  Expansion expansion_;
};

}  // namespace troupe
