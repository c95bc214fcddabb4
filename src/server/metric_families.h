// Metrics as Prometheus reads them: each of a name, with a help, values and their labels, and all
// of them as text. What there is to tell is the callers' part. prometheus-cpp is behind this and
// serve_metrics.cc alone.
#pragma once

#include <prometheus/histogram.h>
#include <prometheus/metric_family.h>
#include <troupe/model.h>

#include <string>
#include <utility>
#include <vector>

#include "base/bytes.h"

namespace troupe {

class MetricFamilies {
 public:
  using Labels = std::vector<prometheus::ClientMetric::Label>;

  // Of a number, a count or Bytes. Values of one name follow each other.
  template <typename Value>
  void Counter(std::string name, std::string help, Value value, Labels labels = {}) {
    Add(std::move(name), std::move(help), prometheus::MetricType::Counter, NumberOf(value),
        std::move(labels));
  }
  template <typename Value>
  void Gauge(std::string name, std::string help, Value value, Labels labels = {}) {
    Add(std::move(name), std::move(help), prometheus::MetricType::Gauge, NumberOf(value),
        std::move(labels));
  }
  void Histogram(std::string name, std::string help, const prometheus::Histogram& histogram);
  // `passes` are of at most 1, 2, 4, … rows, and in its last entry of more.
  void Histogram(std::string name, std::string help, const PassRowCounts& counts);

  std::string Text() const;

 private:
  template <typename Number>
  static double NumberOf(Number number) {
    return static_cast<double>(number);
  }
  static double NumberOf(Bytes bytes) { return static_cast<double>(bytes.count()); }

  void Add(std::string name, std::string help, prometheus::MetricType type, double value,
           Labels labels);

  std::vector<prometheus::MetricFamily> families_;
};

}  // namespace troupe
