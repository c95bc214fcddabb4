#include "server/serve_metrics.h"

#include <prometheus/histogram.h>

#include <array>
#include <atomic>
#include <map>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "machine/process_memory.h"
#include "server/api_error.h"
#include "server/metric_families.h"
#include "server/model_metrics.h"

namespace troupe {
namespace {

const std::vector<double> kRequestSeconds = {0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1,  2.5,
                                             5,    10,    25,   50,  100,  250, 500};
const std::vector<double> kTokenSeconds = {0.001, 0.0025, 0.005, 0.01, 0.025, 0.05,
                                           0.1,   0.25,   0.5,   1,    2.5,   5};

void AddReloads(const std::array<std::atomic<std::uint64_t>, 3>& reloads,
                MetricFamilies& families) {
  constexpr auto kReloads = "Changes of the model on SIGHUP, by how they ended";
  for (const auto& [end, name] : {std::pair{ReloadEnd::kDone, "done"},
                                  {ReloadEnd::kRefused, "refused"},
                                  {ReloadEnd::kUndone, "undone"}}) {
    families.Counter("troupe_reloads_total", kReloads,
                     reloads[static_cast<std::size_t>(end)].load(), {{"result", name}});
  }
}

void AddTransport(const HttpCounters& http, MetricFamilies& families) {
  families.Gauge("troupe_http_connections", "Connections now", http.connections);
  families.Counter("troupe_http_accepted_total", "Connections accepted", http.accepted);
  families.Counter("troupe_http_overtook_total",
                   "Small bodies that were handled while a larger one was", http.overtook);
  constexpr auto kRefused = "Connections ended by the server, by why";
  families.Counter("troupe_http_ended_total", kRefused, http.malformed, {{"why", "malformed"}});
  families.Counter("troupe_http_ended_total", kRefused, http.timed_out, {{"why", "timed_out"}});
  families.Counter("troupe_http_ended_total", kRefused, http.too_slow, {{"why", "too_slow"}});
  families.Counter("troupe_http_ended_total", kRefused, http.refused, {{"why", "refused"}});
  families.Counter("troupe_http_ended_total", kRefused, http.no_room, {{"why", "no_room"}});
  families.Counter("troupe_http_ended_total", kRefused, http.made_way, {{"why", "made_way"}});
  families.Counter("troupe_http_ended_total", kRefused, http.cut_off, {{"why", "cut_off"}});
  families.Counter("troupe_http_ended_total", kRefused, http.slow_bodies, {{"why", "slow_body"}});
  families.Counter("troupe_http_turned_away_total",
                   "Answers that were not sent, as others had not read theirs", http.turned_away);
  if (http.certificate_expires != 0) {
    families.Gauge("troupe_http_certificate_expires_timestamp_seconds",
                   "When the certificate of TLS that clients are shown expires",
                   static_cast<double>(http.certificate_expires));
  }
}

}  // namespace

class ServeMetrics::Impl {
 public:
  Mutex mu;
  // By endpoint and status of HTTP.
  std::map<std::pair<std::string, int>, std::uint64_t> requests TROUPE_GUARDED_BY(mu);
  prometheus::Histogram first_token{kRequestSeconds}, gaps{kTokenSeconds}, queue{kRequestSeconds},
      whole{kRequestSeconds};
  std::array<std::atomic<std::uint64_t>, 3> reloads = {};  // by ReloadEnd
  std::atomic<std::uint64_t> returned = 0;                 // bytes
};

ServeMetrics::ServeMetrics() : impl_(std::make_unique<Impl>()) {}
ServeMetrics::~ServeMetrics() = default;

void ServeMetrics::OnGap(double seconds) { impl_->gaps.Observe(seconds); }

void ServeMetrics::CountRequest(std::string_view endpoint, int status) {
  const MutexLock lock(impl_->mu);
  ++impl_->requests[{std::string(endpoint), status}];
}

void ServeMetrics::OnEnd(std::string_view endpoint, const JobEnd& end) {
  constexpr int kClientLeft = 499;
  CountRequest(endpoint, end.cancelled ? kClientLeft : HttpStatusOf(end.status));
  if (!end.status.ok() || end.cancelled) return;
  impl_->whole.Observe(end.seconds);
  if (end.first_piece_seconds > 0) impl_->first_token.Observe(end.first_piece_seconds);
  for (const ChoiceAnswer& choice : end.choices) {
    impl_->queue.Observe(choice.answer.usage.queue_seconds);
  }
}

void ServeMetrics::CountReload(ReloadEnd end) { ++impl_->reloads[static_cast<std::size_t>(end)]; }

void ServeMetrics::CountReturned(Bytes bytes) { impl_->returned += bytes.count(); }

std::string ServeMetrics::Page(const Metrics& model, const Plan& plan,
                               const BesideModel& beside) const {
  MetricFamilies families;
  {
    const MutexLock lock(impl_->mu);
    for (const auto& [key, count] : impl_->requests) {
      families.Counter("troupe_requests_total",
                       "Requests by endpoint and status; 499: the client left", count,
                       {{"endpoint", key.first}, {"status", std::to_string(key.second)}});
    }
  }
  families.Histogram("troupe_time_to_first_token_seconds",
                     "From a request to the first text of its answer", impl_->first_token);
  families.Histogram("troupe_time_between_tokens_seconds", "Between two pieces of an answer",
                     impl_->gaps);
  families.Histogram("troupe_queue_seconds", "From a request to its first pass", impl_->queue);
  families.Histogram("troupe_request_seconds", "From a request to the end of its answer",
                     impl_->whole);
  AddReloads(impl_->reloads, families);
  families.Counter("troupe_heap_returned_bytes_total",
                   "Memory that answers no longer use and the system has got back",
                   impl_->returned.load());
  families.Counter("troupe_passed_over_total",
                   "Requests with tools or items that this server does not know and leaves out",
                   beside.passed_over);
  AddModelMetrics(model, plan, beside.parked, families);
  families.Gauge("troupe_requests_kept_bytes",
                 "What requests that wait or are answered have of their part of the memory plan",
                 beside.kept);
  families.Counter("troupe_answer_ends_total",
                   "Ends of answers that were put together beside the engine's thread",
                   beside.ends.done);
  families.Counter("troupe_answer_ends_seconds_total", "Time that this took", beside.ends.seconds);
  for (const ExtraMetric& one : beside.more) {
    MetricFamilies::Labels labels;
    for (const auto& [name, value] : one.labels) labels.push_back({name, value});
    if (one.is_counter) {
      families.Counter(one.name, one.help, one.value, std::move(labels));
    } else {
      families.Gauge(one.name, one.help, one.value, std::move(labels));
    }
  }
  families.Gauge("process_resident_memory_bytes", "Memory that the process has now",
                 ResidentMemory());
  if (beside.transport) AddTransport(*beside.transport, families);
  if (beside.log) {
    constexpr auto kLines =
        "Lines of the access log; lost: the disk is full, or slower than they come";
    families.Counter("troupe_log_lines_total", kLines, beside.log->written, {{"end", "written"}});
    families.Counter("troupe_log_lines_total", kLines, beside.log->lost, {{"end", "lost"}});
  }
  return families.Text();
}

}  // namespace troupe
