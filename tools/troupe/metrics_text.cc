#include "troupe/metrics_text.h"

#include <algorithm>
#include <cstdlib>
#include <string>

namespace troupe {

std::optional<double> MetricIn(std::string_view page, std::string_view name,
                               std::string_view label) {
  std::optional<double> sum;
  while (!page.empty()) {
    const std::size_t end = std::min(page.find('\n'), page.size());
    std::string_view line = page.substr(0, end);
    page.remove_prefix(std::min(end + 1, page.size()));
    if (!line.starts_with(name)) continue;
    line.remove_prefix(name.size());
    std::string_view labels;
    if (line.starts_with('{')) {
      const std::size_t close = line.rfind('}');
      if (close == line.npos) continue;
      labels = line.substr(0, close);
      line.remove_prefix(close + 1);
    }
    if (!line.starts_with(' ') || labels.find(label) == labels.npos) continue;
    const std::string value(line.substr(1));
    char* rest = nullptr;
    const double number = std::strtod(value.c_str(), &rest);
    if (rest != value.c_str()) sum = sum.value_or(0) + number;
  }
  return sum;
}

}  // namespace troupe
