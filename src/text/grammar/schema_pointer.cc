#include "text/grammar/schema_pointer.h"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

namespace troupe {
namespace {

std::optional<std::string> FindPointer(const Json& in, const Json& target) {
  if (&in == &target) return "";
  if (in.IsArray()) {
    for (std::size_t i = 0; i < in.size(); ++i) {
      if (auto rest = FindPointer(in[i], target)) return fmt::format("/{}{}", i, *rest);
    }
  } else if (in.IsObject()) {
    for (const Json::Member& member : in.members()) {
      auto rest = FindPointer(member.value, target);
      if (!rest) continue;
      std::string key;
      for (const char c : member.key) {
        key += c == '~' ? "~0" : c == '/' ? "~1" : std::string(1, c);
      }
      return fmt::format("/{}{}", key, *rest);
    }
  }
  return std::nullopt;
}

// Undoes what pointers write for '~' and '/', and URLs for '%'.
std::string UnescapedPart(std::string_view part) {
  constexpr auto kEscapes = std::to_array<std::pair<std::string_view, char>>(
      {{"~0", '~'}, {"~1", '/'}, {"%25", '%'}, {"%24", '$'}, {"%20", ' '}});
  std::string out;
  while (!part.empty()) {
    const auto escape = std::ranges::find_if(
        kEscapes, [&](const auto& known) { return part.starts_with(known.first); });
    const bool is_escape = escape != kEscapes.end();
    out += is_escape ? escape->second : part[0];
    part.remove_prefix(is_escape ? escape->first.size() : 1);
  }
  return out;
}

const Json* Descend(const Json& json, const std::string& part) {
  if (!json.IsArray()) return json.Find(part);
  const bool is_index = !part.empty() && part.size() < 8 &&
                        std::ranges::all_of(part, [](char c) { return c >= '0' && c <= '9'; });
  if (!is_index || std::stoul(part) >= json.size()) return nullptr;
  return &json[std::stoul(part)];
}

}  // namespace

std::string PointerTo(const Json& document, const Json& value) {
  return fmt::format("#{}", FindPointer(document, value).value_or(""));
}

Result<const Json*> FollowReference(const Json& document, std::string_view reference) {
  std::string_view rest = reference;
  if (!rest.starts_with("#") || (rest.size() > 1 && rest[1] != '/')) {
    return InvalidArgument("'{}', expected a pointer within the schema as '#/$defs/name'",
                           reference);
  }
  rest.remove_prefix(1);
  const Json* at = &document;
  while (!rest.empty()) {
    const std::size_t end = std::min(rest.find('/', 1), rest.size());
    at = Descend(*at, UnescapedPart(rest.substr(1, end - 1)));
    if (at == nullptr) return InvalidArgument("'{}' leads nowhere", reference);
    rest.remove_prefix(end);
  }
  if (!IsSchema(*at)) return InvalidArgument("'{}' is no schema", reference);
  return at;
}

bool IsSchema(const Json& json) { return json.IsObject() || json.IsBool(); }

bool IsListOfSchemas(const Json& json) {
  return json.IsArray() && std::ranges::all_of(json.items(), IsSchema);
}

Status SchemaError(const std::string& pointer, std::string_view keyword, std::string_view message) {
  return InvalidArgument("schema '{}': keyword '{}': {}", pointer, keyword, message);
}

}  // namespace troupe
