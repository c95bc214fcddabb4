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

GrammarItem GrammarBuilder::AddGrammar(const Grammar& part) {
  // Grammars that a builder made begin with the same rules for JSON: one copy serves all.
  const std::size_t shared = JsonGrammar().rules.size();
  const bool shares = part.rules.size() >= shared &&
                      std::equal(part.rules.begin(), part.rules.begin() + static_cast<long>(shared),
                                 grammar_.rules.begin());
  const auto first = static_cast<RuleId>(shares ? shared : 0);
  const auto offset = static_cast<RuleId>(grammar_.rules.size()) - first;
  const auto id_of = [&](RuleId rule) { return rule < first ? rule : rule + offset; };
  for (RuleId rule = first; rule < part.rules.size(); ++rule) {
    GrammarRule copy = part.rules[rule];
    copy.name = fmt::format("{}-{}", copy.name, grammar_.rules.size());
    for (GrammarSequence& sequence : copy.alternatives) {
      for (GrammarItem& item : sequence) {
        if (item.kind == GrammarItem::Kind::kRule) item.rule = id_of(item.rule);
      }
    }
    grammar_.rules.push_back(std::move(copy));
  }
  return GrammarItem::Rule(id_of(part.root));
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
