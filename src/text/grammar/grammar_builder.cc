#include "text/grammar/grammar_builder.h"

#include <fmt/core.h>

#include <algorithm>

#include "base/check.h"
#include "text/grammar/json_grammar.h"

namespace troupe {

GrammarBuilder::GrammarBuilder() : grammar_(JsonGrammar()) {}

RuleId GrammarBuilder::Declare(std::string_view name) {
  const auto id = static_cast<RuleId>(grammar_.rules.size());
  grammar_.rules.push_back({.name = fmt::format("{}-{}", name, id)});
  return id;
}

void GrammarBuilder::Define(RuleId rule, std::vector<GrammarSequence> alternatives) {
  grammar_.rules[rule].alternatives = std::move(alternatives);
}

GrammarItem GrammarBuilder::Add(std::string_view name, std::vector<GrammarSequence> alternatives) {
  const RuleId rule = Declare(name);
  Define(rule, std::move(alternatives));
  return GrammarItem::Rule(rule);
}

GrammarItem GrammarBuilder::Json(std::string_view name) const {
  const auto found = std::ranges::find(grammar_.rules, name, &GrammarRule::name);
  TROUPE_CHECK(found != grammar_.rules.end());
  return GrammarItem::Rule(static_cast<RuleId>(found - grammar_.rules.begin()));
}

Grammar GrammarBuilder::Take(RuleId root) && {
  grammar_.root = root;
  return std::move(grammar_);
}

}  // namespace troupe
