// Reads JSON with errors that say where and what was expected: every getter names the place
// ("servers[2].devices[0].memory"). A reader is a function of a JsonValue that ReadJson runs. Where
// a value is not as expected the getters leave it by an exception, which only json_value.cc knows
// and ReadJson turns into a Status: a reader neither catches it nor runs outside ReadJson.
#pragma once

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/bytes.h"
#include "base/json.h"
#include "base/status.h"

namespace troupe {

class JsonValue {
 public:
  JsonValue(const Json& json, std::string place) : json_(&json), place_(std::move(place)) {}

  const Json& raw() const { return *json_; }
  const std::string& place() const { return place_; }
  bool IsString() const { return json_->IsString(); }
  bool IsArray() const { return json_->IsArray(); }
  bool IsObject() const { return json_->IsObject(); }
  bool Has(const char* key) const { return json_->Find(key) != nullptr; }
  std::size_t size() const;  // of an array or an object

  // "place: what is there, expected so": ends the reader.
  [[noreturn]] void Fail(std::string_view expected) const;
  // For what is wrong with more than one place: ends the reader with `message`.
  [[noreturn]] static void Refuse(std::string_view message);

  JsonValue At(const char* key) const;
  JsonValue At(std::size_t i) const;
  // A key that nobody reads is a slip that would silently change nothing.
  void AllowOnly(std::initializer_list<std::string_view> keys) const;

  std::string String() const;
  bool Flag() const;
  double Number() const;  // finite
  double Number(double least, double most) const;
  double NumberOr(const char* key, double otherwise) const;
  std::uint64_t Count(std::uint64_t least, std::uint64_t most) const;
  Bytes Size() const;  // 12884901888 or "12GiB"

 private:
  // "servers[2]: "; nothing for the outermost.
  std::string InPlace() const;

  const Json* json_;
  std::string place_;
};

// An error begins with `name`, of a file or of one of its lines.
Result<Json> ParseJson(const std::string& name, std::string_view text);
Status RunJsonReader(const std::string& name, std::string_view text,
                     const std::function<void(const JsonValue&)>& read);

// What `read` makes of the text.
template <typename T, typename Read>
Result<T> ReadJson(const std::string& name, std::string_view text, Read read) {
  std::optional<T> found;
  TROUPE_RETURN_IF_ERROR(
      RunJsonReader(name, text, [&](const JsonValue& json) { found.emplace(read(json)); }));
  return *std::move(found);
}

}  // namespace troupe
