// The tools that a request offers, as OpenAI's API lists them: their names, and what their schemas
// say of each parameter.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "base/json.h"
#include "base/status.h"

namespace troupe {

struct Tool {
  std::string name;
  Json parameters;  // a JSON Schema, of an object
  bool is_strict = false;
};

class ToolSet {
 public:
  ToolSet() = default;
  // An array of {"type": "function", "function": {"name", "parameters", "strict"}}.
  // kInvalidArgument names the place of what is not as expected.
  static Result<ToolSet> Of(const Json& tools);

  // With no more of each than answers are read by: names, and which parameters are texts.
  ToolSet ForReading() const;
  // What such a set takes, at most.
  Bytes size_in_memory() const;

  const std::vector<Tool>& all() const { return tools_; }
  bool empty() const { return tools_.empty(); }
  const Tool* Find(std::string_view name) const;

  // The value of a parameter that was written without quotes, as JSON: what its type says that it
  // is, or what it looks like.
  std::string JsonOfArgument(std::string_view tool, std::string_view key,
                             std::string_view value) const;

 private:
  std::vector<Tool> tools_;
};

// Whether a schema allows nothing but texts.
bool IsOnlyText(const Json& schema);

}  // namespace troupe
