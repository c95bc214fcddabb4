// Rules for JSON objects whose properties come in a fixed order, some of them left out, and then
// others with any names but those.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "text/grammar/grammar_builder.h"

namespace troupe {

struct PropertyRule {
  std::string name;
  GrammarItem value;
  bool is_required = false;
};

// `additional`: what properties with other names hold; nothing if there may be none.
GrammarItem AddObject(const std::vector<PropertyRule>& properties,
                      const std::optional<GrammarItem>& additional, GrammarBuilder& builder);

// A JSON string that says none of these texts, however it is escaped.
GrammarItem AddOtherNames(std::vector<std::string> names, GrammarBuilder& builder);

}  // namespace troupe
