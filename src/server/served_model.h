// A model that is served, and what its requests get where they say nothing.
#pragma once

#include <troupe/model.h>

#include <chrono>
#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/status.h"
#include "server/extra_metric.h"

namespace troupe {

struct ServiceOptions {
  std::string name;            // of the model, as clients know it
  Sampling sampling;           // of requests that say nothing
  bool seed_is_given = false;  // in it; otherwise each request that names none has its own
  std::size_t tokens = 0;      // of an answer whose request says nothing; 0: what the context holds
  // Of every request, whatever it says; absent: its own.
  std::optional<std::size_t> most_tokens = {};
  std::optional<std::chrono::nanoseconds> most_time = {};
  // How texts become vectors; absent: as the model's file says.
  std::optional<Pooling> pooling = {};
};

struct ServedModel {
  std::unique_ptr<Model> model;  // null: it was closed, and the next one is not open yet
  ServiceOptions options;
  // What /metrics tells besides; null: nothing.
  std::function<std::vector<ExtraMetric>()> more = {};
  // What /cluster and /cluster/plan tell; null: the server is of no cluster.
  std::function<Json()> cluster = {}, cluster_plan = {};
  // What a POST to /cluster/NAME does, by its name.
  std::map<std::string, std::function<Status()>> cluster_orders = {};
};

}  // namespace troupe
