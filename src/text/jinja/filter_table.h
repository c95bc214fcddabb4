// The filters by what they work on; filters.h finds one by its name.
#pragma once

#include <span>

#include "text/jinja/filters.h"

namespace troupe::jinja {

std::span<const NamedFilter> TextFilters();    // text_filters.cc
std::span<const NamedFilter> NumberFilters();  // number_filters.cc
std::span<const NamedFilter> ListFilters();    // list_filters.cc
std::span<const NamedFilter> OrderFilters();   // order_filters.cc: sort, unique, groupby, min
std::span<const NamedFilter> ChoiceFilters();  // choice_filters.cc: map, select and their kin

}  // namespace troupe::jinja
