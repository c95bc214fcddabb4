#include "base/json_pointer.h"

#include <charconv>
#include <optional>
#include <string>
#include <utility>

namespace troupe {
namespace {

Result<std::string> Unescaped(std::string_view token) {
  std::string text;
  for (std::size_t i = 0; i < token.size(); ++i) {
    if (token[i] != '~') {
      text += token[i];
    } else if (++i < token.size() && (token[i] == '0' || token[i] == '1')) {
      text += token[i] == '0' ? '~' : '/';
    } else {
      return InvalidArgument("'{}': after '~', expected 0 (for ~) or 1 (for /)", token);
    }
  }
  return text;
}

std::optional<std::size_t> IndexIn(std::string_view token, std::size_t size) {
  if (token == "-") return size;
  std::size_t index = 0;
  const auto [end, error] = std::from_chars(token.data(), token.data() + token.size(), index);
  const bool padded = token.size() > 1 && token[0] == '0';
  if (error != std::errc() || end != token.data() + token.size() || padded) return std::nullopt;
  return index;
}

Result<Json*> Child(Json& json, std::string_view token) {
  const std::optional<std::size_t> index = IndexIn(token, json.size());
  if (json.IsArray() || (json.IsNull() && index)) {
    if (!index || *index > json.size()) {
      return InvalidArgument("'{}': no element of {}", token, json.size());
    }
    if (*index == json.size()) json.push_back(Json());
    return &json[*index];
  }
  if (!json.IsObject() && !json.IsNull()) {
    return InvalidArgument("'{}': within {}, expected an object or an array", token, json.Dump());
  }
  TROUPE_ASSIGN_OR_RETURN(const std::string key, Unescaped(token));
  return &json[key];
}

}  // namespace

Status SetAt(Json& json, std::string_view pointer, Json value) {
  Json* at = &json;
  while (!pointer.empty()) {
    if (pointer[0] != '/') return InvalidArgument("'{}', expected '/' and a name", pointer);
    pointer.remove_prefix(1);
    const std::string_view token = pointer.substr(0, pointer.find('/'));
    pointer.remove_prefix(token.size());
    TROUPE_ASSIGN_OR_RETURN(at, Child(*at, token));
  }
  *at = std::move(value);
  return OkStatus();
}

}  // namespace troupe
