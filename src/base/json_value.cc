#include "base/json_value.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <stdexcept>

namespace troupe {
namespace {

struct JsonError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

}  // namespace

std::size_t JsonValue::size() const {
  if (!json_->IsArray() && !json_->IsObject()) Fail("an array");
  return json_->size();
}

std::string JsonValue::InPlace() const { return place_.empty() ? "" : place_ + ": "; }

void JsonValue::Fail(std::string_view expected) const {
  std::string found = json_->Dump();
  if (found.size() > 60) found = found.substr(0, 57) + "...";
  Refuse(fmt::format("{}{}, expected {}", InPlace(), found, expected));
}

void JsonValue::Refuse(std::string_view message) { throw JsonError(std::string(message)); }

JsonValue JsonValue::At(const char* key) const {
  if (!json_->IsObject()) Fail("an object");
  const Json* found = json_->Find(key);
  if (found == nullptr) Refuse(fmt::format("{}no '{}'", InPlace(), key));
  return {*found, place_.empty() ? key : fmt::format("{}.{}", place_, key)};
}

JsonValue JsonValue::At(std::size_t i) const {
  if (!json_->IsArray()) Fail("an array");
  if (i >= json_->size()) Fail(fmt::format("an array of {} or more", i + 1));
  return {(*json_)[i], fmt::format("{}[{}]", place_, i)};
}

void JsonValue::AllowOnly(std::initializer_list<std::string_view> keys) const {
  if (!json_->IsObject()) Fail("an object");
  for (const Json::Member& member : json_->members()) {
    if (std::ranges::find(keys, member.key) != keys.end()) continue;
    Refuse(fmt::format("{}'{}' is no key here; there are {}", InPlace(), member.key,
                       fmt::join(keys, ", ")));
  }
}

std::string JsonValue::String() const {
  if (!json_->IsString()) Fail("a text");
  return json_->AsString();
}

bool JsonValue::Flag() const {
  if (!json_->IsBool()) Fail("true or false");
  return json_->AsBool();
}

double JsonValue::Number() const {
  if (!json_->IsNumber()) Fail("a number");
  const double number = json_->AsDouble();
  if (!std::isfinite(number)) Fail("a finite number");
  return number;
}

double JsonValue::Number(double least, double most) const {
  const double number = Number();
  if (number < least || number > most) Fail(fmt::format("a number, {} to {}", least, most));
  return number;
}

double JsonValue::NumberOr(const char* key, double otherwise) const {
  return Has(key) ? At(key).Number() : otherwise;
}

std::uint64_t JsonValue::Count(std::uint64_t least, std::uint64_t most) const {
  if (!json_->IsCount() || json_->AsCount() < least || json_->AsCount() > most) {
    Fail(fmt::format("a whole number from {} to {}", least, most));
  }
  return json_->AsCount();
}

Bytes JsonValue::Size() const {
  constexpr std::string_view kExpected = "a size as 4096 or \"12GiB\"";
  if (json_->IsCount()) return Bytes(json_->AsCount());
  if (!json_->IsString()) Fail(kExpected);
  const Result<Bytes> bytes = ParseBytes(json_->AsString());
  if (!bytes.ok()) Fail(kExpected);
  return *bytes;
}

Result<Json> ParseJson(const std::string& name, std::string_view text) {
  Json::Fault fault;
  std::optional<Json> json = Json::Parse(text, &fault);
  if (!json) return DataLoss("{}: {}", name, fault.message);
  return *std::move(json);
}

Status RunJsonReader(const std::string& name, std::string_view text,
                     const std::function<void(const JsonValue&)>& read) {
  TROUPE_ASSIGN_OR_RETURN(const Json json, ParseJson(name, text));
  try {
    read(JsonValue(json, ""));
  } catch (const JsonError& error) {
    return InvalidArgument("{}: {}", name, error.what());
  }
  return OkStatus();
}

}  // namespace troupe
