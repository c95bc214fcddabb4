#include "text/jinja/slices.h"

#include <algorithm>

#include "text/jinja/callable.h"
#include "text/jinja/characters.h"
#include "text/jinja/methods.h"

namespace troupe::jinja {
namespace {

Value Missing(const Value& value, std::string_view name) {
  return Value::UndefinedNamed(fmt::format("'{}' of {}", name, KindName(value)));
}

Result<Value> LoopAttribute(const Loop& loop, std::string_view name) {
  const auto count = static_cast<std::int64_t>(loop.items.size());
  const auto at = static_cast<std::int64_t>(loop.index);
  if (name == "index") return Value::Int(at + 1);
  if (name == "index0") return Value::Int(at);
  if (name == "revindex") return Value::Int(count - at);
  if (name == "revindex0") return Value::Int(count - at - 1);
  if (name == "first") return Value::Bool(at == 0);
  if (name == "last") return Value::Bool(at + 1 == count);
  if (name == "length") return Value::Int(count);
  if (name == "depth") return Value::Int(loop.depth0 + 1);
  if (name == "depth0") return Value::Int(loop.depth0);
  if (name == "previtem") {
    return at == 0 ? Value::UndefinedNamed("the item before the first")
                   : loop.items[loop.index - 1];
  }
  if (name == "nextitem") {
    return at + 1 == count ? Value::UndefinedNamed("the item behind the last")
                           : loop.items[loop.index + 1];
  }
  return Value::UndefinedNamed(fmt::format("'loop.{}'", name));
}

Value BoundMethod(const Value& self, std::string_view name) {
  return Value::Of(std::make_shared<const Callable>(
      Callable{.type = Callable::Type::kMethod, .name = std::string(name), .self = self}));
}

// What Python finds by getattr; nothing where it finds nothing.
Result<Value> OwnAttribute(const Value& value, std::string_view name) {
  if (value.Is(Kind::kLoop)) {
    if (name == "cycle" || name == "changed") return BoundMethod(value, name);
    return LoopAttribute(value.AsLoop(), name);
  }
  if (value.Is(Kind::kNamespace)) {
    const Value* found = value.AsNamespace().Find(name);
    return found == nullptr ? Missing(value, name) : *found;
  }
  if (value.Is(Kind::kCallable) && name == "name") return Value::String(value.AsCallable().name);
  if (HasMethod(value, name)) return BoundMethod(value, name);
  return Missing(value, name);
}

// Where a slice begins, ends, and what it steps over, as Python's slice.indices().
struct Bounds {
  std::int64_t from, to, step;
};
Result<Bounds> ReadBounds(const Value& from, const Value& to, const Value& step,
                          std::int64_t length) {
  for (const Value* bound : {&from, &to, &step}) {
    if (!bound->Is(Kind::kNone) && !bound->IsIntegral()) {
      return Misused(*bound, "a whole number for a slice");
    }
  }
  std::int64_t stride = step.Is(Kind::kNone) ? 1 : step.AsInt();
  if (stride == 0) return InvalidArgument("a slice whose step is 0");
  // More than the length, either way, is as good as any more.
  stride = std::clamp(stride, -length - 1, length + 1);
  const bool backwards = stride < 0;
  const std::int64_t lowest = backwards ? -1 : 0, highest = backwards ? length - 1 : length;
  const auto place = [&](const Value& bound, std::int64_t otherwise) {
    if (bound.Is(Kind::kNone)) return otherwise;
    const std::int64_t at = bound.AsInt();
    return at < 0 ? std::max(at + length, lowest) : std::min(at, highest);
  };
  return Bounds{place(from, backwards ? highest : lowest), place(to, backwards ? lowest : highest),
                stride};
}

}  // namespace

Result<Value> GetAttribute(const Value& value, std::string_view name, Meter& meter) {
  if (value.Is(Kind::kUndefined)) {
    return Misused(value, fmt::format("a value with an attribute '{}'", name));
  }
  if (value.Is(Kind::kDict) && !HasMethod(value, name)) {
    TROUPE_RETURN_IF_ERROR(meter.Steps());
    const Value* found = value.AsDict().Find(name);
    return found == nullptr ? Missing(value, name) : *found;
  }
  return OwnAttribute(value, name);
}

Result<Value> GetItem(const Value& value, const Value& key, Meter& meter) {
  if (value.Is(Kind::kUndefined)) return Misused(value, "a value with items");
  TROUPE_RETURN_IF_ERROR(meter.Steps());
  if (value.Is(Kind::kDict)) {
    if (const Value* found = value.AsDict().Find(key)) return *found;
  }
  if (key.IsIntegral()) {
    const bool is_text = value.Is(Kind::kString);
    const bool is_list = value.Is(Kind::kList) && value.AsList().HasSubscripts();
    if (is_text || is_list) {
      std::vector<std::size_t> starts;
      if (is_text) {
        TROUPE_RETURN_IF_ERROR(meter.Reads(value.AsText().size()));
        starts = CharacterStarts(value.AsString());
      }
      const auto length =
          static_cast<std::int64_t>(is_text ? starts.size() - 1 : value.AsList().items.size());
      std::int64_t at = key.AsInt();
      if (at < 0) at += length;
      if (at < 0 || at >= length) return Missing(value, std::to_string(key.AsInt()));
      const auto i = static_cast<std::size_t>(at);
      if (is_list) return value.AsList().items[i];
      return Value::String(value.AsText().Slice(starts[i], starts[i + 1] - starts[i]));
    }
  }
  if (key.Is(Kind::kString)) return OwnAttribute(value, key.AsString());
  return Missing(value, KindName(key));
}

Result<Value> GetSlice(const Value& value, const Value& from, const Value& to, const Value& step,
                       Meter& meter) {
  const bool is_text = value.Is(Kind::kString);
  if (!is_text && !(value.Is(Kind::kList) && value.AsList().HasSubscripts())) {
    return Misused(value, "a string or a list to take a slice of");
  }
  std::vector<std::size_t> starts;
  if (is_text) {
    TROUPE_RETURN_IF_ERROR(meter.MakesString(value.AsText().size()));
    starts = CharacterStarts(value.AsString());
  }
  const auto length =
      static_cast<std::int64_t>(is_text ? starts.size() - 1 : value.AsList().items.size());
  TROUPE_ASSIGN_OR_RETURN(const Bounds bounds, ReadBounds(from, to, step, length));
  if (is_text && bounds.step == 1) {
    const auto begin = starts[static_cast<std::size_t>(bounds.from)];
    const auto end = starts[static_cast<std::size_t>(std::max(bounds.from, bounds.to))];
    return Value::String(value.AsText().Slice(begin, end - begin));
  }
  if (!is_text && value.AsList().flavour == List::Flavour::kRange) {
    const List::Bounds& range = value.AsList().bounds;
    return MakeRange({range.start + bounds.from * range.step, range.start + bounds.to * range.step,
                      range.step * bounds.step},
                     meter);
  }
  MarkedText text;
  Values items;
  for (std::int64_t at = bounds.from; bounds.step > 0 ? at < bounds.to : at > bounds.to;
       at += bounds.step) {
    const auto i = static_cast<std::size_t>(at);
    if (is_text) {
      text.AppendSlice(value.AsText(), starts[i], starts[i + 1] - starts[i]);
    } else {
      items.push_back(value.AsList().items[i]);
    }
  }
  if (is_text) return Value::String(std::move(text));
  return MakeList(std::move(items), meter, value.AsList().flavour);
}

Result<Value> DictView(const Dict& dict, std::string_view which, Meter& meter) {
  Values items;
  TROUPE_RETURN_IF_ERROR(meter.MakesList(dict.entries.size()));
  for (const auto& [key, value] : dict.entries) {
    if (which == "keys") {
      items.push_back(key);
    } else if (which == "values") {
      items.push_back(value);
    } else {
      TROUPE_ASSIGN_OR_RETURN(Value pair, MakeList({key, value}, meter, List::Flavour::kTuple));
      items.push_back(std::move(pair));
    }
  }
  return MakeList(std::move(items), meter,
                  which == "keys"     ? List::Flavour::kKeys
                  : which == "values" ? List::Flavour::kValues
                                      : List::Flavour::kItems);
}

Result<Value> GetPath(const Value& value, const Value& path, const Value& otherwise, Meter& meter) {
  const auto step = [&](const Value& from, const Value& key) -> Result<Value> {
    TROUPE_ASSIGN_OR_RETURN(Value part, GetItem(from, key, meter));
    if (part.Is(Kind::kUndefined) && !otherwise.Is(Kind::kNone)) return otherwise;
    return part;
  };
  if (!path.Is(Kind::kString)) return step(value, path);
  const std::string& names = path.AsString();
  Value at = value;
  for (std::size_t begin = 0; begin <= names.size();) {
    const std::size_t end = std::min(names.find('.', begin), names.size());
    const std::string part = names.substr(begin, end - begin);
    const bool is_index = !part.empty() && part.size() < 18 &&
                          part.find_first_not_of("0123456789") == std::string::npos;
    const Value key = is_index ? Value::Int(std::stoll(part)) : Value::String(part);
    TROUPE_ASSIGN_OR_RETURN(at, step(at, key));
    begin = end + 1;
  }
  return at;
}

}  // namespace troupe::jinja
