// Texts of JSON joined to one another where their values would take many times as much memory.
#pragma once

#include <string>
#include <string_view>

namespace troupe {

// Adds a member behind those of `object`, the text of an object that has some; `value` is the text
// of its value.
inline void AppendMember(std::string& object, std::string_view key, std::string_view value) {
  object.back() = ',';  // in place of the brace
  object += '"';
  object += key;
  object += "\":";
  object += value;
  object += '}';
}

}  // namespace troupe
