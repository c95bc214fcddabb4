// Filters that take a list, a dict or a text apart, and `default`.
#include <algorithm>
#include <string>

#include "text/jinja/filter_table.h"
#include "text/jinja/slices.h"

namespace troupe::jinja {
namespace {

Status NoArguments(std::string_view filter, const Arguments& arguments) {
  return ArgumentReader(filter, arguments).Finish();
}

Result<Value> DefaultFilter(const Value& value, const Arguments& arguments, Meter&) {
  ArgumentReader reader("default", arguments);
  const Value otherwise = reader.Or("default_value", Value::String(""));
  const bool also_false = reader.Flag("boolean", false);
  TROUPE_RETURN_IF_ERROR(reader.Finish());
  const bool takes_other = value.Is(Kind::kUndefined) || (also_false && !Truth(value));
  return takes_other ? otherwise : value;
}

Result<Value> FirstFilter(const Value& value, const Arguments& arguments, Meter& meter) {
  TROUPE_RETURN_IF_ERROR(NoArguments("first", arguments));
  if (value.Is(Kind::kIterator)) {
    Iterator& it = value.AsIterator();
    if (it.next < it.items.size()) return it.items[it.next++];
    return Value::UndefinedNamed("the first of no items");
  }
  TROUPE_ASSIGN_OR_RETURN(const Values items, Iterate(value, meter));
  return items.empty() ? Value::UndefinedNamed("the first of no items") : items.front();
}

Result<Value> LastFilter(const Value& value, const Arguments& arguments, Meter& meter) {
  TROUPE_RETURN_IF_ERROR(NoArguments("last", arguments));
  if (value.Is(Kind::kIterator) || value.Is(Kind::kUndefined)) {
    return Misused(value, "what can be gone through backwards");
  }
  TROUPE_ASSIGN_OR_RETURN(const Values items, Iterate(value, meter));
  return items.empty() ? Value::UndefinedNamed("the last of no items") : items.back();
}

Result<Value> ListFilter(const Value& value, const Arguments& arguments, Meter& meter) {
  TROUPE_RETURN_IF_ERROR(NoArguments("list", arguments));
  TROUPE_ASSIGN_OR_RETURN(Values items, Iterate(value, meter));
  return MakeList(std::move(items), meter);
}

Result<Value> ReverseFilter(const Value& value, const Arguments& arguments, Meter& meter) {
  TROUPE_RETURN_IF_ERROR(NoArguments("reverse", arguments));
  if (value.Is(Kind::kString)) {
    return GetSlice(value, Value::MakeNone(), Value::MakeNone(), Value::Int(-1), meter);
  }
  TROUPE_ASSIGN_OR_RETURN(Values items, Iterate(value, meter));
  std::reverse(items.begin(), items.end());
  // What Python cannot walk backwards becomes a list.
  if (value.Is(Kind::kIterator) || value.Is(Kind::kUndefined))
    return MakeList(std::move(items), meter);
  return MakeIterator(std::move(items), meter);
}

Result<Value> ItemsFilter(const Value& value, const Arguments& arguments, Meter& meter) {
  TROUPE_RETURN_IF_ERROR(NoArguments("items", arguments));
  if (value.Is(Kind::kUndefined)) return MakeIterator({}, meter);
  if (!value.Is(Kind::kDict)) return Misused(value, "a dict");
  TROUPE_ASSIGN_OR_RETURN(const Value view, DictView(value.AsDict(), "items", meter));
  return MakeIterator(view.AsList().items, meter);
}

Result<Value> AttrFilter(const Value& value, const Arguments& arguments, Meter& meter) {
  ArgumentReader reader("attr", arguments);
  const MarkedText* name = reader.Text("name");
  TROUPE_RETURN_IF_ERROR(reader.Finish());
  if (name == nullptr) return InvalidArgument("attr(): a name expected");
  if (value.Is(Kind::kDict) && value.AsDict().Find(name->bytes()) != nullptr) {
    return Value::UndefinedNamed(fmt::format("'{}' of dict", name->bytes()));
  }
  if (value.Is(Kind::kUndefined)) return Value();
  return GetAttribute(value, name->bytes(), meter);
}

// Into lists of `count` items each; `fill` makes the last one full.
Result<Value> BatchFilter(const Value& value, const Arguments& arguments, Meter& meter) {
  ArgumentReader reader("batch", arguments);
  const Value asked = reader.Required("linecount");
  const Value fill = reader.Or("fill_with", Value::MakeNone());
  TROUPE_RETURN_IF_ERROR(reader.Finish());
  if (!asked.IsIntegral() || asked.AsInt() < 1) return Misused(asked, "a count above 0");
  const auto count = static_cast<std::size_t>(asked.AsInt());
  TROUPE_ASSIGN_OR_RETURN(const Values items, Iterate(value, meter));
  Values batches;
  for (std::size_t at = 0; at < items.size(); at += std::min(count, items.size() - at)) {
    const std::size_t end = at + std::min(count, items.size() - at);
    Values batch(items.begin() + static_cast<std::ptrdiff_t>(at),
                 items.begin() + static_cast<std::ptrdiff_t>(end));
    if (!fill.Is(Kind::kNone) && batch.size() < count) {
      TROUPE_RETURN_IF_ERROR(meter.MakesList(count));
      batch.resize(count, fill);
    }
    TROUPE_ASSIGN_OR_RETURN(Value made, MakeList(std::move(batch), meter));
    batches.push_back(std::move(made));
  }
  return MakeIterator(std::move(batches), meter);
}

constexpr NamedFilter kListFilters[] = {
    {"default", DefaultFilter}, {"d", DefaultFilter}, {"first", FirstFilter},
    {"last", LastFilter},       {"list", ListFilter}, {"reverse", ReverseFilter},
    {"items", ItemsFilter},     {"attr", AttrFilter}, {"batch", BatchFilter},
};

}  // namespace

std::span<const NamedFilter> ListFilters() { return kListFilters; }

}  // namespace troupe::jinja
