#include "gguf/metadata.h"

#include <optional>
#include <type_traits>
#include <variant>

#include "gguf/quoted.h"

namespace troupe {
namespace {

template <typename T>
constexpr bool kIsInteger = std::is_integral_v<T> && !std::is_same_v<T, bool>;

// Converts among integers or among floats; nothing for another kind or a value that does not fit.
template <typename To, typename From>
std::optional<To> NumberAs(const From& from) {
  if constexpr (kIsInteger<To> && kIsInteger<From>) {
    if (std::in_range<To>(from)) return static_cast<To>(from);
  } else if constexpr (std::is_floating_point_v<To> && std::is_floating_point_v<From>) {
    return static_cast<To>(from);
  }
  return std::nullopt;
}

template <typename To>
std::optional<To> ScalarAs(const Value& value) {
  return std::visit([](const auto& v) { return NumberAs<To>(v); }, value);
}

// All elements, or nothing if the array holds another kind or one of them does not fit.
template <typename To>
std::optional<std::vector<To>> ElementsAs(const Value& value) {
  const Array* array = std::get_if<Array>(&value);
  if (array == nullptr) return std::nullopt;
  return std::visit(
      [](const auto& list) -> std::optional<std::vector<To>> {
        using From = typename std::decay_t<decltype(list)>::value_type;
        if constexpr (kIsInteger<To> != kIsInteger<From> || !std::is_arithmetic_v<From> ||
                      std::is_same_v<From, bool>) {
          return std::nullopt;
        } else {
          std::vector<To> all;
          all.reserve(list.size());
          for (const From& from : list) {
            const std::optional<To> to = NumberAs<To>(from);
            if (!to.has_value()) return std::nullopt;
            all.push_back(*to);
          }
          return all;
        }
      },
      array->elements);
}

template <typename T>
Result<T> UnlessMissing(Result<T> result, T otherwise) {
  if (!result.ok() && result.status().code() == Code::kNotFound) return otherwise;
  return result;
}

constexpr std::string_view kUintExpected = "an integer of at least 0";
constexpr std::string_view kIntExpected = "an integer below 2^63";

}  // namespace

const Value* Metadata::Find(std::string_view key) const {
  const auto found = index_.find(key);
  return found == index_.end() ? nullptr : &entries_[found->second].value;
}

Status Metadata::Add(std::string key, Value value) {
  const auto [at, inserted] = index_.try_emplace(key, entries_.size());
  if (!inserted) {
    return Error(Code::kAlreadyExists, "{}: key {} is there already", origin_, Quoted(key));
  }
  entries_.push_back({std::move(key), std::move(value)});
  return OkStatus();
}

void Metadata::Set(std::string key, Value value) {
  const auto [at, inserted] = index_.try_emplace(key, entries_.size());
  if (inserted) {
    entries_.push_back({std::move(key), std::move(value)});
  } else {
    entries_[at->second].value = std::move(value);
  }
}

// Keeps the order of the file, which costs a pass over the index; only tools that rewrite models
// erase keys.
bool Metadata::Erase(std::string_view key) {
  const auto found = index_.find(key);
  if (found == index_.end()) return false;
  const std::size_t gone = found->second;
  entries_.erase(entries_.begin() + static_cast<std::ptrdiff_t>(gone));
  index_.erase(found);
  for (auto& [name, position] : index_) {
    if (position > gone) --position;
  }
  return true;
}

Result<const Value*> Metadata::Require(std::string_view key) const {
  if (const Value* value = Find(key)) return value;
  return Error(Code::kNotFound, "{}: no key {}", origin_, Quoted(key));
}

Status Metadata::BadValue(std::string_view key, std::string_view expected) const {
  const Value* value = Find(key);
  TROUPE_CHECK(value != nullptr);
  return InvalidArgument("{}: key {} is {}, {} expected", origin_, Quoted(key), Describe(*value),
                         expected);
}

Result<std::uint64_t> Metadata::GetUint(std::string_view key) const {
  TROUPE_ASSIGN_OR_RETURN(const Value* value, Require(key));
  if (const auto number = ScalarAs<std::uint64_t>(*value)) return *number;
  return BadValue(key, kUintExpected);
}

Result<std::int64_t> Metadata::GetInt(std::string_view key) const {
  TROUPE_ASSIGN_OR_RETURN(const Value* value, Require(key));
  if (const auto number = ScalarAs<std::int64_t>(*value)) return *number;
  return BadValue(key, kIntExpected);
}

Result<double> Metadata::GetFloat(std::string_view key) const {
  TROUPE_ASSIGN_OR_RETURN(const Value* value, Require(key));
  if (const auto number = ScalarAs<double>(*value)) return *number;
  return BadValue(key, "a float");
}

Result<bool> Metadata::GetBool(std::string_view key) const {
  TROUPE_ASSIGN_OR_RETURN(const Value* value, Require(key));
  if (const bool* truth = std::get_if<bool>(value)) return *truth;
  return BadValue(key, "a bool");
}

Result<std::string_view> Metadata::GetString(std::string_view key) const {
  TROUPE_ASSIGN_OR_RETURN(const Value* value, Require(key));
  if (const std::string* text = std::get_if<std::string>(value)) return std::string_view(*text);
  return BadValue(key, "a string");
}

Result<std::uint64_t> Metadata::GetUintOr(std::string_view key, std::uint64_t otherwise) const {
  return UnlessMissing(GetUint(key), otherwise);
}
Result<std::int64_t> Metadata::GetIntOr(std::string_view key, std::int64_t otherwise) const {
  return UnlessMissing(GetInt(key), otherwise);
}
Result<double> Metadata::GetFloatOr(std::string_view key, double otherwise) const {
  return UnlessMissing(GetFloat(key), otherwise);
}
Result<bool> Metadata::GetBoolOr(std::string_view key, bool otherwise) const {
  return UnlessMissing(GetBool(key), otherwise);
}
Result<std::string_view> Metadata::GetStringOr(std::string_view key,
                                               std::string_view otherwise) const {
  return UnlessMissing(GetString(key), otherwise);
}

Result<std::vector<std::uint64_t>> Metadata::GetUints(std::string_view key) const {
  TROUPE_ASSIGN_OR_RETURN(const Value* value, Require(key));
  if (auto all = ElementsAs<std::uint64_t>(*value)) return *std::move(all);
  return BadValue(key, "an array of integers of at least 0");
}

Result<std::vector<std::int64_t>> Metadata::GetInts(std::string_view key) const {
  TROUPE_ASSIGN_OR_RETURN(const Value* value, Require(key));
  if (auto all = ElementsAs<std::int64_t>(*value)) return *std::move(all);
  return BadValue(key, "an array of integers below 2^63");
}

Result<std::vector<double>> Metadata::GetFloats(std::string_view key) const {
  TROUPE_ASSIGN_OR_RETURN(const Value* value, Require(key));
  if (auto all = ElementsAs<double>(*value)) return *std::move(all);
  return BadValue(key, "an array of floats");
}

Result<const StringArray*> Metadata::GetStrings(std::string_view key) const {
  TROUPE_ASSIGN_OR_RETURN(const Value* value, Require(key));
  if (const Array* array = std::get_if<Array>(value)) {
    if (const auto* strings = std::get_if<StringArray>(&array->elements)) return strings;
  }
  return BadValue(key, "an array of strings");
}

}  // namespace troupe
