// Texts of JSON joined to one another where their values would take many times as much memory.
// `object` is always the text of an object that has some members.
#pragma once

#include <string>
#include <string_view>

namespace troupe {

// The text goes on with the value of one more member, and the brace that ends the object.
inline void OpenMember(std::string& object, std::string_view key) {
  object.back() = ',';  // in place of the brace
  object += '"';
  object += key;
  object += "\":";
}

inline void AppendMember(std::string& object, std::string_view key, std::string_view value) {
  OpenMember(object, key);
  object += value;
  object += '}';
}

// Those of another object.
inline void AppendMembers(std::string& object, std::string_view more) {
  object.back() = ',';
  object += more.substr(1);
}

}  // namespace troupe
