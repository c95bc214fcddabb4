#include "troupe/completion.h"

#include <fmt/format.h>

namespace troupe {

CompletedValue ValueOf(const Option& option) {
  CompletedValue value;
  if (option.takes() == Option::Takes::kNothing) return value;
  value.words = option.choices().empty() ? option.suggestions() : option.choices();
  // What a value is called says what it names.
  const auto is_called = [&option](std::string_view part) {
    return option.type().find(part) != std::string::npos;
  };
  value.files = is_called("FILE") || is_called("TRACE") || is_called("PATH");
  value.folders = is_called("DIR");
  value.models = option.names_models();
  return value;
}

std::string_view Brief(std::string_view help) {
  int depth = 0;  // of parentheses
  bool words = false;
  for (std::size_t i = 0; i + 1 < help.size(); ++i) {
    const char c = help[i];
    if (c == '(') ++depth;
    if (c == ')') --depth;
    words = words || c == ' ';
    if (help[i + 1] != ' ' || depth > 0) continue;
    // One word before a colon says too little: "Lossy: ...".
    if (c == '.' || c == ';' || (c == ':' && words)) return help.substr(0, i);
  }
  return help;
}

std::string ListedModels(std::string_view program) {
  return fmt::format(
      "{} list --json - 2> /dev/null | grep -o '\"name\": *\"[^\"]*\"' | "
      "cut -d '\"' -f 4 | sed 's|.*/||'",
      program);
}

std::string ShellQuoted(std::string_view text) {
  std::string quoted = "'";
  for (const char c : text) {
    if (c == '\'') {
      quoted += "'\\''";
    } else {
      quoted += c;
    }
  }
  return quoted + "'";
}

}  // namespace troupe
