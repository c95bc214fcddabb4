// The arguments of a call, and how a function takes them: by position or by name, each once, and
// none that it does not know.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "text/jinja/value.h"

namespace troupe::jinja {

struct Arguments {
  Values positional;
  std::vector<std::pair<std::string, Value>> named;
};

// Asks for the parameters in their order. The first error is kept and Finish() tells it, so that a
// function reads all its parameters first.
class ArgumentReader {
 public:
  ArgumentReader(std::string_view function, const Arguments& given)
      : function_(function), given_(given) {}

  const Value* Optional(std::string_view parameter);  // null if it is not given
  Value Required(std::string_view parameter);
  Value Or(std::string_view parameter, Value otherwise);
  bool Flag(std::string_view parameter, bool otherwise);
  std::int64_t Int(std::string_view parameter, std::int64_t otherwise);
  // Null for an argument that is not given or none; an error for what is no string.
  const MarkedText* Text(std::string_view parameter);

  // An error if one was missing, or of another kind, or is left over.
  Status Finish() const;

 private:
  void Fail(std::string message);

  std::string_view function_;
  const Arguments& given_;
  std::size_t position_ = 0;
  std::size_t taken_by_name_ = 0;
  Status status_;
};

}  // namespace troupe::jinja
