// A JSON value: what our files hold and what the records of --json are made of. The members of an
// object keep the order in which they were put in. json.cc alone includes the JSON library, which
// is slow to compile; json_value.h reads values with errors that name the place.
#pragma once

#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace troupe {

// Deeper than any of our formats. Without a limit a file of brackets would exhaust the stack when
// its values are copied, printed or destroyed.
constexpr int kDeepestJson = 64;

class Json {
 public:
  struct Member;
  struct Entry;

  Json();  // null
  // The constructors convert, so that values of records are written as they are.
  Json(std::nullptr_t);
  template <std::same_as<bool> T>  // no pointer is a truth value
  Json(T truth) : Json(Truth{truth}) {}
  Json(int number);
  Json(long number);
  Json(long long number);
  Json(unsigned int number);
  Json(unsigned long number);
  Json(unsigned long long number);
  Json(double number);
  Json(const char* text);
  Json(std::string_view text);
  Json(std::string text);
  // An object, each key once: {{"name", "lru"}, {"slots", 24}}.
  Json(std::initializer_list<Entry> entries);
  template <typename T>
  Json(const std::vector<T>& items) : Json(std::span<const T>(items)) {}
  template <typename T, std::size_t kSize>
  Json(const std::array<T, kSize>& items) : Json(std::span<const T>(items)) {}
  template <typename T>
  Json(std::span<const T> items) : Json(Array()) {
    for (const T& item : items) push_back(item);
  }
  static Json Object();
  static Json Array();
  static Json Array(std::initializer_list<Json> items);

  Json(const Json& other);
  Json(Json&& other) noexcept;  // null is left
  Json& operator=(const Json& other);
  Json& operator=(Json&& other) noexcept;
  ~Json();

  struct Fault {
    std::string message;
    std::size_t byte = 0;  // where the text went wrong, counted from 1
  };
  // Nothing for a text that is not JSON or is nested deeper than kDeepestJson. Of members with the
  // same key the last one counts, in the place of the first.
  static std::optional<Json> Parse(std::string_view text, Fault* fault = nullptr);

  // In one line, or with every element and member in a line of its own, indented by `indent` for
  // each level. A number reads back as the same; bytes that are not UTF-8 become U+FFFD, numbers
  // that are not finite become null.
  std::string Dump(int indent = -1) const;

  bool IsNull() const;
  bool IsBool() const;
  bool IsNumber() const;
  bool IsCount() const;  // a whole number without a sign
  bool IsString() const;
  bool IsArray() const;
  bool IsObject() const;

  // Each expects the kind of value that it is named after.
  bool AsBool() const;
  double AsDouble() const;  // of any number
  std::uint64_t AsCount() const;
  const std::string& AsString() const;
  const std::vector<Json>& items() const;      // of an array
  const std::vector<Member>& members() const;  // of an object

  std::size_t size() const;  // of an array or an object, otherwise 0

  // Of an object, which null becomes: the member, a new one that is null if there is none.
  Json& operator[](std::string_view key);
  // Null if there is no such member, or this is no object.
  const Json* Find(std::string_view key) const;
  // Sets these members of an object, the new ones at its end.
  void Update(const Json& object);

  // Of an array, which null becomes.
  void push_back(Json item);
  const Json& operator[](std::size_t i) const;
  Json& operator[](std::size_t i);

  // Numbers are compared by value, members of objects in their order.
  friend bool operator==(const Json& a, const Json& b);

 private:
  struct Truth {
    bool value;
  };
  explicit Json(Truth truth);

  // What is not a number is kept apart: files hold millions of numbers.
  using Text = std::unique_ptr<std::string>;
  using Items = std::unique_ptr<std::vector<Json>>;
  using Members = std::unique_ptr<std::vector<Member>>;
  std::variant<std::monostate, bool, std::int64_t, std::uint64_t, double, Text, Items, Members>
      value_;

  friend class JsonBuilder;
};

struct Json::Member {
  std::string key;
  Json value;

  bool operator==(const Member&) const = default;
};

// A member in a list of them, whose value is moved into the object.
struct Json::Entry {
  std::string_view key;
  mutable Json value;
};

}  // namespace troupe
