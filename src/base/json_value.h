// Reads JSON with errors that say where and what was expected: every getter names the place
// ("servers[2].devices[0].memory"). Throws JsonError within the reader that ReadJson runs, which
// turns it into a Status; nothing else throws or catches it.
#pragma once

#include <fmt/format.h>

#include <cmath>
#include <cstdint>
#include <initializer_list>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <string_view>

#include "base/bytes.h"
#include "base/status.h"

namespace troupe {

using OrderedJson = nlohmann::ordered_json;

struct JsonError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

class JsonValue {
 public:
  JsonValue(const OrderedJson& json, std::string place) : json_(&json), place_(std::move(place)) {}

  const OrderedJson& raw() const { return *json_; }
  const std::string& place() const { return place_; }
  bool IsString() const { return json_->is_string(); }
  bool IsArray() const { return json_->is_array(); }
  bool IsObject() const { return json_->is_object(); }
  bool Has(const char* key) const { return json_->is_object() && json_->contains(key); }
  std::size_t size() const { return json_->size(); }

  [[noreturn]] void Fail(std::string_view expected) const {
    std::string found = json_->dump(-1, ' ', false, OrderedJson::error_handler_t::replace);
    if (found.size() > 60) found = found.substr(0, 57) + "...";
    throw JsonError(
        fmt::format("{}: {}, expected {}", place_.empty() ? "the file" : place_, found, expected));
  }
  JsonValue At(const char* key) const {
    if (!json_->is_object()) Fail("an object");
    const auto found = json_->find(key);
    if (found == json_->end()) {
      throw JsonError(fmt::format("{}: no '{}'", place_.empty() ? "the file" : place_, key));
    }
    return {*found, place_.empty() ? key : fmt::format("{}.{}", place_, key)};
  }
  JsonValue At(std::size_t i) const {
    if (!json_->is_array()) Fail("an array");
    return {json_->at(i), fmt::format("{}[{}]", place_, i)};
  }
  // A key that nobody reads is a slip that would silently change nothing.
  void AllowOnly(std::initializer_list<std::string_view> keys) const {
    if (!json_->is_object()) Fail("an object");
    for (const auto& [key, value] : json_->items()) {
      bool known = false;
      for (const std::string_view allowed : keys) known |= allowed == key;
      if (!known) {
        throw JsonError(fmt::format("{}: '{}' is no key here; there are {}",
                                    place_.empty() ? "the file" : place_, key,
                                    fmt::join(keys, ", ")));
      }
    }
  }
  std::string String() const {
    if (!json_->is_string()) Fail("a text");
    return json_->get<std::string>();
  }
  double Number() const {
    if (!json_->is_number()) Fail("a number");
    const double number = json_->get<double>();
    if (!std::isfinite(number)) Fail("a finite number");
    return number;
  }
  std::uint64_t Count(std::uint64_t least, std::uint64_t most) const {
    const std::string expected = fmt::format("a whole number from {} to {}", least, most);
    if (!json_->is_number_unsigned()) Fail(expected);
    const auto count = json_->get<std::uint64_t>();
    if (count < least || count > most) Fail(expected);
    return count;
  }
  // 12884901888 or "12GiB".
  Bytes Size() const {
    if (json_->is_number_unsigned()) return Bytes(json_->get<std::uint64_t>());
    if (!json_->is_string()) Fail("a size as 4096 or \"12GiB\"");
    Result<Bytes> bytes = ParseBytes(json_->get<std::string>());
    if (!bytes.ok()) Fail("a size as 4096 or \"12GiB\"");
    return *bytes;
  }
  double NumberOr(const char* key, double otherwise) const {
    return Has(key) ? At(key).Number() : otherwise;
  }

 private:
  const OrderedJson* json_;
  std::string place_;
};

// Deeper than any of our formats. Without a limit a file of brackets would exhaust the stack when
// its values are written into an error.
constexpr int kDeepestJson = 64;

inline bool IsTooDeep(std::string_view text) {
  int depth = 0;
  bool quoted = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (quoted && c == '\\') {
      ++i;
    } else if (c == '"') {
      quoted = !quoted;
    } else if (!quoted && (c == '[' || c == '{')) {
      if (++depth > kDeepestJson) return true;
    } else if (!quoted && (c == ']' || c == '}')) {
      --depth;
    }
  }
  return false;
}

inline Result<OrderedJson> ParseJson(const std::string& name, std::string_view text) {
  if (IsTooDeep(text)) {
    return DataLoss("{}: nested more than {} deep, which no file of ours is", name, kDeepestJson);
  }
  try {
    return OrderedJson::parse(text);
  } catch (const nlohmann::json::exception& error) {
    return DataLoss("{}: not JSON: {}", name, error.what());
  }
}

// Runs `read` on the text of a file; its errors, and JSON's own, begin with the file's name.
template <typename T, typename Read>
Result<T> ReadJson(const std::string& name, std::string_view text, Read read) {
  TROUPE_ASSIGN_OR_RETURN(const OrderedJson json, ParseJson(name, text));
  try {
    return read(JsonValue(json, ""));
  } catch (const JsonError& error) {
    return InvalidArgument("{}: {}", name, error.what());
  } catch (const nlohmann::json::exception& error) {
    return DataLoss("{}: not JSON: {}", name, error.what());
  }
}

}  // namespace troupe
