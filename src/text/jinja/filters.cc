#include "text/jinja/filters.h"

#include "text/jinja/filter_table.h"

namespace troupe::jinja {
namespace {

Filter FindFilter(std::string_view name) {
  for (const auto table :
       {TextFilters(), NumberFilters(), ListFilters(), OrderFilters(), ChoiceFilters()}) {
    for (const NamedFilter& known : table) {
      if (known.name == name) return known.filter;
    }
  }
  return nullptr;
}

}  // namespace

bool HasFilter(std::string_view name) { return FindFilter(name) != nullptr; }

Result<Value> ApplyFilter(std::string_view name, const Value& value, const Arguments& arguments,
                          Meter& meter) {
  const Filter filter = FindFilter(name);
  if (filter == nullptr) return Error(Code::kUnimplemented, "no filter '{}' is known", name);
  TROUPE_RETURN_IF_ERROR(meter.Steps());
  return filter(value, arguments, meter);
}

}  // namespace troupe::jinja
