#include "text/grammar/grammar_facts.h"

#include <algorithm>
#include <cstdint>

#include "text/grammar/utf8_ranges.h"

namespace troupe {
namespace {

// Grows `holds` to the least set of rules for which some alternative has only items that hold.
template <typename ItemHolds>
std::vector<bool> LeastFixpoint(const Grammar& grammar, ItemHolds item_holds) {
  std::vector<bool> holds(grammar.rules.size(), false);
  std::vector<std::vector<RuleId>> users(grammar.rules.size());
  std::vector<RuleId> pending;
  for (RuleId rule = 0; rule < grammar.rules.size(); ++rule) {
    pending.push_back(rule);
    for (const GrammarSequence& sequence : grammar.rules[rule].alternatives) {
      for (const GrammarItem& item : sequence) {
        if (item.kind == GrammarItem::Kind::kRule) users[item.rule].push_back(rule);
      }
    }
  }
  while (!pending.empty()) {
    const RuleId rule = pending.back();
    pending.pop_back();
    if (holds[rule]) continue;
    const auto& alternatives = grammar.rules[rule].alternatives;
    holds[rule] = std::ranges::any_of(alternatives, [&](const GrammarSequence& sequence) {
      return std::ranges::all_of(sequence,
                                 [&](const GrammarItem& item) { return item_holds(item, holds); });
    });
    if (holds[rule]) pending.insert(pending.end(), users[rule].begin(), users[rule].end());
  }
  return holds;
}

// Calls visit(rule) for each rule with which this one can begin, until it returns false.
template <typename Visit>
void ForEachFirstRule(const GrammarRule& rule, const GrammarFacts& facts, Visit visit) {
  for (const GrammarSequence& sequence : rule.alternatives) {
    for (const GrammarItem& item : sequence) {
      if (item.kind == GrammarItem::Kind::kRule && item.most > 0 && !visit(item.rule)) return;
      if (!IsNullable(item, facts)) break;
    }
  }
}

}  // namespace

GrammarFacts FindFacts(const Grammar& grammar) {
  using Kind = GrammarItem::Kind;
  GrammarFacts facts;
  facts.nullable = LeastFixpoint(grammar, [](const GrammarItem& item, const auto& nullable) {
    return item.least == 0 || (item.kind == Kind::kRule && nullable[item.rule]) ||
           (item.kind == Kind::kText && item.text.empty());
  });
  facts.productive = LeastFixpoint(grammar, [](const GrammarItem& item, const auto& productive) {
    if (item.least == 0 || item.kind == Kind::kText) return true;
    return item.kind == Kind::kRule ? static_cast<bool>(productive[item.rule])
                                    : HasCharacters(item.set);
  });
  return facts;
}

bool IsNullable(const GrammarItem& item, const GrammarFacts& facts) {
  using Kind = GrammarItem::Kind;
  return item.least == 0 || (item.kind == Kind::kRule && facts.nullable[item.rule]) ||
         (item.kind == Kind::kText && item.text.empty());
}

bool IsProductive(const GrammarItem& item, const GrammarFacts& facts) {
  using Kind = GrammarItem::Kind;
  if (item.kind == Kind::kText) return true;
  return item.kind == Kind::kRule ? facts.productive[item.rule] : HasCharacters(item.set);
}

bool IsProductive(const GrammarSequence& sequence, const GrammarFacts& facts) {
  return std::ranges::all_of(sequence, [&](const GrammarItem& item) {
    return item.least == 0 || IsProductive(item, facts);
  });
}

// Depth-first with a stack of its own: grammars may be deeper than the program's stack.
std::vector<RuleId> FindLeftRecursion(const Grammar& grammar, const GrammarFacts& facts) {
  enum class Mark : std::uint8_t { kNew, kOpen, kDone };
  std::vector<std::vector<RuleId>> firsts(grammar.rules.size());
  for (RuleId rule = 0; rule < grammar.rules.size(); ++rule) {
    ForEachFirstRule(grammar.rules[rule], facts, [&](RuleId first) {
      firsts[rule].push_back(first);
      return true;
    });
  }
  std::vector<Mark> marks(grammar.rules.size(), Mark::kNew);
  std::vector<RuleId> path;
  std::vector<std::size_t> next;  // of each rule of the path: which of its first rules comes next
  for (RuleId start = 0; start < grammar.rules.size(); ++start) {
    if (marks[start] != Mark::kNew) continue;
    path = {start};
    next = {0};
    marks[start] = Mark::kOpen;
    while (!path.empty()) {
      const auto& of_rule = firsts[path.back()];
      if (next.back() == of_rule.size()) {
        marks[path.back()] = Mark::kDone;
        path.pop_back();
        next.pop_back();
        continue;
      }
      const RuleId first = of_rule[next.back()++];
      if (marks[first] == Mark::kOpen) {
        path.erase(path.begin(), std::ranges::find(path, first));
        return path;
      }
      if (marks[first] == Mark::kDone) continue;
      marks[first] = Mark::kOpen;
      path.push_back(first);
      next.push_back(0);
    }
  }
  return {};
}

}  // namespace troupe
