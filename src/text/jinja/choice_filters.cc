// Filters that run a filter or a test on every item: map, select, reject, selectattr, rejectattr.
#include "text/jinja/filter_table.h"
#include "text/jinja/slices.h"
#include "text/jinja/value_tests.h"

namespace troupe::jinja {
namespace {

const Value* FindNamed(const Arguments& arguments, std::string_view name) {
  for (const auto& [key, value] : arguments.named) {
    if (key == name) return &value;
  }
  return nullptr;
}

Result<Value> MapAttribute(const Values& items, const Arguments& arguments, Meter& meter) {
  ArgumentReader reader("map", arguments);
  const Value attribute = reader.Required("attribute");
  const Value otherwise = reader.Or("default", Value::MakeNone());
  TROUPE_RETURN_IF_ERROR(reader.Finish());
  Values mapped;
  for (const Value& item : items) {
    TROUPE_ASSIGN_OR_RETURN(Value part, GetPath(item, attribute, otherwise, meter));
    mapped.push_back(std::move(part));
  }
  return MakeIterator(std::move(mapped), meter);
}

// The first argument, which must be a name, and those behind it.
struct Call {
  std::string name;
  Arguments arguments;
};
Result<Call> ReadCall(const Arguments& arguments, std::size_t first) {
  const Value& name = arguments.positional[first];
  if (!name.Is(Kind::kString)) return Misused(name, "the name of a filter or a test");
  Call call{name.AsString(), {.positional = {}, .named = arguments.named}};
  call.arguments.positional.assign(
      arguments.positional.begin() + static_cast<std::ptrdiff_t>(first) + 1,
      arguments.positional.end());
  return call;
}

Result<Value> MapFilter(const Value& value, const Arguments& arguments, Meter& meter) {
  if (!Truth(value)) return MakeIterator({}, meter);
  TROUPE_ASSIGN_OR_RETURN(const Values items, Iterate(value, meter));
  if (items.empty()) return MakeIterator({}, meter);
  if (arguments.positional.empty()) {
    if (FindNamed(arguments, "attribute")) return MapAttribute(items, arguments, meter);
    return InvalidArgument("map(): the name of a filter, or attribute=, expected");
  }
  TROUPE_ASSIGN_OR_RETURN(const Call call, ReadCall(arguments, 0));
  Values mapped;
  for (const Value& item : items) {
    TROUPE_ASSIGN_OR_RETURN(Value one, ApplyFilter(call.name, item, call.arguments, meter));
    mapped.push_back(std::move(one));
  }
  return MakeIterator(std::move(mapped), meter);
}

// Keeps the items that pass a test (or are true, if none is named), or those that do not.
Result<Value> Choose(const Value& value, const Arguments& arguments, bool by_attribute, bool wanted,
                     Meter& meter) {
  if (!Truth(value)) return MakeIterator({}, meter);
  TROUPE_ASSIGN_OR_RETURN(const Values items, Iterate(value, meter));
  if (items.empty()) return MakeIterator({}, meter);
  const std::size_t first = by_attribute ? 1 : 0;
  if (arguments.positional.size() < first)
    return InvalidArgument("the name of an attribute expected");
  const bool has_test = arguments.positional.size() > first;
  Call call;
  if (has_test) {
    TROUPE_ASSIGN_OR_RETURN(call, ReadCall(arguments, first));
  }
  Values kept;
  for (const Value& item : items) {
    Value seen = item;
    if (by_attribute) {
      TROUPE_ASSIGN_OR_RETURN(seen,
                              GetPath(item, arguments.positional[0], Value::MakeNone(), meter));
    }
    bool passes = Truth(seen);
    if (has_test) {
      TROUPE_ASSIGN_OR_RETURN(passes, ApplyTest(call.name, seen, call.arguments, meter));
    }
    if (passes == wanted) kept.push_back(item);
  }
  return MakeIterator(std::move(kept), meter);
}

template <bool kByAttribute, bool kWanted>
Result<Value> ChooseFilter(const Value& value, const Arguments& arguments, Meter& meter) {
  return Choose(value, arguments, kByAttribute, kWanted, meter);
}

constexpr NamedFilter kChoiceFilters[] = {
    {"map", MapFilter},
    {"select", ChooseFilter<false, true>},
    {"reject", ChooseFilter<false, false>},
    {"selectattr", ChooseFilter<true, true>},
    {"rejectattr", ChooseFilter<true, false>},
};

}  // namespace

std::span<const NamedFilter> ChoiceFilters() { return kChoiceFilters; }

}  // namespace troupe::jinja
