// Values as JSON, as Python's json.dumps writes it, and values from the engine's own JSON.
#pragma once

#include <optional>
#include <string>

#include "base/json.h"
#include "text/jinja/value.h"

namespace troupe::jinja {

struct JsonStyle {
  bool ascii = false;                 // \u escapes for all else
  std::optional<std::string> indent;  // for each level; otherwise all is one line
  std::string item_separator = ", ";
  std::string key_separator = ": ";
  bool sorted = false;
};

Result<MarkedText> WriteJson(const Value& value, const JsonStyle& style, Meter& meter);

// Strings get this origin.
Value FromJson(const Json& json, Origin origin);

}  // namespace troupe::jinja
