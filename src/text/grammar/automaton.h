// A grammar compiled for reading byte by byte: a pushdown automaton whose nodes either read a byte,
// or say where to go on without reading. Immutable, so that any number of matchers may share one.
// stack_pool.h runs it.
//
// Each rule is a small graph that ends in kReturn. What repeats is not unrolled: a node counts, and
// the two counters belong to the stack cell that is in it. Alternatives that can match nothing are
// left out, so that every accepted beginning has an end.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/bytes.h"
#include "base/status.h"
#include "text/grammar/grammar.h"

namespace troupe {

using NodeId = std::uint32_t;

struct AutomatonNode {
  enum class Kind : std::uint8_t {
    kReturn,  // the rule has ended
    kBytes,   // reads a byte: the edges from `first`
    kFork,    // goes on at each of the targets from `first`
    kCall,    // the rule that begins at `body`, then `next`
    kCount,   // sets the counters to least and most, then `next`, a kLoop
    kLoop,    // the body once more while the counters allow it, or `next`
  };

  Kind kind = Kind::kReturn;
  bool body_is_rule =
      false;  // kLoop: the body is called; else it lies in this rule and leads back here
  std::uint32_t first = 0;
  std::uint32_t count = 0;  // of edges or targets
  NodeId body = 0;
  NodeId next = 0;
  std::uint32_t least = 0;
  std::uint32_t most = 0;
};

struct ByteEdge {
  std::uint8_t first = 0;
  std::uint8_t last = 0;
  NodeId target = 0;
};

class Automaton {
 public:
  static constexpr NodeId kReturnNode = 0;

  // Fails where Validate(grammar) does, and with kResourceExhausted if it takes more than
  // `most_nodes`.
  static Result<std::shared_ptr<const Automaton>> Compile(const Grammar& grammar,
                                                          std::size_t most_nodes = 1'000'000);

  const AutomatonNode& node(NodeId id) const { return nodes_[id]; }
  NodeId start() const { return start_; }
  std::size_t size() const { return nodes_.size(); }
  Bytes bytes() const;  // of memory
  std::span<const ByteEdge> EdgesOf(const AutomatonNode& node) const {
    return std::span(edges_).subspan(node.first, node.count);
  }
  std::span<const NodeId> TargetsOf(const AutomatonNode& node) const {
    return std::span(targets_).subspan(node.first, node.count);
  }

  // Bytes that no edge tells apart have the same class.
  std::uint8_t ClassOf(std::uint8_t byte) const { return class_of_[byte]; }
  std::size_t classes() const { return classes_; }

 private:
  friend class AutomatonCompiler;
  Automaton() = default;

  std::vector<AutomatonNode> nodes_;
  std::vector<ByteEdge> edges_;
  std::vector<NodeId> targets_;
  NodeId start_ = 0;
  std::array<std::uint8_t, 256> class_of_ = {};
  std::size_t classes_ = 0;
};

}  // namespace troupe
