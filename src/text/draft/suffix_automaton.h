// All that a growing text of tokens contains, in memory that grows with its length: finds at every
// token the longest end of the text that occurred before, and where. Built online (Blumer et al.,
// 1985): a state stands for the parts of the text that end at the same places, and its link for
// their longest common end that occurs at more places. Appending a token takes constant time on
// average.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/bytes.h"
#include "text/vocab.h"

namespace troupe {

class SuffixAutomaton {
 public:
  // Of a text of that many tokens.
  static Bytes BytesFor(std::size_t tokens);

  // Takes memory for that many tokens; for more it grows.
  explicit SuffixAutomaton(std::size_t tokens = 0);

  void Append(TokenId token);
  std::span<const TokenId> text() const { return text_; }

  struct Match {
    std::size_t length = 0;  // of the longest end of the text that occurs before it; 0: none
    std::size_t end = 0;     // behind its first occurrence: what followed it begins there

    bool operator==(const Match&) const = default;
  };
  Match Longest() const;

  Bytes size() const;

 private:
  using State = std::uint32_t;
  using Edge = std::uint32_t;
  static constexpr std::uint32_t kNone = ~0u;

  struct StateData {
    std::uint32_t length = 0;  // of its longest part
    State link = kNone;
    std::uint32_t first_end = 0;  // behind the first place where its parts end
    Edge edges = kNone;           // the first of its edges
  };
  struct EdgeData {
    State from = 0, to = 0;
    TokenId token = 0;
    Edge next = kNone;  // of the same state
  };

  static std::size_t SlotsFor(std::size_t edges);
  std::size_t SlotOf(State from, TokenId token) const;  // where it is, or would be
  Edge Find(State from, TokenId token) const { return slots_[SlotOf(from, token)]; }
  void AddEdge(State from, TokenId token, State to);
  void Grow();
  State Clone(State original, std::uint32_t length);

  std::vector<TokenId> text_;
  std::vector<StateData> states_;
  std::vector<EdgeData> edges_;
  std::vector<Edge> slots_;  // a hash table of edges by state and token
  State last_ = 0;
};

}  // namespace troupe
