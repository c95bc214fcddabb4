// Figures for /metrics, put together one after the other.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "server/extra_metric.h"

namespace troupe {

class Figures {
 public:
  using Labels = std::vector<std::pair<std::string, std::string>>;

  template <typename T>
  void Gauge(const char* name, const char* help, T value, Labels labels = {}) {
    all_.push_back({name, help, false, static_cast<double>(value), std::move(labels)});
  }
  template <typename T>
  void Counter(const char* name, const char* help, T value, Labels labels = {}) {
    all_.push_back({name, help, true, static_cast<double>(value), std::move(labels)});
  }
  std::vector<ExtraMetric> Take() && { return std::move(all_); }

 private:
  std::vector<ExtraMetric> all_;
};

}  // namespace troupe
