#include "base/json.h"

#include <fmt/core.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <type_traits>
#include <utility>

#include "base/check.h"
#include "base/json_fault.h"

namespace troupe {
namespace {

using Library = nlohmann::json;

// Of a text or a number, as the library prints it.
template <typename T>
std::string DumpScalar(const T& value) {
  return Library(value).dump(-1, ' ', false, Library::error_handler_t::replace);
}

// The last value of a repeated key takes the place of the first.
void MergeRepeatedKeys(std::vector<Json::Member>& members) {
  std::vector<Json::Member*> sorted;
  sorted.reserve(members.size());
  for (Json::Member& member : members) sorted.push_back(&member);
  std::ranges::stable_sort(sorted, {}, &Json::Member::key);
  std::vector<bool> repeated(members.size());
  for (std::size_t i = sorted.size(); i-- > 1;) {
    if (sorted[i]->key != sorted[i - 1]->key) continue;
    sorted[i - 1]->value = std::move(sorted[i]->value);
    repeated[static_cast<std::size_t>(sorted[i] - members.data())] = true;
  }
  std::erase_if(members, [&](const Json::Member& member) {
    return repeated[static_cast<std::size_t>(&member - members.data())];
  });
}

class Printer {
 public:
  explicit Printer(int indent) : indent_(indent) {}

  void Print(const Json& json) {
    if (json.IsArray()) {
      Nested('[', json.items(), ']', [this](const Json& item) { Print(item); });
    } else if (json.IsObject()) {
      Nested('{', json.members(), '}', [this](const Json::Member& member) {
        text_ += DumpScalar(member.key);
        text_ += indent_ < 0 ? ":" : ": ";
        Print(member.value);
      });
    } else {
      text_ += json.Dump();
    }
  }
  std::string Take() { return std::move(text_); }

 private:
  template <typename T, typename PrintOne>
  void Nested(char open, const std::vector<T>& all, char close, PrintOne print_one) {
    text_ += open;
    ++level_;
    for (std::size_t i = 0; i < all.size(); ++i) {
      if (i > 0) text_ += ',';
      NewLine();
      print_one(all[i]);
    }
    --level_;
    if (!all.empty()) NewLine();
    text_ += close;
  }
  void NewLine() {
    if (indent_ < 0) return;
    text_ += '\n';
    text_.append(static_cast<std::size_t>(level_ * indent_), ' ');
  }

  int indent_;
  int level_ = 0;
  std::string text_;
};

}  // namespace

// What the library calls for each part of a text, under names of its own.
class JsonBuilder {
 public:
  explicit JsonBuilder(Json::Fault& fault) : fault_(fault) {}

  bool null() { return Add(Json()); }
  bool boolean(bool truth) { return Add(truth); }
  bool number_integer(std::int64_t number) { return Add(number); }
  bool number_unsigned(std::uint64_t number) { return Add(number); }
  bool number_float(double number, const std::string&) { return Add(number); }
  bool string(std::string& text) { return Add(std::move(text)); }
  bool binary(Library::binary_t&) { return false; }  // no JSON has it

  bool start_object(std::size_t) { return Open(Json::Object()); }
  bool key(std::string& key) {
    MembersOf(open_.back()).push_back({std::move(key), Json()});
    return true;
  }
  bool end_object() {
    MergeRepeatedKeys(MembersOf(open_.back()));
    return Close();
  }
  bool start_array(std::size_t) { return Open(Json::Array()); }
  bool end_array() { return Close(); }

  bool parse_error(std::size_t byte, const std::string&, const Library::exception& error) {
    fault_ = {.message = fmt::format("not JSON: {}", ExplainJsonFault(error.what())), .byte = byte};
    return false;
  }

  Json Take() { return std::move(root_); }

 private:
  static std::vector<Json::Member>& MembersOf(Json& object) {
    return *std::get<Json::Members>(object.value_);
  }
  bool Add(Json value) {
    if (open_.empty()) {
      root_ = std::move(value);
    } else if (open_.back().IsArray()) {
      open_.back().push_back(std::move(value));
    } else {
      MembersOf(open_.back()).back().value = std::move(value);
    }
    return true;
  }
  bool Open(Json container) {
    if (open_.size() == kDeepestJson) {
      fault_.message =
          fmt::format("nested more than {} deep, which no file of ours is", kDeepestJson);
      return false;
    }
    open_.push_back(std::move(container));
    return true;
  }
  bool Close() {
    Json closed = std::move(open_.back());
    open_.pop_back();
    return Add(std::move(closed));
  }

  Json::Fault& fault_;
  Json root_;
  std::vector<Json> open_;  // the innermost last
};

Json::Json() = default;
Json::Json(std::nullptr_t) {}
Json::Json(Truth truth) : value_(truth.value) {}
Json::Json(int number) : value_(std::int64_t{number}) {}
Json::Json(long number) : value_(std::int64_t{number}) {}
Json::Json(long long number) : value_(std::int64_t{number}) {}
Json::Json(unsigned int number) : value_(std::uint64_t{number}) {}
Json::Json(unsigned long number) : value_(std::uint64_t{number}) {}
Json::Json(unsigned long long number) : value_(std::uint64_t{number}) {}
Json::Json(double number) : value_(number) {}
Json::Json(const char* text) : Json(std::string(text)) {}
Json::Json(std::string_view text) : Json(std::string(text)) {}
Json::Json(std::string text) : value_(std::make_unique<std::string>(std::move(text))) {}

Json::Json(std::initializer_list<Entry> entries) : value_(std::make_unique<std::vector<Member>>()) {
  auto& members = *std::get<Members>(value_);
  members.reserve(entries.size());
  for (const Entry& entry : entries) {
    members.push_back({std::string(entry.key), std::move(entry.value)});
  }
}

Json Json::Object() { return Json(std::initializer_list<Entry>()); }
Json Json::Array() { return Array({}); }

Json Json::Array(std::initializer_list<Json> items) {
  Json json;
  json.value_ = std::make_unique<std::vector<Json>>(items);
  return json;
}

Json::Json(const Json& other) {
  std::visit(
      [this]<typename T>(const T& value) {
        if constexpr (std::is_copy_constructible_v<T>) {
          value_ = value;
        } else {
          value_ = std::make_unique<typename T::element_type>(*value);
        }
      },
      other.value_);
}
Json::Json(Json&& other) noexcept : value_(std::exchange(other.value_, std::monostate())) {}
Json& Json::operator=(const Json& other) { return *this = Json(other); }
Json& Json::operator=(Json&& other) noexcept {
  // What is replaced may hold `other`.
  auto taken = std::exchange(other.value_, std::monostate());
  value_ = std::move(taken);
  return *this;
}
Json::~Json() = default;

std::optional<Json> Json::Parse(std::string_view text, Fault* fault) {
  Fault ignored;
  JsonBuilder builder(fault != nullptr ? *fault : ignored);
  if (!Library::sax_parse(text, &builder)) return std::nullopt;
  return builder.Take();
}

std::string Json::Dump(int indent) const {
  if (IsNull()) return "null";
  if (IsString()) return DumpScalar(AsString());
  if (const bool* truth = std::get_if<bool>(&value_)) return *truth ? "true" : "false";
  if (const auto* number = std::get_if<std::int64_t>(&value_)) return DumpScalar(*number);
  if (const auto* number = std::get_if<std::uint64_t>(&value_)) return DumpScalar(*number);
  if (const auto* number = std::get_if<double>(&value_)) return DumpScalar(*number);
  Printer printer(indent);
  printer.Print(*this);
  return printer.Take();
}

bool Json::IsNull() const { return std::holds_alternative<std::monostate>(value_); }
bool Json::IsBool() const { return std::holds_alternative<bool>(value_); }
bool Json::IsNumber() const {
  return IsCount() || std::holds_alternative<std::int64_t>(value_) ||
         std::holds_alternative<double>(value_);
}
bool Json::IsCount() const { return std::holds_alternative<std::uint64_t>(value_); }
bool Json::IsString() const { return std::holds_alternative<Text>(value_); }
bool Json::IsArray() const { return std::holds_alternative<Items>(value_); }
bool Json::IsObject() const { return std::holds_alternative<Members>(value_); }

bool Json::AsBool() const {
  TROUPE_CHECK(IsBool());
  return std::get<bool>(value_);
}

double Json::AsDouble() const {
  TROUPE_CHECK(IsNumber());
  if (IsCount()) return static_cast<double>(AsCount());
  if (const auto* number = std::get_if<std::int64_t>(&value_)) return static_cast<double>(*number);
  return std::get<double>(value_);
}

std::uint64_t Json::AsCount() const {
  TROUPE_CHECK(IsCount());
  return std::get<std::uint64_t>(value_);
}

const std::string& Json::AsString() const {
  TROUPE_CHECK(IsString());
  return *std::get<Text>(value_);
}

const std::vector<Json>& Json::items() const {
  TROUPE_CHECK(IsArray());
  return *std::get<Items>(value_);
}

const std::vector<Json::Member>& Json::members() const {
  TROUPE_CHECK(IsObject());
  return *std::get<Members>(value_);
}

std::size_t Json::size() const {
  if (IsArray()) return items().size();
  return IsObject() ? members().size() : 0;
}

Json& Json::operator[](std::string_view key) {
  if (IsNull()) value_ = std::make_unique<std::vector<Member>>();
  if (const Json* found = Find(key)) return const_cast<Json&>(*found);
  TROUPE_CHECK(IsObject());
  return std::get<Members>(value_)->emplace_back(Member{std::string(key), Json()}).value;
}

const Json* Json::Find(std::string_view key) const {
  if (!IsObject()) return nullptr;
  const auto found = std::ranges::find(members(), key, &Member::key);
  return found == members().end() ? nullptr : &found->value;
}

void Json::Update(const Json& object) {
  for (const Member& member : object.members()) (*this)[member.key] = member.value;
}

void Json::push_back(Json item) {
  if (IsNull()) value_ = std::make_unique<std::vector<Json>>();
  TROUPE_CHECK(IsArray());
  std::get<Items>(value_)->push_back(std::move(item));
}

const Json& Json::operator[](std::size_t i) const {
  TROUPE_CHECK(i < items().size());
  return items()[i];
}

Json& Json::operator[](std::size_t i) {
  TROUPE_CHECK(i < items().size());
  return (*std::get<Items>(value_))[i];
}

bool operator==(const Json& a, const Json& b) {
  if (a.IsNumber() && b.IsNumber()) {
    const auto* count = std::get_if<std::uint64_t>(&a.value_);
    const auto* other = std::get_if<std::uint64_t>(&b.value_);
    const auto* number = std::get_if<std::int64_t>(&a.value_);
    const auto* other_number = std::get_if<std::int64_t>(&b.value_);
    if (count && other) return *count == *other;
    if (number && other_number) return *number == *other_number;
    if (count && other_number) return std::cmp_equal(*count, *other_number);
    if (number && other) return std::cmp_equal(*number, *other);
    return a.AsDouble() == b.AsDouble();
  }
  if (a.value_.index() != b.value_.index()) return false;
  if (a.IsString()) return a.AsString() == b.AsString();
  if (a.IsArray()) return a.items() == b.items();
  if (a.IsObject()) return a.members() == b.members();
  return a.value_ == b.value_;  // null or a truth value
}

}  // namespace troupe
