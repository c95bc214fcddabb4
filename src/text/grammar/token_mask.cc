#include "text/grammar/token_mask.h"

#include <algorithm>
#include <functional>
#include <utility>

namespace troupe {
namespace {

constexpr std::uint64_t kWorkOfPlace = 64;  // to look it up, and join what may come there
constexpr std::uint64_t kWorkOfEnd = 4;  // that a place below goes on from: it is kept until then

}  // namespace

TokenMasks::TokenMasks(std::shared_ptr<const Automaton> automaton,
                       std::shared_ptr<const VocabTrie> vocab, TokenMaskLimits limits,
                       std::shared_ptr<MaskMemory> shared)
    : automaton_(std::move(automaton)),
      vocab_(std::move(vocab)),
      limits_(limits),
      shared_(std::move(shared)),
      states_(automaton_, limits.states_at_most, limits.states_bytes,
              {.work = limits.work / kStackWork}) {}

TokenMasks::~TokenMasks() {
  if (shared_ != nullptr) shared_->Remove(*this);
}

void TokenMasks::Forget() {
  places_.clear();
  kept_ = Bytes();
  states_.Clear();
}

TokenMasks::Place TokenMasks::PlaceOf(const StackCell& cell) const {
  // A token makes at most as many repetitions as it has bytes.
  const auto beyond = static_cast<std::uint32_t>(vocab_->longest_token() + 1);
  return {cell.node, std::min(cell.need, beyond), cell.room < beyond ? cell.room : kUnbounded};
}

Status TokenMasks::Spend(std::uint64_t work) {
  work_ += work;
  if (work_ <= MostWork()) return OkStatus();
  return Error(Code::kResourceExhausted,
               "the grammar takes too much work to look one token ahead: too much may come at this "
               "place, as where repetitions are inside others");
}

Status TokenMasks::WalkRange(std::uint32_t begin, std::uint32_t end, StackStates::State state,
                             TokenSet& allowed, TrieNodes& ends) {
  open_.assign(1, {state, end});
  for (std::uint32_t i = begin; i < end;) {
    while (i >= open_.back().end) open_.pop_back();
    const VocabTrie::Node& node = vocab_->node(i);
    const std::uint64_t before = states_.counted();
    TROUPE_ASSIGN_OR_RETURN(const StackStates::State next,
                            states_.Step(open_.back().state, node.byte));
    TROUPE_RETURN_IF_ERROR(Spend(1 + kStackWork * (states_.counted() - before)));
    if (next == StackStates::kNone) {
      i = node.end;
      continue;
    }
    for (const TokenId token : vocab_->TokensAt(i)) allowed.Insert(token);
    if (node.end > i + 1) {
      TROUPE_ASSIGN_OR_RETURN(const bool may_end, states_.ReachesBottom(next));
      if (may_end) ends.push_back(i);
      open_.push_back({next, node.end});
    }
    ++i;
  }
  return OkStatus();
}

Result<bool> TokenMasks::WalkOnce(const Place& place,
                                  std::optional<std::span<const std::uint32_t>> nodes,
                                  TokenSet& allowed, TrieNodes& ends) {
  states_.StartCounting();
  const StackStates::State start = states_.At(place[0], place[1], place[2]);
  TROUPE_ASSIGN_OR_RETURN(const bool ends_at_once, states_.ReachesBottom(start));
  TROUPE_RETURN_IF_ERROR(Spend(kWorkOfPlace + kStackWork * states_.WorkAt(start)));
  if (!nodes) {
    TROUPE_RETURN_IF_ERROR(WalkRange(0, vocab_->size(), start, allowed, ends));
    return ends_at_once;
  }
  if (ends_at_once) ends.insert(ends.end(), nodes->begin(), nodes->end());
  for (const std::uint32_t node : *nodes) {
    TROUPE_RETURN_IF_ERROR(WalkRange(node + 1, vocab_->node(node).end, start, allowed, ends));
  }
  return ends_at_once;
}

Result<bool> TokenMasks::Walk(const Place& place,
                              std::optional<std::span<const std::uint32_t>> nodes,
                              TokenSet& allowed, TrieNodes& ends) {
  const std::size_t ends_before = ends.size();
  const std::uint64_t work_before = work_;
  const bool was_empty = states_.is_empty();
  Result<bool> walked = WalkOnce(place, nodes, allowed, ends);
  const bool lacked_room = !walked.ok() && work_ <= MostWork();
  if (!lacked_room || was_empty) return walked;
  // States that others have left take no room from it.
  states_.Clear();
  ends.resize(ends_before);
  work_ = work_before;
  return WalkOnce(place, nodes, allowed, ends);
}

Result<const TokenMasks::Found*> TokenMasks::FindAt(const Place& place) {
  if (const auto known = places_.find(place); known != places_.end()) {
    known->second.last_use = ++uses_;
    TROUPE_RETURN_IF_ERROR(Spend(known->second.work));
    return &known->second;
  }
  Found found{.allowed = TokenSet(vocab_->vocabulary()), .last_use = ++uses_};
  const std::uint64_t before = work_;
  TROUPE_ASSIGN_OR_RETURN(found.ends_at_once, Walk(place, std::nullopt, found.allowed, found.ends));
  found.work = work_ - before;
  found.ends.shrink_to_fit();
  ++places_walked_;
  kept_ += found.size();
  return &places_.emplace(place, std::move(found)).first->second;
}

void TokenMasks::DropLeastRecentlyUsed() {
  if (kept_ <= limits_.kept) return;
  std::vector<std::pair<std::uint64_t, Place>> by_use;
  for (const auto& [place, found] : places_) by_use.emplace_back(found.last_use, place);
  std::ranges::sort(by_use);
  // A quarter at a time: sorting all for each would cost more than to find them again.
  for (const auto& [use, place] : by_use) {
    if (4 * kept_ <= 3 * limits_.kept) break;
    const auto oldest = places_.find(place);
    kept_ -= oldest->second.size();
    places_.erase(oldest);
  }
}

Result<TokenSet> TokenMasks::Allowed(const Matcher& matcher) {
  TROUPE_CHECK(&matcher.automaton() == automaton_.get());
  if (shared_ != nullptr) shared_->Use(*this);
  DropLeastRecentlyUsed();
  if (states_.size() > limits_.states_kept || 2 * states_.bytes() > limits_.states_bytes) {
    states_.Clear();
  }
  work_ = 0;
  struct Pending {
    bool at_root = false;  // the whole tree is to be walked from here
    TrieNodes nodes;       // and what is below these
  };
  // Cells have larger ids than those below them: each comes after all that lead to it.
  std::map<CellId, Pending, std::greater<>> pending;
  for (const CellId top : matcher.tops()) pending[top].at_root = true;
  TokenSet allowed(vocab_->vocabulary());
  while (!pending.empty()) {
    auto [cell, here] = std::move(*pending.begin());
    pending.erase(pending.begin());
    if (cell == StackPool::kBottom) break;  // the text has ended: nothing follows
    const Place place = PlaceOf(matcher.pool().cell(cell));
    bool ends_at_once = false;
    TrieNodes ends;
    if (here.at_root) {
      TROUPE_ASSIGN_OR_RETURN(const Found* const found, FindAt(place));
      allowed.InsertAll(found->allowed);
      ends = found->ends;
      ends_at_once = found->ends_at_once;
    }
    if (!here.nodes.empty()) {
      std::ranges::sort(here.nodes);
      here.nodes.erase(std::unique(here.nodes.begin(), here.nodes.end()), here.nodes.end());
      TROUPE_RETURN_IF_ERROR(Walk(place, here.nodes, allowed, ends).status());
    }
    if (!ends_at_once && ends.empty()) continue;
    for (const CellId below : matcher.pool().CellsBelow(cell)) {
      TROUPE_RETURN_IF_ERROR(Spend(1 + kWorkOfEnd * ends.size()));
      Pending& next = pending[below];
      next.at_root |= ends_at_once;
      next.nodes.insert(next.nodes.end(), ends.begin(), ends.end());
    }
  }
  return allowed;
}

}  // namespace troupe
