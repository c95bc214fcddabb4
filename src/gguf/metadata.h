// The keys of a GGUF file and their values, in the order of the file, with typed access. The
// callers know what the keys mean. A key that is missing is kNotFound; one that is there
// with another type is kInvalidArgument, also where a default was offered: a wrong value must not
// look like an absent one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/status.h"
#include "gguf/value.h"

namespace troupe {

class Metadata {
 public:
  struct Entry {
    std::string key;
    Value value;
    bool operator==(const Entry&) const = default;
  };

  // `origin` is what errors name: the path of the file.
  explicit Metadata(std::string origin = "metadata") : origin_(std::move(origin)) {}

  const std::string& origin() const { return origin_; }
  std::span<const Entry> entries() const { return entries_; }
  const Value* Find(std::string_view key) const;  // null if there is none

  Status Add(std::string key, Value value);  // fails on a key that is there already
  void Set(std::string key, Value value);    // replaces in place, or appends
  bool Erase(std::string_view key);          // whether it was there

  // Integers of every width and signedness are read alike; the value must fit.
  Result<std::uint64_t> GetUint(std::string_view key) const;
  Result<std::int64_t> GetInt(std::string_view key) const;
  Result<double> GetFloat(std::string_view key) const;  // float32 or float64
  Result<bool> GetBool(std::string_view key) const;
  Result<std::string_view> GetString(std::string_view key) const;  // lives as long as this

  Result<std::uint64_t> GetUintOr(std::string_view key, std::uint64_t otherwise) const;
  Result<std::int64_t> GetIntOr(std::string_view key, std::int64_t otherwise) const;
  Result<double> GetFloatOr(std::string_view key, double otherwise) const;
  Result<bool> GetBoolOr(std::string_view key, bool otherwise) const;
  Result<std::string_view> GetStringOr(std::string_view key, std::string_view otherwise) const;

  Result<std::vector<std::uint64_t>> GetUints(std::string_view key) const;
  Result<std::vector<std::int64_t>> GetInts(std::string_view key) const;
  Result<std::vector<double>> GetFloats(std::string_view key) const;
  Result<const StringArray*> GetStrings(std::string_view key) const;  // never null

  // The error for a value that has the right type and still will not do, worded like the others:
  // "m.gguf: key 'general.alignment' is uint32 7, a power of two expected".
  Status BadValue(std::string_view key, std::string_view expected) const;

  bool operator==(const Metadata& other) const { return entries_ == other.entries_; }

 private:
  Result<const Value*> Require(std::string_view key) const;

  std::string origin_;
  std::vector<Entry> entries_;
  std::map<std::string, std::size_t, std::less<>> index_;
};

}  // namespace troupe
