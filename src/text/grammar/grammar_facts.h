// What can be known of a grammar's rules before any text: which match the empty text, which match
// any text at all, and whether one begins with itself.
#pragma once

#include <vector>

#include "text/grammar/grammar.h"

namespace troupe {

struct GrammarFacts {
  std::vector<bool> nullable;    // by rule: matches the empty text
  std::vector<bool> productive;  // by rule: matches some text
};

// Every reference must name a rule.
GrammarFacts FindFacts(const Grammar& grammar);

bool IsNullable(const GrammarItem& item, const GrammarFacts& facts);
bool IsProductive(const GrammarItem& item, const GrammarFacts& facts);
bool IsProductive(const GrammarSequence& sequence, const GrammarFacts& facts);

// The rules through which a rule begins with itself, in order; empty if none does.
std::vector<RuleId> FindLeftRecursion(const Grammar& grammar, const GrammarFacts& facts);

}  // namespace troupe
