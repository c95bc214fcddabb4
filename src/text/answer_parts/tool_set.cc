#include "text/answer_parts/tool_set.h"

#include <algorithm>
#include <utility>

namespace troupe {
namespace {

constexpr std::size_t kMostTools = 1024;
constexpr std::size_t kLongestName = 256;

Result<Tool> ToolOf(const Json& entry, std::size_t i) {
  const Json* type = entry.Find("type");
  if (type == nullptr || *type != Json("function")) {
    return InvalidArgument("tools[{}].type: {}, expected 'function'", i,
                           type == nullptr ? "nothing" : type->Dump());
  }
  const Json* function = entry.Find("function");
  const Json* name = function == nullptr ? nullptr : function->Find("name");
  if (name == nullptr || !name->IsString() || name->AsString().empty() ||
      name->AsString().size() > kLongestName) {
    return InvalidArgument("tools[{}].function.name: expected a name of 1 to {} bytes", i,
                           kLongestName);
  }
  Tool tool{.name = name->AsString(),
            .parameters = Json{{"type", "object"}, {"properties", Json::Object()}}};
  if (const Json* schema = function->Find("parameters"); schema != nullptr && !schema->IsNull()) {
    if (!schema->IsObject()) {
      return InvalidArgument("tools[{}].function.parameters: expected a JSON Schema, an object", i);
    }
    if (schema->size() > 0) tool.parameters = *schema;
  }
  if (const Json* strict = function->Find("strict"); strict != nullptr && strict->IsBool()) {
    tool.is_strict = strict->AsBool();
  }
  return tool;
}

}  // namespace

Result<ToolSet> ToolSet::Of(const Json& tools) {
  ToolSet set;
  if (tools.IsNull()) return set;
  if (!tools.IsArray() || tools.size() > kMostTools) {
    return InvalidArgument("tools: expected an array of at most {}", kMostTools);
  }
  for (std::size_t i = 0; i < tools.size(); ++i) {
    TROUPE_ASSIGN_OR_RETURN(Tool tool, ToolOf(tools[i], i));
    if (set.Find(tool.name) != nullptr) {
      return InvalidArgument("tools[{}].function.name: '{}' is there twice", i, tool.name);
    }
    set.tools_.push_back(std::move(tool));
  }
  return set;
}

ToolSet ToolSet::ForReading() const {
  ToolSet slim;
  for (const Tool& tool : tools_) {
    Json texts = Json::Object();
    const Json* const all = tool.parameters.Find("properties");
    if (all != nullptr && all->IsObject()) {
      for (const Json::Member& member : all->members()) {
        if (IsOnlyText(member.value)) texts[member.key] = Json{{"type", "string"}};
      }
    }
    slim.tools_.push_back({.name = tool.name,
                           .parameters = Json{{"properties", std::move(texts)}},
                           .is_strict = tool.is_strict});
  }
  return slim;
}

Bytes ToolSet::size_in_memory() const {
  constexpr std::size_t kOfTool = sizeof(Tool) + 256, kOfParameter = 320;
  std::size_t bytes = 0;
  for (const Tool& tool : tools_) {
    bytes += kOfTool + tool.name.size();
    const Json* const all = tool.parameters.Find("properties");
    if (all == nullptr || !all->IsObject()) continue;
    for (const Json::Member& member : all->members()) bytes += kOfParameter + member.key.size();
  }
  return Bytes(bytes);
}

const Tool* ToolSet::Find(std::string_view name) const {
  const auto found = std::ranges::find(tools_, name, &Tool::name);
  return found == tools_.end() ? nullptr : &*found;
}

std::string ToolSet::JsonOfArgument(std::string_view tool, std::string_view key,
                                    std::string_view value) const {
  const Tool* const known = Find(tool);
  const Json* const all = known == nullptr ? nullptr : known->parameters.Find("properties");
  const Json* const schema = all == nullptr ? nullptr : all->Find(key);
  if (schema != nullptr && IsOnlyText(*schema)) return Json(value).Dump();
  if (const auto parsed = Json::Parse(value)) return parsed->Dump();
  return Json(value).Dump();
}

bool IsOnlyText(const Json& schema) {
  if (const Json* type = schema.Find("type")) return *type == Json("string");
  const Json* values = schema.Find("enum");
  return values != nullptr && values->IsArray() &&
         std::ranges::all_of(values->items(), &Json::IsString);
}

}  // namespace troupe
