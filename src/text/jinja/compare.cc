#include "text/jinja/compare.h"

#include <algorithm>

#include "text/jinja/callable.h"

namespace troupe::jinja {
namespace {

// Exact for whole numbers; long double holds them all beside a double.
int CompareNumbers(const Value& a, const Value& b) {
  if (a.IsIntegral() && b.IsIntegral()) {
    return a.AsInt() < b.AsInt() ? -1 : a.AsInt() > b.AsInt() ? 1 : 0;
  }
  const auto wide = [](const Value& value) {
    return value.IsIntegral() ? static_cast<long double>(value.AsInt()) : value.AsFloat();
  };
  return wide(a) < wide(b) ? -1 : wide(a) > wide(b) ? 1 : wide(a) == wide(b) ? 0 : 2;  // 2: NaN
}

Result<bool> EqualLists(const Values& a, const Values& b, Meter& meter) {
  if (a.size() != b.size()) return false;
  for (std::size_t i = 0; i < a.size(); ++i) {
    TROUPE_ASSIGN_OR_RETURN(const bool equal, Equal(a[i], b[i], meter));
    if (!equal) return false;
  }
  return true;
}

Result<bool> EqualDicts(const Dict& a, const Dict& b, Meter& meter) {
  if (a.entries.size() != b.entries.size()) return false;
  for (const auto& [key, value] : a.entries) {
    const Value* other = b.Find(key);
    if (other == nullptr) return false;
    TROUPE_ASSIGN_OR_RETURN(const bool equal, Equal(value, *other, meter));
    if (!equal) return false;
  }
  return true;
}

bool HaveEqualTypes(const List& a, const List& b) {
  return a.flavour == b.flavour && a.flavour != List::Flavour::kValues;
}

}  // namespace

Result<bool> Equal(const Value& a, const Value& b, Meter& meter) {
  TROUPE_RETURN_IF_ERROR(meter.Steps());
  if (a.IsNumber() && b.IsNumber()) return CompareNumbers(a, b) == 0;
  if (a.kind() != b.kind()) return false;
  switch (a.kind()) {
    case Kind::kUndefined:
    case Kind::kNone:
      return true;
    case Kind::kString:
      TROUPE_RETURN_IF_ERROR(meter.Reads(a.AsText().size()));
      return a.AsString() == b.AsString();
    case Kind::kList:
      if (!HaveEqualTypes(a.AsList(), b.AsList())) return a.Identity() == b.Identity();
      return EqualLists(a.AsList().items, b.AsList().items, meter);
    case Kind::kDict:
      return EqualDicts(a.AsDict(), b.AsDict(), meter);
    default:
      return a.Identity() == b.Identity();
  }
}

Result<bool> Less(const Value& a, const Value& b, Meter& meter) {
  TROUPE_RETURN_IF_ERROR(meter.Steps());
  if (a.IsNumber() && b.IsNumber()) return CompareNumbers(a, b) == -1;
  if (a.Is(Kind::kString) && b.Is(Kind::kString)) {
    TROUPE_RETURN_IF_ERROR(meter.Reads(std::min(a.AsText().size(), b.AsText().size())));
    return a.AsString() < b.AsString();  // the order of UTF-8 is that of its characters
  }
  if (a.Is(Kind::kList) && b.Is(Kind::kList) && HaveEqualTypes(a.AsList(), b.AsList()) &&
      a.AsList().flavour <= List::Flavour::kTuple) {
    const Values& left = a.AsList().items;
    const Values& right = b.AsList().items;
    for (std::size_t i = 0; i < std::min(left.size(), right.size()); ++i) {
      TROUPE_ASSIGN_OR_RETURN(const bool equal, Equal(left[i], right[i], meter));
      if (!equal) return Less(left[i], right[i], meter);
    }
    return left.size() < right.size();
  }
  if (a.Is(Kind::kUndefined)) return Misused(a, "what has an order");
  if (b.Is(Kind::kUndefined)) return Misused(b, "what has an order");
  return InvalidArgument("{} and {} have no order between them", KindName(a), KindName(b));
}

Result<bool> CompareOrder(std::string_view sign, const Value& a, const Value& b, Meter& meter) {
  if (sign == "<") return Less(a, b, meter);
  if (sign == ">") return Less(b, a, meter);
  TROUPE_ASSIGN_OR_RETURN(const bool less, sign == "<=" ? Less(a, b, meter) : Less(b, a, meter));
  if (less) return true;
  return Equal(a, b, meter);
}

Result<bool> Contains(const Value& container, const Value& item, Meter& meter) {
  if (container.Is(Kind::kString)) {
    if (!item.Is(Kind::kString)) return Misused(item, "a string, to look for in a string");
    TROUPE_RETURN_IF_ERROR(meter.Searches(container.AsText().size(), item.AsText().size()));
    return container.AsString().find(item.AsString()) != std::string::npos;
  }
  const bool is_keys =
      container.Is(Kind::kList) && container.AsList().flavour == List::Flavour::kKeys;
  if (container.Is(Kind::kDict) || is_keys) TROUPE_RETURN_IF_ERROR(DictKey(item).status());
  if (container.Is(Kind::kDict)) return container.AsDict().Find(item) != nullptr;
  if (container.Is(Kind::kIterator)) {  // found: what comes after it is left
    Iterator& it = container.AsIterator();
    while (it.next < it.items.size()) {
      TROUPE_ASSIGN_OR_RETURN(const bool equal, Equal(it.items[it.next++], item, meter));
      if (equal) return true;
    }
    return false;
  }
  if (container.Is(Kind::kUndefined)) return false;
  if (!container.Is(Kind::kList)) return Misused(container, "what can hold items");
  for (const Value& held : container.AsList().items) {
    TROUPE_ASSIGN_OR_RETURN(const bool equal, Equal(held, item, meter));
    if (equal) return true;
  }
  return false;
}

bool Same(const Value& a, const Value& b) {
  if (a.kind() != b.kind()) return false;
  switch (a.kind()) {
    case Kind::kUndefined:
      return false;
    case Kind::kNone:
      return true;
    case Kind::kBool:
    case Kind::kInt:
      return a.AsInt() == b.AsInt();
    case Kind::kFloat:
      return a.AsFloat() == b.AsFloat();
    case Kind::kString:
      return a.AsString() == b.AsString();
    default:
      return a.Identity() == b.Identity();
  }
}

}  // namespace troupe::jinja
