#include "text/grammar/automaton.h"

#include <algorithm>
#include <bitset>
#include <string_view>
#include <utility>

#include "text/grammar/grammar_facts.h"
#include "text/grammar/utf8_ranges.h"

namespace troupe {

class AutomatonCompiler {
  using Kind = AutomatonNode::Kind;

 public:
  AutomatonCompiler(const Grammar& grammar, std::size_t most_nodes)
      : grammar_(grammar), facts_(FindFacts(grammar)), most_nodes_(most_nodes) {}

  Result<std::shared_ptr<const Automaton>> Compile() {
    Add({.kind = Kind::kReturn});
    FindUsedRules();
    // Calls name rules until all rules have their entries.
    std::vector<NodeId> entries(grammar_.rules.size(), Automaton::kReturnNode);
    for (const RuleId rule : used_) {
      entries[rule] = BuildRule(grammar_.rules[rule]);
      if (too_large_) {
        return Error(Code::kResourceExhausted,
                     "the grammar takes more than {} states; rule '{}' is one too many",
                     most_nodes_, grammar_.rules[rule].name);
      }
    }
    for (AutomatonNode& node : made_->nodes_) {
      if (node.kind == Kind::kCall || node.body_is_rule) node.body = entries[node.body];
    }
    made_->start_ = entries[grammar_.root];
    FindClasses();
    made_->nodes_.shrink_to_fit();
    made_->edges_.shrink_to_fit();
    made_->targets_.shrink_to_fit();
    return std::shared_ptr<const Automaton>(std::move(made_));
  }

 private:
  void FindUsedRules() {
    std::vector<bool> seen(grammar_.rules.size(), false);
    used_ = {grammar_.root};
    seen[grammar_.root] = true;
    for (std::size_t i = 0; i < used_.size(); ++i) {
      for (const GrammarSequence& sequence : grammar_.rules[used_[i]].alternatives) {
        if (!IsProductive(sequence, facts_)) continue;
        for (const GrammarItem& item : sequence) {
          if (item.kind != GrammarItem::Kind::kRule || seen[item.rule]) continue;
          if (item.most == 0 || !IsProductive(item, facts_)) continue;
          seen[item.rule] = true;
          used_.push_back(item.rule);
        }
      }
    }
  }

  NodeId Add(AutomatonNode node) {
    if (made_->nodes_.size() >= most_nodes_) {
      too_large_ = true;
      return Automaton::kReturnNode;
    }
    made_->nodes_.push_back(node);
    return static_cast<NodeId>(made_->nodes_.size() - 1);
  }

  NodeId AddBytes(std::span<const ByteEdge> edges) {
    AutomatonNode node = {.kind = Kind::kBytes};
    node.first = static_cast<std::uint32_t>(made_->edges_.size());
    node.count = static_cast<std::uint32_t>(edges.size());
    if (!too_large_) made_->edges_.insert(made_->edges_.end(), edges.begin(), edges.end());
    return Add(node);
  }

  NodeId AddFork(std::span<const NodeId> targets) {
    if (targets.size() == 1) return targets[0];
    AutomatonNode node = {.kind = Kind::kFork};
    node.first = static_cast<std::uint32_t>(made_->targets_.size());
    node.count = static_cast<std::uint32_t>(targets.size());
    if (!too_large_) made_->targets_.insert(made_->targets_.end(), targets.begin(), targets.end());
    return Add(node);
  }

  // Alternatives that are one text each share their beginnings: thousands of an enumeration are
  // read like one.
  NodeId BuildRule(const GrammarRule& rule) {
    std::vector<std::string_view> texts;
    std::vector<NodeId> entries;
    for (const GrammarSequence& sequence : rule.alternatives) {
      if (!IsProductive(sequence, facts_)) continue;
      const bool is_text = sequence.size() == 1 && sequence[0].kind == GrammarItem::Kind::kText &&
                           sequence[0].least == 1 && sequence[0].most == 1;
      if (is_text) {
        texts.push_back(sequence[0].text);
      } else {
        entries.push_back(BuildSequence(sequence));
      }
    }
    std::ranges::sort(texts);
    texts.erase(std::unique(texts.begin(), texts.end()), texts.end());
    if (!texts.empty()) entries.push_back(BuildTexts(texts, Automaton::kReturnNode));
    return AddFork(entries);
  }

  NodeId BuildSequence(const GrammarSequence& sequence) {
    NodeId next = Automaton::kReturnNode;
    for (std::size_t i = sequence.size(); i-- > 0 && !too_large_;) {
      next = BuildRepeated(sequence[i], next);
    }
    return next;
  }

  NodeId BuildRepeated(const GrammarItem& item, NodeId next) {
    if (item.most == 0 || !IsProductive(item, facts_)) return next;  // then least is 0, too
    if (item.kind == GrammarItem::Kind::kText && item.text.empty()) return next;
    const bool is_rule = item.kind == GrammarItem::Kind::kRule;
    if (item.most == 1) {
      const NodeId once = is_rule ? Add({.kind = Kind::kCall, .body = item.rule, .next = next})
                                  : BuildCharacters(item, next);
      if (item.least == 1) return once;
      return AddFork(std::vector<NodeId>{once, next});
    }
    // The body of something that may be empty need not be counted up to `least`.
    const std::uint32_t least = is_rule && facts_.nullable[item.rule] ? 0 : item.least;
    const NodeId loop = Add({.kind = Kind::kLoop,
                             .body_is_rule = is_rule,
                             .body = is_rule ? item.rule : 0,
                             .next = next});
    if (!is_rule) {
      const NodeId body = BuildCharacters(item, loop);
      made_->nodes_[loop].body = body;
    }
    return Add({.kind = Kind::kCount, .next = loop, .least = least, .most = item.most});
  }

  NodeId BuildCharacters(const GrammarItem& item, NodeId next) {
    if (item.kind == GrammarItem::Kind::kText) {
      return BuildTexts(std::vector<std::string_view>{item.text}, next);
    }
    const std::vector<Utf8Sequence> sequences = Utf8Sequences(item.set);
    return BuildSet(sequences, 0, next);
  }

  // Sequences that agree on the ranges before `depth`.
  NodeId BuildSet(std::span<const Utf8Sequence> sequences, std::size_t depth, NodeId next) {
    std::vector<ByteEdge> edges;
    for (std::size_t i = 0; i < sequences.size();) {
      const ByteRange range = sequences[i].ranges[depth];
      std::size_t end = i + 1;
      while (end < sequences.size() && sequences[end].ranges[depth] == range) ++end;
      const bool is_last = sequences[i].length == depth + 1;
      const NodeId target =
          is_last ? next : BuildSet(sequences.subspan(i, end - i), depth + 1, next);
      edges.push_back({range.first, range.last, target});
      i = end;
    }
    return AddBytes(edges);
  }

  // Sorted texts, each once. A stack of its own: a text may be megabytes long.
  NodeId BuildTexts(std::span<const std::string_view> texts, NodeId next) {
    struct Open {
      std::vector<ByteEdge> edges;
      bool ends = false;  // a text ends here
    };
    std::vector<Open> open(1);  // by depth, along the text read last
    const auto close = [&](std::size_t depth, std::string_view text) {
      while (open.size() > depth + 1 && !too_large_) {
        const NodeId made = CloseText(open.back().edges, open.back().ends, next);
        open.pop_back();
        const auto byte = static_cast<std::uint8_t>(text[open.size() - 1]);
        open.back().edges.push_back({byte, byte, made});
      }
    };
    std::string_view last;
    for (const std::string_view text : texts) {
      const auto shared =
          static_cast<std::size_t>(std::ranges::mismatch(last, text).in1 - last.begin());
      close(shared, last);
      if (too_large_) return next;
      open.resize(text.size() + 1);
      open.back().ends = true;
      last = text;
    }
    close(0, last);
    return CloseText(open[0].edges, open[0].ends, next);
  }

  NodeId CloseText(const std::vector<ByteEdge>& edges, bool ends, NodeId next) {
    if (edges.empty()) return next;
    const NodeId bytes = AddBytes(edges);
    return ends ? AddFork(std::vector<NodeId>{bytes, next}) : bytes;
  }

  void FindClasses() {
    std::bitset<257> begins;  // a class begins at this byte
    begins[0] = true;
    for (const ByteEdge& edge : made_->edges_) {
      begins[edge.first] = true;
      begins[edge.last + std::size_t{1}] = true;
    }
    std::size_t classes = 0;
    for (std::size_t byte = 0; byte < 256; ++byte) {
      if (begins[byte]) ++classes;
      made_->class_of_[byte] = static_cast<std::uint8_t>(classes - 1);
    }
    made_->classes_ = classes;
  }

  const Grammar& grammar_;
  const GrammarFacts facts_;
  const std::size_t most_nodes_;
  bool too_large_ = false;
  std::vector<RuleId> used_;
  std::shared_ptr<Automaton> made_ = std::shared_ptr<Automaton>(new Automaton());
};

Bytes Automaton::bytes() const {
  return Bytes(sizeof(*this) + nodes_.capacity() * sizeof(AutomatonNode) +
               edges_.capacity() * sizeof(ByteEdge) + targets_.capacity() * sizeof(NodeId));
}

Result<std::shared_ptr<const Automaton>> Automaton::Compile(const Grammar& grammar,
                                                            std::size_t most_nodes) {
  TROUPE_RETURN_IF_ERROR(Validate(grammar));
  return AutomatonCompiler(grammar, most_nodes).Compile();
}

}  // namespace troupe
