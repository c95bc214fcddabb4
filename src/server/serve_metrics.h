// What /metrics tells, in Prometheus' text format: requests and their times, counted here, beside
// what the model (model_metrics.h) and the transport have counted themselves. Thread-safe.
#pragma once

#include <troupe/model.h>

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "server/access_log.h"
#include "server/extra_metric.h"
#include "server/http/http_server.h"
#include "server/text_job.h"

namespace troupe {

// How a change of the model ended: the next one is served, the old one was never given up, or it
// was opened again.
enum class ReloadEnd { kDone, kRefused, kUndone };

// What a server does beside its model; of what is absent nothing is told.
struct BesideModel {
  std::size_t parked = 0;         // requests that wait for the next model
  std::uint64_t passed_over = 0;  // requests that had what the server does not know
  Bytes kept = {};                // by requests (request_memory.h)
  ErrandCounters ends = {};       // of answers
  std::optional<HttpCounters> transport = {};
  std::optional<AccessLog::Counters> log = {};
  std::vector<ExtraMetric> more = {};
};

class ServeMetrics {
 public:
  ServeMetrics();
  ~ServeMetrics();

  void OnGap(double seconds);  // between two pieces of an answer
  void OnEnd(std::string_view endpoint, const JobEnd& end);
  void CountRequest(std::string_view endpoint, int status);  // that came to its end

  void CountReload(ReloadEnd end);
  void CountReturned(Bytes bytes);  // of the allocator's to the system

  std::string Page(const Metrics& model, const Plan& plan, const BesideModel& beside) const;

 private:
  class Impl;
  const std::unique_ptr<Impl> impl_;
};

}  // namespace troupe
