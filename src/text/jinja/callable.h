// What a template can call: functions that every template has, methods of a value, macros.
#pragma once

#include <string>

#include "text/jinja/value.h"

namespace troupe::jinja {

struct Macro;
struct Scope;

struct Callable {
  enum class Type { kFunction, kMethod, kMacro };
  Type type = Type::kFunction;
  std::string name;
  Value self = {};               // of a method
  const Macro* macro = nullptr;  // lives as long as its template
  Scope* scope = nullptr;        // where the macro was made; the interpreter keeps it
};

// The variable `loop`.
struct Loop {
  Values items;
  std::size_t index = 0;  // counted from 0
  bool has_changed_before = false;
  Values changed = {};  // what loop.changed() was last told; may hold the loop, so it is emptied
  bool has_ended = false;
  int depth0 = 0;
};

}  // namespace troupe::jinja
