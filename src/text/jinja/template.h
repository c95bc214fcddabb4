// A chat template: the Jinja program that a model carries to say how its prompts look. Runs what
// Hugging Face's apply_chat_template runs, with the same result, byte for byte; what it lacks
// (include, import, recursive loops) it refuses. A template may come from anybody: whatever it
// does, Parse and Render return.
#pragma once

#include <ctime>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/json.h"
#include "base/status.h"
#include "text/jinja/limits.h"
#include "text/jinja/marked_text.h"
#include "text/jinja/value.h"

namespace troupe::jinja {

// What a template is given by name, and the time that strftime_now tells; without one a template
// sees no such function.
struct TemplateValues {
  std::vector<std::pair<std::string, Value>> names;
  std::optional<std::tm> now;

  // The members of an object, all from outside.
  static TemplateValues FromJson(const Json& object);
};

class Template {
 public:
  // Errors: "line 3: found 'endif', expected 'endfor'".
  static Result<Template> Parse(std::string_view source);
  Template(Template&&) noexcept;
  Template& operator=(Template&&) noexcept;
  ~Template();

  // Errors: "line 3: ..." with kInvalidArgument for what the template refuses (raise_exception) or
  // does wrong, kResourceExhausted beyond a limit, kUnimplemented for what is not known. Const: any
  // number of threads.
  Result<std::string> Render(const TemplateValues& values, const RenderLimits& limits = {}) const;
  // The same, with the origin of each byte.
  Result<MarkedText> RenderMarked(const TemplateValues& values,
                                  const RenderLimits& limits = {}) const;

 private:
  struct Tree;
  explicit Template(std::unique_ptr<const Tree> tree);

  std::unique_ptr<const Tree> tree_;
};

}  // namespace troupe::jinja
