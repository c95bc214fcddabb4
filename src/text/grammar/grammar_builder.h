// Makes a grammar rule by rule, beside rules for JSON that all may use.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "text/grammar/grammar.h"

namespace troupe {

class GrammarBuilder {
 public:
  GrammarBuilder();  // begins with the rules of json_grammar.h

  // A rule of its own, to be defined later: it may refer to itself.
  RuleId Declare(std::string_view name);
  void Define(RuleId rule, std::vector<GrammarSequence> alternatives);
  GrammarItem Add(std::string_view name, std::vector<GrammarSequence> alternatives);

  // All of another grammar; what it gives stands for its root.
  GrammarItem AddGrammar(const Grammar& part);

  // A rule of json_grammar.h, which must exist.
  GrammarItem Json(std::string_view name) const;

  std::size_t rules() const { return grammar_.rules.size(); }
  Grammar Take(RuleId root) &&;

 private:
  Grammar grammar_;
};

}  // namespace troupe
