// Filters that order and group: sort, dictsort, unique, min, max, groupby. Texts that differ in
// case alone count as equal unless the template says otherwise.
#include <algorithm>
#include <set>
#include <string>

#include "text/jinja/compare.h"
#include "text/jinja/filter_table.h"
#include "text/jinja/slices.h"
#include "text/jinja/text_edit.h"

namespace troupe::jinja {
namespace {

struct Keyed {
  Value key, item;
};

Value Folded(const Value& value, bool case_sensitive) {
  if (case_sensitive || !value.Is(Kind::kString)) return value;
  return Value::String(ChangeCase(value.AsText(), Case::kLower));
}

// The items with the value that they are ordered by. `otherwise` is for items without the
// attribute.
Result<std::vector<Keyed>> KeyItems(const Values& items, const Value& attribute, bool sensitive,
                                    Meter& meter, const Value& otherwise = Value::MakeNone()) {
  std::vector<Keyed> keyed;
  for (const Value& item : items) {
    Value key = item;
    if (!attribute.Is(Kind::kNone)) {
      TROUPE_ASSIGN_OR_RETURN(key, GetPath(item, attribute, otherwise, meter));
    }
    if (key.Is(Kind::kString)) TROUPE_RETURN_IF_ERROR(meter.MakesString(key.AsText().size()));
    keyed.push_back({Folded(key, sensitive), item});
  }
  return keyed;
}

// As `sort` does: the key is a list of what each of the attributes "a,b" is.
Result<std::vector<Keyed>> KeyBySeveral(const Values& items, const Value& attributes,
                                        bool sensitive, Meter& meter) {
  std::vector<MarkedText> paths;
  if (attributes.Is(Kind::kString)) paths = SplitAt(attributes.AsText(), ",", -1, false);
  std::vector<Keyed> keyed;
  for (const Value& item : items) keyed.push_back({Value(), item});
  std::vector<Values> keys(items.size());
  for (std::size_t i = 0; i < std::max<std::size_t>(paths.size(), 1); ++i) {
    const Value path = paths.empty() ? attributes : Value::String(paths[i]);
    TROUPE_ASSIGN_OR_RETURN(const auto part, KeyItems(items, path, sensitive, meter));
    for (std::size_t k = 0; k < part.size(); ++k) keys[k].push_back(part[k].key);
  }
  for (std::size_t k = 0; k < keys.size(); ++k) {
    TROUPE_ASSIGN_OR_RETURN(keyed[k].key, MakeList(std::move(keys[k]), meter));
  }
  return keyed;
}

Status SortKeyed(std::vector<Keyed>& keyed, bool backwards, Meter& meter) {
  Status failed;
  const auto less = [&](const Keyed& a, const Keyed& b) {
    if (!failed.ok()) return false;
    const Result<bool> found = Less(backwards ? b.key : a.key, backwards ? a.key : b.key, meter);
    if (!found.ok()) failed = found.status();
    return found.ok() && *found;
  };
  std::stable_sort(keyed.begin(), keyed.end(), less);
  return failed;
}

Values ItemsOf(const std::vector<Keyed>& keyed) {
  Values items;
  for (const Keyed& one : keyed) items.push_back(one.item);
  return items;
}

Result<Value> SortFilter(const Value& value, const Arguments& arguments, Meter& meter) {
  ArgumentReader reader("sort", arguments);
  const bool backwards = reader.Flag("reverse", false);
  const bool sensitive = reader.Flag("case_sensitive", false);
  const Value attribute = reader.Or("attribute", Value::MakeNone());
  TROUPE_RETURN_IF_ERROR(reader.Finish());
  TROUPE_ASSIGN_OR_RETURN(const Values items, Iterate(value, meter));
  TROUPE_ASSIGN_OR_RETURN(auto keyed, KeyBySeveral(items, attribute, sensitive, meter));
  TROUPE_RETURN_IF_ERROR(SortKeyed(keyed, backwards, meter));
  return MakeList(ItemsOf(keyed), meter);
}

Result<Value> DictSortFilter(const Value& value, const Arguments& arguments, Meter& meter) {
  ArgumentReader reader("dictsort", arguments);
  const bool sensitive = reader.Flag("case_sensitive", false);
  const Value by = reader.Or("by", Value::String("key"));
  const bool backwards = reader.Flag("reverse", false);
  TROUPE_RETURN_IF_ERROR(reader.Finish());
  const std::string word = by.Is(Kind::kString) ? by.AsString() : std::string();
  if (word != "key" && word != "value") return InvalidArgument("dictsort(): by key or value");
  if (!value.Is(Kind::kDict)) return Misused(value, "a dict");
  TROUPE_ASSIGN_OR_RETURN(const Value view, DictView(value.AsDict(), "items", meter));
  const Value position = Value::Int(word == "key" ? 0 : 1);
  TROUPE_ASSIGN_OR_RETURN(auto keyed, KeyItems(view.AsList().items, position, sensitive, meter));
  TROUPE_RETURN_IF_ERROR(SortKeyed(keyed, backwards, meter));
  return MakeList(ItemsOf(keyed), meter);
}

Result<Value> UniqueFilter(const Value& value, const Arguments& arguments, Meter& meter) {
  ArgumentReader reader("unique", arguments);
  const bool sensitive = reader.Flag("case_sensitive", false);
  const Value attribute = reader.Or("attribute", Value::MakeNone());
  TROUPE_RETURN_IF_ERROR(reader.Finish());
  TROUPE_ASSIGN_OR_RETURN(const Values items, Iterate(value, meter));
  TROUPE_ASSIGN_OR_RETURN(const auto keyed, KeyItems(items, attribute, sensitive, meter));
  std::set<std::string> seen;
  Values kept;
  for (const Keyed& one : keyed) {
    TROUPE_ASSIGN_OR_RETURN(std::string key, DictKey(one.key));
    if (seen.insert(std::move(key)).second) kept.push_back(one.item);
  }
  return MakeIterator(std::move(kept), meter);
}

Result<Value> Extreme(std::string_view name, const Value& value, const Arguments& arguments,
                      Meter& meter) {
  ArgumentReader reader(name, arguments);
  const bool sensitive = reader.Flag("case_sensitive", false);
  const Value attribute = reader.Or("attribute", Value::MakeNone());
  TROUPE_RETURN_IF_ERROR(reader.Finish());
  TROUPE_ASSIGN_OR_RETURN(const Values items, Iterate(value, meter));
  if (items.empty()) return Value::UndefinedNamed("the extreme of no items");
  TROUPE_ASSIGN_OR_RETURN(const auto keyed, KeyItems(items, attribute, sensitive, meter));
  const Keyed* best = keyed.data();
  for (const Keyed& one : keyed) {
    if (&one == best) continue;
    TROUPE_ASSIGN_OR_RETURN(const bool better, name == "min" ? Less(one.key, best->key, meter)
                                                             : Less(best->key, one.key, meter));
    if (better) best = &one;
  }
  return best->item;
}

Result<Value> MinFilter(const Value& value, const Arguments& arguments, Meter& meter) {
  return Extreme("min", value, arguments, meter);
}
Result<Value> MaxFilter(const Value& value, const Arguments& arguments, Meter& meter) {
  return Extreme("max", value, arguments, meter);
}

// A list of pairs (key, items), ordered by key.
Result<Value> GroupFilter(const Value& value, const Arguments& arguments, Meter& meter) {
  ArgumentReader reader("groupby", arguments);
  const Value attribute = reader.Required("attribute");
  const Value otherwise = reader.Or("default", Value::MakeNone());
  const bool sensitive = reader.Flag("case_sensitive", false);
  TROUPE_RETURN_IF_ERROR(reader.Finish());
  TROUPE_ASSIGN_OR_RETURN(const Values items, Iterate(value, meter));
  TROUPE_ASSIGN_OR_RETURN(auto keyed, KeyItems(items, attribute, sensitive, meter, otherwise));
  TROUPE_RETURN_IF_ERROR(SortKeyed(keyed, false, meter));
  Values groups;
  for (std::size_t begin = 0, end = 0; begin < keyed.size(); begin = end) {
    Values members;
    for (end = begin; end < keyed.size(); ++end) {
      TROUPE_ASSIGN_OR_RETURN(const bool equal, Equal(keyed[end].key, keyed[begin].key, meter));
      if (!equal) break;
      members.push_back(keyed[end].item);
    }
    if (end == begin) end = begin + 1;  // NaN is not equal to itself, and a group of its own
    TROUPE_ASSIGN_OR_RETURN(Value name, GetPath(keyed[begin].item, attribute, otherwise, meter));
    TROUPE_ASSIGN_OR_RETURN(Value list, MakeList(std::move(members), meter));
    TROUPE_ASSIGN_OR_RETURN(Value group, MakeList({name, list}, meter, List::Flavour::kTuple));
    groups.push_back(std::move(group));
  }
  return MakeList(std::move(groups), meter);
}

constexpr NamedFilter kOrderFilters[] = {
    {"sort", SortFilter}, {"dictsort", DictSortFilter}, {"unique", UniqueFilter},
    {"min", MinFilter},   {"max", MaxFilter},           {"groupby", GroupFilter},
};

}  // namespace

std::span<const NamedFilter> OrderFilters() { return kOrderFilters; }

}  // namespace troupe::jinja
