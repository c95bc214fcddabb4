#include "text/grammar/stack_pool.h"

#include <algorithm>
#include <array>
#include <tuple>
#include <utility>

namespace troupe {
namespace {

constexpr std::size_t kFewestSlots = 64;
constexpr std::array<CellId, 1> kBottomAlone = {StackPool::kBottom};

constexpr auto kStateOf = [](const StackCell& cell) {
  return std::tuple(cell.node, cell.need, cell.room);
};

}  // namespace

StackPool::StackPool(const Automaton& automaton, StackLimits limits)
    : automaton_(&automaton), limits_(limits), cells_(1), slots_(kFewestSlots, kBottom) {
  sets_.Intern(kBottomAlone);
}

std::size_t StackPool::SlotOf(const StackCell& cell) const {
  const std::uint64_t first = (std::uint64_t{cell.node} << 32) | cell.below;
  const std::uint64_t second = (std::uint64_t{cell.need} << 32) | cell.room;
  std::uint64_t hash = (first ^ (second * 0x9E3779B97F4A7C15U)) * 0xBF58476D1CE4E5B9U;
  hash ^= hash >> 31;
  std::size_t slot = hash & (slots_.size() - 1);
  while (slots_[slot] != kBottom && cells_[slots_[slot]] != cell) {
    slot = (slot + 1) & (slots_.size() - 1);
  }
  return slot;
}

void StackPool::Rehash(std::size_t slots) {
  slots_.assign(slots, kBottom);
  for (std::size_t id = 1; id < cells_.size(); ++id) {
    slots_[SlotOf(cells_[id])] = static_cast<CellId>(id);
  }
}

CellId StackPool::Intern(const StackCell& cell) {
  TROUPE_DCHECK(cell.node != Automaton::kReturnNode);
  const std::size_t slot = SlotOf(cell);
  if (slots_[slot] != kBottom) return slots_[slot];
  const auto id = static_cast<CellId>(cells_.size());
  cells_.push_back(cell);
  slots_[slot] = id;
  if (2 * cells_.size() > slots_.size()) Rehash(2 * slots_.size());
  return id;
}

void StackPool::KeepOnly(std::vector<CellId>& tops) {
  const std::vector<StackCell> old = std::exchange(cells_, std::vector<StackCell>(1));
  const IdSets old_sets = std::exchange(sets_, IdSets());
  sets_.Intern(kBottomAlone);
  std::vector<bool> kept(old.size(), false);
  for (const CellId top : tops) kept[top] = true;
  for (std::size_t id = old.size(); id-- > 1;) {
    if (!kept[id]) continue;
    for (const CellId below : old_sets.Get(old[id].below)) kept[below] = true;
  }
  std::vector<CellId> renamed(old.size(), kBottom);
  std::vector<CellId> below;
  for (std::size_t id = 1; id < old.size(); ++id) {
    if (!kept[id]) continue;
    below.clear();
    for (const CellId cell : old_sets.Get(old[id].below)) below.push_back(renamed[cell]);
    renamed[id] = static_cast<CellId>(cells_.size());
    cells_.push_back(old[id]);
    cells_.back().below = sets_.Intern(below);
  }
  for (CellId& top : tops) top = renamed[top];
  std::size_t slots = kFewestSlots;
  while (slots < 4 * cells_.size()) slots *= 2;
  Rehash(slots);
  visited_.clear();
}

void StackPool::Visit(CellId id) {
  ++work_;
  if (visited_.size() < cells_.size()) visited_.resize(2 * cells_.size(), 0);
  if (std::exchange(visited_[id], expansion_number_) != expansion_number_) pending_.push_back(id);
}

// A rule that has ended leaves nothing: what called it is where reading goes on.
void StackPool::GoTo(const StackCell& cell) {
  if (cell.node == Automaton::kReturnNode) {
    for (const CellId caller : sets_.Get(cell.below)) Visit(caller);
  } else {
    Visit(Intern(cell));
  }
}

// `after` is where the caller goes on. If nothing is left to do there, its own callers are.
void StackPool::EnterRule(NodeId rule, const StackCell& after) {
  SetId callers = after.below;
  if (after.node != Automaton::kReturnNode) {
    const std::array<CellId, 1> alone = {Intern(after)};
    callers = sets_.Intern(alone);
  }
  GoTo({.node = rule, .below = callers});
}

Result<const StackPool::Expansion*> StackPool::Expand(std::span<const CellId> tops) {
  if (++expansion_number_ == 0) {
    visited_.clear();
    expansion_number_ = 1;
  }
  expansion_.readers.clear();
  expansion_.reaches_bottom = false;
  pending_.clear();
  std::size_t seen = 0;
  for (const CellId top : tops) Visit(top);
  while (!pending_.empty()) {
    if (++seen > limits_.stacks) {
      return Error(Code::kResourceExhausted,
                   "the grammar can be read in more than {} ways at this place", limits_.stacks);
    }
    if (work_ > limits_.work || cells_.size() > limits_.cells ||
        sets_.total() > 4 * limits_.cells) {
      return Error(Code::kResourceExhausted, "the grammar takes too much work at this place");
    }
    const CellId id = pending_.back();
    pending_.pop_back();
    const StackCell cell = cells_[id];
    const AutomatonNode& node = automaton_->node(cell.node);
    if (id == kBottom) {
      expansion_.reaches_bottom = true;
    } else if (node.kind == AutomatonNode::Kind::kBytes) {
      expansion_.readers.push_back(id);
    } else {
      Follow(cell, node);
    }
  }
  return &expansion_;
}

void StackPool::Follow(const StackCell& cell, const AutomatonNode& node) {
  using Kind = AutomatonNode::Kind;
  switch (node.kind) {
    case Kind::kReturn:
    case Kind::kBytes:
      TROUPE_CHECK(false);  // the first is never interned, the second reads
      break;
    case Kind::kFork:
      for (const NodeId target : automaton_->TargetsOf(node)) {
        GoTo({target, cell.need, cell.room, cell.below});
      }
      break;
    case Kind::kCall:
      EnterRule(node.body, {.node = node.next, .below = cell.below});
      break;
    case Kind::kCount:
      GoTo({node.next, node.least, node.most, cell.below});
      break;
    case Kind::kLoop: {
      if (cell.need == 0) GoTo({.node = node.next, .below = cell.below});
      if (cell.room == 0) break;
      const std::uint32_t need = cell.need > 0 ? cell.need - 1 : 0;
      const std::uint32_t room = cell.room == kUnbounded ? kUnbounded : cell.room - 1;
      if (!node.body_is_rule) {
        GoTo({node.body, need, room, cell.below});
      } else if (room == 0) {
        EnterRule(node.body, {.node = node.next, .below = cell.below});
      } else {
        EnterRule(node.body, {cell.node, need, room, cell.below});
      }
      break;
    }
  }
}

std::uint64_t StackPool::ReadingWork(std::span<const CellId> readers) const {
  std::uint64_t work = readers.size();
  for (const CellId reader : readers) {
    const StackCell& cell = cells_[reader];
    for (const ByteEdge& edge : automaton_->EdgesOf(automaton_->node(cell.node))) {
      if (edge.target != Automaton::kReturnNode) continue;
      work += sets_.Get(cell.below).size();
      break;
    }
  }
  return work;
}

std::vector<CellId> StackPool::Read(std::span<const CellId> readers, std::uint8_t byte) {
  arrived_.clear();
  std::vector<CellId> tops;
  for (const CellId reader : readers) {
    const StackCell cell = cells_[reader];
    for (const ByteEdge& edge : automaton_->EdgesOf(automaton_->node(cell.node))) {
      if (byte < edge.first || byte > edge.last) continue;
      if (edge.target != Automaton::kReturnNode) {
        arrived_.push_back({edge.target, cell.need, cell.room, cell.below});
      } else {
        for (const CellId caller : sets_.Get(cell.below)) {
          if (caller == kBottom) {
            tops.push_back(kBottom);
          } else {
            arrived_.push_back(cells_[caller]);
          }
        }
      }
      break;  // edges of a node do not overlap
    }
  }
  work_ += readers.size() + arrived_.size();
  // Stacks that differ only below their tops become one.
  std::ranges::sort(arrived_, {}, kStateOf);
  std::vector<CellId> below;
  for (std::size_t i = 0; i < arrived_.size();) {
    StackCell merged = arrived_[i];
    std::size_t end = i + 1;
    while (end < arrived_.size() && kStateOf(arrived_[end]) == kStateOf(merged)) ++end;
    if (end > i + 1) {
      below.clear();
      for (; i < end; ++i) {
        const auto more = sets_.Get(arrived_[i].below);
        below.insert(below.end(), more.begin(), more.end());
      }
      std::ranges::sort(below);
      below.erase(std::unique(below.begin(), below.end()), below.end());
      merged.below = sets_.Intern(below);
    }
    i = end;
    tops.push_back(Intern(merged));
  }
  std::ranges::sort(tops);
  tops.erase(std::unique(tops.begin(), tops.end()), tops.end());
  return tops;
}

}  // namespace troupe
