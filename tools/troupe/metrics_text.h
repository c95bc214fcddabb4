// Figures out of the text of a server's /metrics (Prometheus' format). Pure.
#pragma once

#include <optional>
#include <string_view>

namespace troupe {

// Of the series of this name, with all labels that `label` names ('kind="generated"'; empty: with
// any labels): their sum. None if there is none.
std::optional<double> MetricIn(std::string_view page, std::string_view name,
                               std::string_view label = {});

}  // namespace troupe
