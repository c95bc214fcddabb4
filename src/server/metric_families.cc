#include "server/metric_families.h"

#include <prometheus/text_serializer.h>

#include <cstdint>
#include <limits>
#include <sstream>

namespace troupe {

using prometheus::ClientMetric;
using prometheus::MetricType;

void MetricFamilies::Histogram(std::string name, std::string help,
                               const prometheus::Histogram& histogram) {
  families_.push_back({.name = std::move(name),
                       .help = std::move(help),
                       .type = MetricType::Histogram,
                       .metric = {histogram.Collect()}});
}

void MetricFamilies::Histogram(std::string name, std::string help, const PassRowCounts& counts) {
  ClientMetric metric;
  std::uint64_t passes = 0;
  for (std::size_t i = 0; i < counts.passes.size(); ++i) {
    passes += counts.passes[i];
    const bool last = i == PassRowCounts::kBounds;
    metric.histogram.bucket.push_back(
        {.cumulative_count = passes,
         .upper_bound = last ? std::numeric_limits<double>::infinity()
                             : static_cast<double>(std::uint64_t{1} << i)});
  }
  metric.histogram.sample_count = passes;
  metric.histogram.sample_sum = static_cast<double>(counts.rows);
  families_.push_back({.name = std::move(name),
                       .help = std::move(help),
                       .type = MetricType::Histogram,
                       .metric = {std::move(metric)}});
}

std::string MetricFamilies::Text() const {
  std::ostringstream text;
  prometheus::TextSerializer().Serialize(text, families_);
  return std::move(text).str();
}

void MetricFamilies::Add(std::string name, std::string help, MetricType type, double value,
                         Labels labels) {
  ClientMetric metric;
  metric.label = std::move(labels);
  if (type == MetricType::Counter) {
    metric.counter.value = value;
  } else {
    metric.gauge.value = value;
  }
  if (families_.empty() || families_.back().name != name) {
    families_.push_back(
        {.name = std::move(name), .help = std::move(help), .type = type, .metric = {}});
  }
  families_.back().metric.push_back(std::move(metric));
}

}  // namespace troupe
