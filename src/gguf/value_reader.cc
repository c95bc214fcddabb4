#include "gguf/value_reader.h"

#include <algorithm>
#include <limits>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace troupe {
namespace {

constexpr std::uint64_t kAnyLength = std::numeric_limits<std::uint64_t>::max();

Result<Array> ReadArray(Cursor& cursor, int depth);

Status CheckBool(const Cursor& cursor, std::uint8_t byte) {
  if (byte <= 1) return OkStatus();
  return cursor.Corrupt("a bool of {}, 0 or 1 expected", byte);
}

// Fill an array of `count` elements; the count was checked against what remains.
template <typename T>
Status ReadElements(Cursor& cursor, std::uint64_t count, int, std::vector<T>& out) {
  out.resize(count);
  return cursor.ReadBytes(std::as_writable_bytes(std::span(out)));
}

Status ReadElements(Cursor& cursor, std::uint64_t count, int, std::vector<bool>& out) {
  std::vector<std::uint8_t> bytes(count);
  TROUPE_RETURN_IF_ERROR(cursor.ReadBytes(std::as_writable_bytes(std::span(bytes))));
  for (const std::uint8_t byte : bytes) TROUPE_RETURN_IF_ERROR(CheckBool(cursor, byte));
  out.assign(bytes.begin(), bytes.end());
  return OkStatus();
}

Status ReadElements(Cursor& cursor, std::uint64_t count, int, StringArray& out) {
  out.Reserve(count);
  for (std::uint64_t i = 0; i < count; ++i) {
    TROUPE_ASSIGN_OR_RETURN(const std::uint64_t length, cursor.ReadLength());
    char* const text = out.AppendUninitialized(length);
    TROUPE_RETURN_IF_ERROR(cursor.ReadBytes(std::as_writable_bytes(std::span(text, length))));
  }
  return OkStatus();
}

Status ReadElements(Cursor& cursor, std::uint64_t count, int depth, std::vector<Array>& out) {
  for (std::uint64_t i = 0; i < count; ++i) {
    TROUPE_ASSIGN_OR_RETURN(Array array, ReadArray(cursor, depth + 1));
    out.push_back(std::move(array));
  }
  return OkStatus();
}

// The least that an element of the list can occupy in the file.
template <typename List>
constexpr std::uint64_t LeastElementBytes() {
  if constexpr (std::is_same_v<List, StringArray>) {
    return sizeof(std::uint64_t);
  } else if constexpr (std::is_same_v<List, std::vector<Array>>) {
    return sizeof(std::uint32_t) + sizeof(std::uint64_t);
  } else {
    return sizeof(typename List::value_type);
  }
}

template <typename List>
Result<Array> ReadArrayOf(Cursor& cursor, int depth) {
  TROUPE_ASSIGN_OR_RETURN(const std::uint64_t count, cursor.Read<std::uint64_t>());
  if (count > cursor.remaining() / LeastElementBytes<List>()) {
    return cursor.Corrupt("an array of {} elements where {} bytes remain", count,
                          cursor.remaining());
  }
  List list;
  TROUPE_RETURN_IF_ERROR(ReadElements(cursor, count, depth, list));
  return Array{std::move(list)};
}

// Turns a type number into a template argument: the variants' order is the file's.
template <std::size_t... Is>
Result<Array> ReadArrayOfType(Cursor& cursor, ValueType type, int depth,
                              std::index_sequence<Is...>) {
  using Reader = Result<Array> (*)(Cursor&, int);
  constexpr Reader kReaders[] = {ReadArrayOf<std::variant_alternative_t<Is, Array::Elements>>...};
  return kReaders[static_cast<std::size_t>(type)](cursor, depth);
}

// The depth is limited because each level is a call: a hostile file must not exhaust the stack.
Result<Array> ReadArray(Cursor& cursor, int depth) {
  TROUPE_ASSIGN_OR_RETURN(const ValueType type, ReadValueType(cursor));
  if (depth > kMaxArrayDepth) {
    return cursor.Corrupt("arrays nested more than {} deep", kMaxArrayDepth);
  }
  return ReadArrayOfType(cursor, type, depth, std::make_index_sequence<kValueTypeCount>());
}

template <typename T>
Result<Value> ReadOne(Cursor& cursor) {
  if constexpr (std::is_same_v<T, Array>) {
    TROUPE_ASSIGN_OR_RETURN(Array array, ReadArray(cursor, 1));
    return Value(std::move(array));
  } else if constexpr (std::is_same_v<T, std::string>) {
    TROUPE_ASSIGN_OR_RETURN(std::string text, cursor.ReadString(kAnyLength));
    return Value(std::move(text));
  } else if constexpr (std::is_same_v<T, bool>) {
    TROUPE_ASSIGN_OR_RETURN(const auto byte, cursor.Read<std::uint8_t>());
    TROUPE_RETURN_IF_ERROR(CheckBool(cursor, byte));
    return Value(byte != 0);
  } else {
    TROUPE_ASSIGN_OR_RETURN(const T number, cursor.Read<T>());
    return Value(number);
  }
}

template <std::size_t... Is>
Result<Value> ReadValueOfType(Cursor& cursor, ValueType type, std::index_sequence<Is...>) {
  using Reader = Result<Value> (*)(Cursor&);
  constexpr Reader kReaders[] = {ReadOne<std::variant_alternative_t<Is, Value>>...};
  return kReaders[static_cast<std::size_t>(type)](cursor);
}

}  // namespace

Result<ValueType> ReadValueType(Cursor& cursor) {
  TROUPE_ASSIGN_OR_RETURN(const auto number, cursor.Read<std::uint32_t>());
  if (number >= kValueTypeCount) {
    return cursor.Corrupt("value type {}, at most {} expected", number, kValueTypeCount - 1);
  }
  return static_cast<ValueType>(number);
}

Result<Value> ReadValue(Cursor& cursor, ValueType type) {
  return ReadValueOfType(cursor, type, std::make_index_sequence<kValueTypeCount>());
}

}  // namespace troupe
