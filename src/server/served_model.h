// A model that is served, and what its requests get where they say nothing.
#pragma once

#include <troupe/lossiness.h>
#include <troupe/model.h>

#include <chrono>
#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/json.h"
#include "base/status.h"
#include "server/extra_metric.h"
#include "split/wire/model_proof.h"

namespace troupe {

class CutHost;

struct ServiceOptions {
  std::string name;            // of the model, as clients know it
  Sampling sampling;           // of requests that say nothing
  bool seed_is_given = false;  // in it; otherwise each request that names none has its own
  std::size_t tokens = 0;      // of an answer whose request says nothing; 0: what the context holds
  // Of every request, whatever it says; absent: its own.
  std::optional<std::size_t> most_tokens = {};
  std::optional<std::chrono::nanoseconds> most_time = {};
  // That an answer which is not streamed comes without a byte; absent: any time.
  std::optional<std::chrono::nanoseconds> most_silence = std::chrono::seconds(30);
  // That a request waits for the next model.
  std::chrono::nanoseconds most_parked = std::chrono::minutes(10);
  // What is read of prompts serves requests with the same key alone.
  bool cache_per_key = false;
  // How texts become vectors; absent: as the model's file says.
  std::optional<Pooling> pooling = {};
};

struct ServedModel {
  std::unique_ptr<Model> model;  // null: it was closed, and the next one is not open yet
  ServiceOptions options;
  // What answers may lose, and how /props says it.
  struct Quality {
    Lossiness lossiness = Exact{};
    std::string text = "exact";
  };
  // Whatever else the model was opened for; absent: as it was opened.
  std::optional<Quality> quality = {};
  // Starts requests, and ends all that it has started, in place of the model, which may be only one
  // of those that answer; null: the model does.
  std::function<Result<Generation>(Request request, Callbacks callbacks)> start = {};
  std::function<void()> close = {};
  // By which ends know that they may have answers chosen here; absent: they may not.
  std::optional<ModelProof> for_ends = {};
  // What takes prompts that ends cut between two layers; null: nothing does.
  std::shared_ptr<CutHost> cuts = {};
  // What /metrics tells besides; null: nothing.
  std::function<std::vector<ExtraMetric>()> more = {};
  // What the live page tells of where answers are chosen; null: here.
  std::function<Json()> places = {};
  // What /cluster and /cluster/plan tell; null: the server is of no cluster.
  std::function<Json()> cluster = {}, cluster_plan = {};
  // What a POST to /cluster/NAME does, by its name. It says what comes of that, in words.
  std::map<std::string, std::function<Result<std::string>()>> cluster_orders = {};

  Result<Generation> Start(Request request, Callbacks callbacks) {
    if (start) return start(std::move(request), std::move(callbacks));
    return model->Start(std::move(request), std::move(callbacks));
  }
  // As Model::Close, of all who answer.
  void Close();
};

}  // namespace troupe
