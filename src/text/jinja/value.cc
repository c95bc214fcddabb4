#include "text/jinja/value.h"

#include <algorithm>
#include <cmath>

#include "text/jinja/callable.h"
#include "text/jinja/characters.h"

namespace troupe::jinja {
namespace {

Result<int> DepthAbove(const Values& items) {
  int deepest = 0;
  for (const Value& item : items) deepest = std::max(deepest, item.Depth());
  if (deepest >= kDeepestValue) {
    return Error(Code::kResourceExhausted, "lists nested deeper than {}", kDeepestValue);
  }
  return deepest + 1;
}

std::string IntKey(std::int64_t number) { return fmt::format("i{}", number); }

}  // namespace

Value Value::UndefinedNamed(std::string_view what) {
  return Value(Storage(Undefined{std::make_shared<const std::string>(what)}));
}

Value Value::String(MarkedText text) {
  return Value(Storage(std::make_shared<const MarkedText>(std::move(text))));
}

std::int64_t Value::AsInt() const {
  return Is(Kind::kBool) ? AsBool() : std::get<std::int64_t>(storage_);
}

double Value::AsFloat() const {
  return Is(Kind::kFloat) ? std::get<double>(storage_) : static_cast<double>(AsInt());
}

const MarkedText& Value::AsText() const {
  return *std::get<std::shared_ptr<const MarkedText>>(storage_);
}

const void* Value::Identity() const {
  switch (kind()) {
    case Kind::kString:
      return &AsText();
    case Kind::kList:
      return &AsList();
    case Kind::kDict:
      return &AsDict();
    case Kind::kIterator:
      return &AsIterator();
    case Kind::kNamespace:
      return &AsNamespace();
    case Kind::kCallable:
      return &AsCallable();
    case Kind::kLoop:
      return &AsLoop();
    default:
      return nullptr;
  }
}

int Value::Depth() const {
  switch (kind()) {
    case Kind::kList:
      return AsList().depth;
    case Kind::kDict:
      return AsDict().depth;
    case Kind::kIterator:
      return AsIterator().depth;
    case Kind::kCallable:
      return AsCallable().self.Depth();
    default:
      return 0;
  }
}

std::string TextKey(std::string_view text) { return fmt::format("s{}", text); }

Result<std::string> DictKey(const Value& key) {
  switch (key.kind()) {
    case Value::Kind::kUndefined:
      return std::string("u");
    case Value::Kind::kNone:
      return std::string("n");
    case Value::Kind::kBool:
    case Value::Kind::kInt:
      return IntKey(key.AsInt());
    case Value::Kind::kFloat: {
      const double number = key.AsFloat();
      if (std::floor(number) == number && std::abs(number) < 9e18) {
        return IntKey(static_cast<std::int64_t>(number));
      }
      return fmt::format("f{:a}", number);
    }
    case Value::Kind::kString:
      return TextKey(key.AsString());
    case Value::Kind::kList: {
      const List& list = key.AsList();
      if (list.flavour == List::Flavour::kRange) {
        if (list.items.empty()) return std::string("r");
        return fmt::format("r{}:{}:{}", list.items[0].AsInt(), list.items.size(),
                           list.items.size() > 1 ? list.bounds.step : 0);
      }
      if (list.flavour != List::Flavour::kTuple) break;
      std::string together(1, 't');
      for (const Value& item : list.items) {
        TROUPE_ASSIGN_OR_RETURN(const std::string part, DictKey(item));
        together += fmt::format("{}:{}", part.size(), part);
      }
      return together;
    }
    case Value::Kind::kDict:
      break;
    default:
      return fmt::format("p{}", key.Identity());
  }
  return Misused(key, "what can be a key");
}

const Value* Dict::Find(const Value& key) const {
  const Result<std::string> text = DictKey(key);
  if (!text.ok()) return nullptr;
  const auto found = index.find(*text);
  return found == index.end() ? nullptr : &entries[found->second].second;
}

const Value* Dict::Find(std::string_view key) const {
  const auto found = index.find(TextKey(key));
  return found == index.end() ? nullptr : &entries[found->second].second;
}

Status DictBuilder::Set(Value key, Value value, Meter& meter) {
  TROUPE_ASSIGN_OR_RETURN(const std::string text, DictKey(key));
  TROUPE_ASSIGN_OR_RETURN(const int depth, DepthAbove({key, value}));
  const auto [at, is_new] = dict_->index.emplace(text, dict_->entries.size());
  dict_->depth = std::max(dict_->depth, depth);
  if (!is_new) {
    dict_->entries[at->second].second = std::move(value);
    return meter.Steps();
  }
  dict_->entries.emplace_back(std::move(key), std::move(value));
  if (dict_->entries.size() > meter.limits().list_items)
    return meter.MakesList(dict_->entries.size());
  return meter.MakesString(text.size() + 64);
}

Status DictBuilder::Set(std::string_view key, Value value, Meter& meter) {
  return Set(Value::String(std::string(key)), std::move(value), meter);
}

const Value* Namespace::Find(std::string_view name) const {
  for (const auto& [key, value] : members) {
    if (key == name) return &value;
  }
  return nullptr;
}

void Namespace::Set(std::string_view name, Value value) {
  for (auto& [key, held] : members) {
    if (key == name) {
      held = std::move(value);
      return;
    }
  }
  members.emplace_back(name, std::move(value));
}

Result<Value> MakeList(Values items, Meter& meter, List::Flavour flavour) {
  TROUPE_RETURN_IF_ERROR(meter.MakesList(items.size()));
  TROUPE_ASSIGN_OR_RETURN(const int depth, DepthAbove(items));
  return Value::Of(std::make_shared<const List>(List{flavour, std::move(items), depth, {}}));
}

Result<Value> MakeRange(const List::Bounds& bounds, Meter& meter) {
  const auto [start, stop, step] = bounds;
  const bool up = step > 0;
  std::uint64_t count = 0;
  if (up ? start < stop : start > stop) {  // differences of 64 bits have no sign
    const auto first = static_cast<std::uint64_t>(start), end = static_cast<std::uint64_t>(stop);
    const auto stride = static_cast<std::uint64_t>(step);
    count = ((up ? end - first : first - end) - 1) / (up ? stride : 0 - stride) + 1;
  }
  TROUPE_RETURN_IF_ERROR(meter.MakesList(count));
  Values numbers;
  for (std::uint64_t i = 0; i < count; ++i) {
    numbers.push_back(Value::Int(start + static_cast<std::int64_t>(i) * step));
  }
  return Value::Of(
      std::make_shared<const List>(List{List::Flavour::kRange, std::move(numbers), 1, bounds}));
}

Result<Value> MakeIterator(Values items, Meter& meter) {
  TROUPE_RETURN_IF_ERROR(meter.MakesList(items.size()));
  TROUPE_ASSIGN_OR_RETURN(const int depth, DepthAbove(items));
  return Value::Of(std::make_shared<Iterator>(Iterator{std::move(items), 0, depth}));
}

bool Truth(const Value& value) {
  switch (value.kind()) {
    case Value::Kind::kUndefined:
    case Value::Kind::kNone:
      return false;
    case Value::Kind::kBool:
    case Value::Kind::kInt:
      return value.AsInt() != 0;
    case Value::Kind::kFloat:
      return value.AsFloat() != 0;
    case Value::Kind::kString:
      return !value.AsText().empty();
    case Value::Kind::kList:
      return !value.AsList().items.empty();
    case Value::Kind::kDict:
      return !value.AsDict().entries.empty();
    default:
      return true;
  }
}

std::string_view KindName(const Value& value) {
  switch (value.kind()) {
    case Value::Kind::kUndefined:
      return "undefined";
    case Value::Kind::kNone:
      return "none";
    case Value::Kind::kBool:
      return "bool";
    case Value::Kind::kInt:
      return "int";
    case Value::Kind::kFloat:
      return "float";
    case Value::Kind::kString:
      return "str";
    case Value::Kind::kDict:
      return "dict";
    case Value::Kind::kIterator:
      return "generator";
    case Value::Kind::kNamespace:
      return "namespace";
    case Value::Kind::kCallable:
      return "function";
    case Value::Kind::kLoop:
      return "loop";
    case Value::Kind::kList:
      break;
  }
  constexpr std::string_view kFlavours[] = {"list",      "tuple",       "range",
                                            "dict_keys", "dict_values", "dict_items"};
  return kFlavours[static_cast<int>(value.AsList().flavour)];
}

Status Misused(const Value& value, std::string_view expected) {
  if (value.Is(Value::Kind::kUndefined)) {
    const auto& what = value.AsUndefined().what;
    return InvalidArgument("{} is undefined, expected {}", what ? *what : "a value", expected);
  }
  return InvalidArgument("found {}, expected {}", KindName(value), expected);
}

Result<Values> Iterate(const Value& value, Meter& meter) {
  switch (value.kind()) {
    case Value::Kind::kUndefined:
      return Values{};
    case Value::Kind::kString: {
      const MarkedText& text = value.AsText();
      TROUPE_RETURN_IF_ERROR(meter.MakesList(CountCharacters(text.bytes())));
      Values characters;
      for (std::size_t at = 0; at < text.size();) {
        const std::size_t length = CharacterLength(text.bytes(), at);
        characters.push_back(Value::String(text.Slice(at, length)));
        at += length;
      }
      return characters;
    }
    case Value::Kind::kList:
      TROUPE_RETURN_IF_ERROR(meter.MakesList(value.AsList().items.size()));
      return value.AsList().items;
    case Value::Kind::kDict: {
      TROUPE_RETURN_IF_ERROR(meter.MakesList(value.AsDict().entries.size()));
      Values keys;
      for (const auto& [key, held] : value.AsDict().entries) keys.push_back(key);
      return keys;
    }
    case Value::Kind::kIterator: {
      Iterator& it = value.AsIterator();
      Values rest(it.items.begin() + static_cast<std::ptrdiff_t>(it.next), it.items.end());
      it.next = it.items.size();
      TROUPE_RETURN_IF_ERROR(meter.MakesList(rest.size()));
      return rest;
    }
    default:
      return Misused(value, "what can be iterated");
  }
}

Result<std::int64_t> Length(const Value& value, Meter& meter) {
  switch (value.kind()) {
    case Value::Kind::kUndefined:
      return std::int64_t{0};
    case Value::Kind::kString:
      TROUPE_RETURN_IF_ERROR(meter.Reads(value.AsText().size()));
      return static_cast<std::int64_t>(CountCharacters(value.AsString()));
    case Value::Kind::kList:
      return static_cast<std::int64_t>(value.AsList().items.size());
    case Value::Kind::kDict:
      return static_cast<std::int64_t>(value.AsDict().entries.size());
    case Value::Kind::kLoop:
      return static_cast<std::int64_t>(value.AsLoop().items.size());
    default:
      return Misused(value, "what has a length");
  }
}

}  // namespace troupe::jinja
