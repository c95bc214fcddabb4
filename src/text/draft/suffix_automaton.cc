#include "text/draft/suffix_automaton.h"

#include <algorithm>
#include <bit>

namespace troupe {
namespace {

// A text of n tokens has at most 2n - 1 states and 3n - 4 edges, for n of 3 and more.
std::size_t MostStates(std::size_t tokens) { return 2 * tokens + 2; }
std::size_t MostEdges(std::size_t tokens) { return 3 * tokens + 2; }

}  // namespace

// At most three of four slots are taken.
std::size_t SuffixAutomaton::SlotsFor(std::size_t edges) {
  return std::bit_ceil(std::max<std::size_t>(16, edges + edges / 3));
}

Bytes SuffixAutomaton::BytesFor(std::size_t tokens) {
  return Bytes(tokens * sizeof(TokenId) + MostStates(tokens) * sizeof(StateData) +
               MostEdges(tokens) * sizeof(EdgeData) + SlotsFor(MostEdges(tokens)) * sizeof(Edge));
}

Bytes SuffixAutomaton::size() const {
  return Bytes(text_.capacity() * sizeof(TokenId) + states_.capacity() * sizeof(StateData) +
               edges_.capacity() * sizeof(EdgeData) + slots_.capacity() * sizeof(Edge));
}

SuffixAutomaton::SuffixAutomaton(std::size_t tokens) : slots_(SlotsFor(MostEdges(tokens)), kNone) {
  text_.reserve(tokens);
  states_.reserve(MostStates(tokens));
  edges_.reserve(MostEdges(tokens));
  states_.push_back({});
}

std::size_t SuffixAutomaton::SlotOf(State from, TokenId token) const {
  const std::uint64_t key = std::uint64_t{from} << 32 | static_cast<std::uint32_t>(token);
  std::size_t slot = (key * 0x9e3779b97f4a7c15u) >> 32 & (slots_.size() - 1);
  while (slots_[slot] != kNone) {
    const EdgeData& edge = edges_[slots_[slot]];
    if (edge.from == from && edge.token == token) break;
    slot = (slot + 1) & (slots_.size() - 1);
  }
  return slot;
}

void SuffixAutomaton::Grow() {
  slots_.assign(2 * slots_.size(), kNone);
  for (Edge edge = 0; edge < edges_.size(); ++edge) {
    slots_[SlotOf(edges_[edge].from, edges_[edge].token)] = edge;
  }
}

void SuffixAutomaton::AddEdge(State from, TokenId token, State to) {
  if (SlotsFor(edges_.size() + 1) > slots_.size()) Grow();
  const auto edge = static_cast<Edge>(edges_.size());
  slots_[SlotOf(from, token)] = edge;
  edges_.push_back({.from = from, .to = to, .token = token, .next = states_[from].edges});
  states_[from].edges = edge;
}

SuffixAutomaton::State SuffixAutomaton::Clone(State original, std::uint32_t length) {
  const auto clone = static_cast<State>(states_.size());
  StateData data = states_[original];
  data.length = length;
  data.edges = kNone;
  states_.push_back(data);
  for (Edge edge = states_[original].edges; edge != kNone; edge = edges_[edge].next) {
    AddEdge(clone, edges_[edge].token, edges_[edge].to);
  }
  return clone;
}

void SuffixAutomaton::Append(TokenId token) {
  text_.push_back(token);
  const auto length = static_cast<std::uint32_t>(text_.size());
  const auto added = static_cast<State>(states_.size());
  states_.push_back({.length = length, .link = 0, .first_end = length});
  State at = last_;
  last_ = added;
  Edge known = kNone;
  for (; at != kNone; at = states_[at].link) {
    known = Find(at, token);
    if (known != kNone) break;
    AddEdge(at, token, added);
  }
  if (at == kNone) return;
  const State next = edges_[known].to;
  if (states_[next].length == states_[at].length + 1) {
    states_[added].link = next;
    return;
  }
  const State clone = Clone(next, states_[at].length + 1);
  states_[next].link = states_[added].link = clone;
  for (; at != kNone; at = states_[at].link) {
    const Edge edge = Find(at, token);
    if (edge == kNone || edges_[edge].to != next) break;
    edges_[edge].to = clone;
  }
}

SuffixAutomaton::Match SuffixAutomaton::Longest() const {
  const State link = states_[last_].link;
  if (link == kNone || link == 0) return {};
  return {.length = states_[link].length, .end = states_[link].first_end};
}

}  // namespace troupe
