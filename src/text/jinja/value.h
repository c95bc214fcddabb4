// A value of a template, as Python would have it: copied by reference and never changed, except for
// namespaces and the position of an iterator. How values print, compare and compute is in files of
// their own.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

#include "base/status.h"
#include "text/jinja/limits.h"
#include "text/jinja/marked_text.h"

namespace troupe::jinja {

class Value;
struct List;
struct Dict;
struct Iterator;
struct Namespace;
struct Callable;
struct Loop;

// Deeper nesting is refused when a list is made: printing, comparing and destroying go by
// recursion.
inline constexpr int kDeepestValue = 100;

class Value {
 public:
  enum class Kind {
    kUndefined,
    kNone,
    kBool,
    kInt,
    kFloat,
    kString,  // clang-format keeps groups apart
    kList,
    kDict,
    kIterator,
    kNamespace,
    kCallable,
    kLoop,
  };
  struct Undefined {
    std::shared_ptr<const std::string> what;  // for the error of who uses it: "'tools'"
  };
  struct None {};

  Value() = default;  // undefined
  static Value UndefinedNamed(std::string_view what);
  static Value MakeNone() { return Value(Storage(None{})); }
  static Value Bool(bool truth) { return Value(Storage(truth)); }
  static Value Int(std::int64_t number) { return Value(Storage(number)); }
  static Value Float(double number) { return Value(Storage(number)); }
  static Value String(MarkedText text);
  static Value String(std::string text) { return String(MarkedText(std::move(text))); }
  static Value Of(std::shared_ptr<const List> list) { return Value(Storage(std::move(list))); }
  static Value Of(std::shared_ptr<const Dict> dict) { return Value(Storage(std::move(dict))); }
  static Value Of(std::shared_ptr<Iterator> it) { return Value(Storage(std::move(it))); }
  static Value Of(std::shared_ptr<Namespace> names) { return Value(Storage(std::move(names))); }
  static Value Of(std::shared_ptr<const Callable> call) { return Value(Storage(std::move(call))); }
  static Value Of(std::shared_ptr<Loop> loop) { return Value(Storage(std::move(loop))); }

  Kind kind() const { return static_cast<Kind>(storage_.index()); }
  bool Is(Kind kind_asked) const { return kind() == kind_asked; }
  bool IsNumber() const { return Is(Kind::kBool) || IsPlainNumber(); }
  bool IsPlainNumber() const { return Is(Kind::kInt) || Is(Kind::kFloat); }
  bool IsIntegral() const { return Is(Kind::kBool) || Is(Kind::kInt); }

  // Each expects the kind of value that it is named after.
  const Undefined& AsUndefined() const { return std::get<Undefined>(storage_); }
  bool AsBool() const { return std::get<bool>(storage_); }
  std::int64_t AsInt() const;  // of a truth value or a whole number
  double AsFloat() const;      // of any number
  const MarkedText& AsText() const;
  const std::string& AsString() const { return AsText().bytes(); }
  const List& AsList() const { return *std::get<std::shared_ptr<const List>>(storage_); }
  const Dict& AsDict() const { return *std::get<std::shared_ptr<const Dict>>(storage_); }
  Iterator& AsIterator() const { return *std::get<std::shared_ptr<Iterator>>(storage_); }
  Namespace& AsNamespace() const { return *std::get<std::shared_ptr<Namespace>>(storage_); }
  const Callable& AsCallable() const {
    return *std::get<std::shared_ptr<const Callable>>(storage_);
  }
  Loop& AsLoop() const { return *std::get<std::shared_ptr<Loop>>(storage_); }

  // The address of what is shared, 0 for what is not: two values are the same object, or not.
  const void* Identity() const;
  int Depth() const;  // 0 for what holds no values

 private:
  using Storage =
      std::variant<Undefined, None, bool, std::int64_t, double, std::shared_ptr<const MarkedText>,
                   std::shared_ptr<const List>, std::shared_ptr<const Dict>,
                   std::shared_ptr<Iterator>, std::shared_ptr<Namespace>,
                   std::shared_ptr<const Callable>, std::shared_ptr<Loop>>;
  explicit Value(Storage storage) : storage_(std::move(storage)) {}

  Storage storage_;
};

using Kind = Value::Kind;
using Values = std::vector<Value>;

// The sequences of Python that templates meet: all can be iterated and counted, but only lists,
// tuples and ranges have subscripts, and only lists and tuples are JSON.
struct List {
  enum class Flavour { kList, kTuple, kRange, kKeys, kValues, kItems };
  struct Bounds {  // of a range, as it prints
    std::int64_t start = 0, stop = 0, step = 1;
  };
  Flavour flavour = Flavour::kList;
  Values items;
  int depth = 1;
  Bounds bounds = {};

  bool HasSubscripts() const { return flavour <= Flavour::kRange; }
};

struct Dict {
  std::vector<std::pair<Value, Value>> entries;        // in the order in which they were put in
  std::unordered_map<std::string, std::size_t> index;  // by DictKey
  int depth = 1;

  const Value* Find(const Value& key) const;  // null also for what can be no key
  const Value* Find(std::string_view key) const;
};

// What Python calls a generator: gives each item once.
struct Iterator {
  Values items;
  std::size_t next = 0;
  int depth = 1;
};

struct Namespace {
  std::vector<std::pair<std::string, Value>> members;

  const Value* Find(std::string_view name) const;
  void Set(std::string_view name, Value value);
};

// The text by which equal keys are equal: 1, 1.0 and true are one key. An error for what Python
// cannot hash.
Result<std::string> DictKey(const Value& key);
std::string TextKey(std::string_view text);  // of a string

Result<Value> MakeList(Values items, Meter& meter, List::Flavour flavour = List::Flavour::kList);
Result<Value> MakeIterator(Values items, Meter& meter);
Result<Value> MakeRange(const List::Bounds& bounds, Meter& meter);  // the step is not 0

class DictBuilder {
 public:
  // A key that is there keeps its place and gets the value.
  Status Set(Value key, Value value, Meter& meter);
  Status Set(std::string_view key, Value value, Meter& meter);
  Value Take() { return Value::Of(std::shared_ptr<const Dict>(std::move(dict_))); }

 private:
  std::shared_ptr<Dict> dict_ = std::make_shared<Dict>();
};

bool Truth(const Value& value);
std::string_view KindName(const Value& value);  // as Python names its types: "str"

// All items of what a `for` can go through; takes them from an iterator.
Result<Values> Iterate(const Value& value, Meter& meter);
// len(value).
Result<std::int64_t> Length(const Value& value, Meter& meter);

// "found int, expected a string": the error of an operation that cannot take the value.
Status Misused(const Value& value, std::string_view expected);

}  // namespace troupe::jinja
