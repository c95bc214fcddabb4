#include "text/jinja/template.h"

#include "text/jinja/interpreter.h"
#include "text/jinja/json_text.h"
#include "text/jinja/parser.h"

namespace troupe::jinja {

struct Template::Tree {
  Block block;
};

TemplateValues TemplateValues::FromJson(const Json& object) {
  TemplateValues values;
  for (const Json::Member& member : object.members()) {
    values.names.emplace_back(member.key, jinja::FromJson(member.value, Origin::kOutside));
  }
  return values;
}

Template::Template(std::unique_ptr<const Tree> tree) : tree_(std::move(tree)) {}
Template::Template(Template&&) noexcept = default;
Template& Template::operator=(Template&&) noexcept = default;
Template::~Template() = default;

Result<Template> Template::Parse(std::string_view source) {
  TROUPE_ASSIGN_OR_RETURN(Block block, ParseTemplate(source));
  return Template(std::make_unique<const Tree>(Tree{std::move(block)}));
}

Result<MarkedText> Template::RenderMarked(const TemplateValues& values,
                                          const RenderLimits& limits) const {
  auto outside = std::make_shared<Scope>();
  for (const auto& [name, value] : values.names) outside->Set(name, value);
  return Interpreter(std::move(outside), values.now, limits).Run(tree_->block);
}

Result<std::string> Template::Render(const TemplateValues& values,
                                     const RenderLimits& limits) const {
  TROUPE_ASSIGN_OR_RETURN(const MarkedText text, RenderMarked(values, limits));
  return text.bytes();
}

}  // namespace troupe::jinja
