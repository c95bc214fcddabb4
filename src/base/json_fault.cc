#include "base/json_fault.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <span>

namespace troupe {
namespace {

// What stands between the two marks, and the rest behind them; nothing if one is missing.
struct Cut {
  std::string_view before, behind;
};
std::optional<Cut> CutAt(std::string_view text, std::string_view mark) {
  const std::size_t at = text.find(mark);
  if (at == std::string_view::npos) return std::nullopt;
  return Cut{text.substr(0, at), text.substr(at + mark.size())};
}

struct Renamed {
  std::string_view library, plain;
};

// Where the parser was, as what it could go on with.
constexpr Renamed kContexts[] = {
    {"value", "a value"},
    {"object key", "a key in double quotes"},
    {"object separator", "':' behind a key"},
    {"object", "',' or '}'"},
    {"array", "',' or ']'"},
};

// Kinds of tokens.
constexpr Renamed kTokens[] = {
    {"end of input", "the end of the text"},
    {"'[', '{', or a literal", "a value"},
    {"string literal", "a text in double quotes"},
    {"number literal", "a number"},
    {"true literal", "true"},
    {"false literal", "false"},
    {"null literal", "null"},
};

std::string_view Plain(std::span<const Renamed> names, std::string_view name) {
  const auto found = std::ranges::find(names, name, &Renamed::library);
  return found == names.end() ? name : found->plain;
}

// "unexpected '}'; expected '[', '{', or a literal"
std::string ExplainToken(std::string_view token, std::string_view context) {
  const std::optional<Cut> told = CutAt(token, "; expected ");
  return fmt::format("found {}, expected {}", Plain(kTokens, told ? told->before : token),
                     told ? Plain(kTokens, told->behind) : Plain(kContexts, context));
}

// The library reads on behind a key: of "'"a": o'" the last word is what it did not take.
std::string LastWord(std::string_view read) {
  if (read.size() < 2) return std::string(read);
  const std::string_view text = read.substr(1, read.size() - 2);  // within its quotes
  const std::size_t before = text.find_last_of(" \t\r\n,:[]{}");
  const bool is_word = before != std::string_view::npos && before + 1 < text.size();
  return fmt::format("'{}'", is_word ? text.substr(before + 1) : text);
}

// "invalid literal; last read: 'ol'"
std::string ExplainText(std::string_view fault, std::string_view context) {
  const std::optional<Cut> read = CutAt(fault, "; last read: ");
  if (!read) return std::string(fault);
  if (read->before == "invalid literal") {
    return fmt::format("found {}, expected {}", LastWord(read->behind), Plain(kContexts, context));
  }
  return fmt::format("{}, found {}", read->before, read->behind);
}

}  // namespace

std::string ExplainJsonFault(std::string_view what) {
  constexpr std::string_view kUnexpected = "unexpected ";
  if (const auto name = CutAt(what, "] "); name && what.starts_with('[')) what = name->behind;
  const std::optional<Cut> begin = CutAt(what, "parse error at ");
  const std::optional<Cut> place =
      begin ? CutAt(begin->behind, ": syntax error while parsing ") : std::nullopt;
  const std::optional<Cut> fault = place ? CutAt(place->behind, " - ") : std::nullopt;
  if (!fault) return std::string(what);
  const std::string_view token = fault->behind;
  return fmt::format("{}: {}", place->before,
                     token.starts_with(kUnexpected)
                         ? ExplainToken(token.substr(kUnexpected.size()), fault->before)
                         : ExplainText(token, fault->before));
}

}  // namespace troupe
