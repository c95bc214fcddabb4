// The values that GGUF metadata can hold. Both variants are ordered by GGUF's type numbers, so that
// the index of an alternative is the number in the file. metadata.h has keys and typed access.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <iterator>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace troupe {

enum class ValueType : std::uint32_t {
  kUint8 = 0,
  kInt8 = 1,
  kUint16 = 2,
  kInt16 = 3,
  kUint32 = 4,
  kInt32 = 5,
  kFloat32 = 6,
  kBool = 7,
  kString = 8,
  kArray = 9,
  kUint64 = 10,
  kInt64 = 11,
  kFloat64 = 12,
};
inline constexpr std::uint32_t kValueTypeCount = 13;

// Arrays may hold arrays. No known file nests deeper than two; the limit keeps readers of hostile
// files from overflowing their stack.
inline constexpr int kMaxArrayDepth = 4;

// Vocabularies have 150,000 strings of a few bytes: two allocations hold them all.
class StringArray {
 public:
  using value_type = std::string_view;

  StringArray() = default;
  StringArray(std::initializer_list<std::string_view> strings) {
    for (const std::string_view s : strings) Append(s);
  }

  std::size_t size() const { return ends_.size(); }
  bool empty() const { return ends_.empty(); }
  std::string_view operator[](std::size_t i) const {
    const std::size_t begin = i == 0 ? 0 : ends_[i - 1];
    return std::string_view(chars_).substr(begin, ends_[i] - begin);
  }
  void Append(std::string_view s) {
    chars_.append(s);
    ends_.push_back(chars_.size());
  }
  // For readers that fill the string in place: n characters, to be overwritten.
  char* AppendUninitialized(std::size_t n) {
    chars_.resize(chars_.size() + n);
    ends_.push_back(chars_.size());
    return chars_.data() + chars_.size() - n;
  }
  void Reserve(std::size_t strings) { ends_.reserve(strings); }

  class Iterator {
   public:
    using iterator_category = std::input_iterator_tag;
    using value_type = std::string_view;
    using difference_type = std::ptrdiff_t;
    using pointer = const std::string_view*;
    using reference = std::string_view;

    Iterator(const StringArray* array, std::size_t index) : array_(array), index_(index) {}
    std::string_view operator*() const { return (*array_)[index_]; }
    Iterator& operator++() {
      ++index_;
      return *this;
    }
    bool operator==(const Iterator&) const = default;

   private:
    const StringArray* array_;
    std::size_t index_;
  };
  Iterator begin() const { return {this, 0}; }
  Iterator end() const { return {this, size()}; }

  bool operator==(const StringArray&) const = default;

 private:
  std::string chars_;
  std::vector<std::size_t> ends_;
};

struct Array {
  using Elements =
      std::variant<std::vector<std::uint8_t>, std::vector<std::int8_t>, std::vector<std::uint16_t>,
                   std::vector<std::int16_t>, std::vector<std::uint32_t>, std::vector<std::int32_t>,
                   std::vector<float>, std::vector<bool>, StringArray, std::vector<Array>,
                   std::vector<std::uint64_t>, std::vector<std::int64_t>, std::vector<double>>;
  Elements elements;

  ValueType element_type() const { return static_cast<ValueType>(elements.index()); }
  std::size_t size() const;

  bool operator==(const Array&) const = default;
};

using Value = std::variant<std::uint8_t, std::int8_t, std::uint16_t, std::int16_t, std::uint32_t,
                           std::int32_t, float, bool, std::string, Array, std::uint64_t,
                           std::int64_t, double>;
static_assert(std::variant_size_v<Value> == kValueTypeCount);
static_assert(std::variant_size_v<Array::Elements> == kValueTypeCount);

inline ValueType TypeOf(const Value& value) { return static_cast<ValueType>(value.index()); }

std::string_view TypeName(ValueType type);  // "uint32"

// "uint32 7", "string 'llama'", "array of 32000 string": type and value on one line, for errors.
std::string Describe(const Value& value);

}  // namespace troupe
