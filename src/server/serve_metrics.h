// What /metrics tells, in Prometheus' text format: requests and their times, counted here, beside
// what the model and the transport have counted themselves. prometheus-cpp is behind
// serve_metrics.cc alone. Thread-safe.
#pragma once

#include <troupe/model.h>

#include <memory>
#include <string>
#include <string_view>

#include "server/http/http_server.h"
#include "server/text_job.h"

namespace troupe {

class ServeMetrics {
 public:
  ServeMetrics();
  ~ServeMetrics();

  void OnGap(double seconds);  // between two pieces of an answer
  void OnEnd(std::string_view endpoint, const JobEnd& end);
  void CountRequest(std::string_view endpoint, int status);  // that came to its end

  // `transport` null: nothing is told of it.
  std::string Page(const Metrics& model, const Plan& plan, const HttpCounters* transport) const;

 private:
  class Impl;
  const std::unique_ptr<Impl> impl_;
};

}  // namespace troupe
