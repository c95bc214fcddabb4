// The forward pass of a whole model: token ids in, the stream of the last layer and logits out. The
// same bytes for any number of threads and any way of cutting a prompt into chunks. Threads: one
// pass at a time; the pool is used by it alone while it runs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/status.h"
#include "base/thread_pool.h"
#include "model/batch.h"
#include "model/config.h"
#include "model/expert_source.h"
#include "model/kv_cache.h"
#include "model/matmul_region.h"
#include "model/route_observer.h"
#include "model/stream_observer.h"
#include "model/weights.h"
#include "model/workspace.h"

namespace troupe {

class Transformer {
 public:
  // All four must outlive it.
  Transformer(const ModelConfig& config, const ModelWeights& weights, ExpertSource& experts,
              ThreadPool& pool)
      : config_(config), weights_(weights), experts_(experts), pool_(pool) {}

  // Runs a group of 1 to workspace.chunk() tokens at the positions from its cache's length() on and
  // stores their keys and values. On an error the cache is as long as before.
  Status Forward(const RowGroup& group, Workspace& workspace);

  // Logits of rows [first, first + count) of the last Forward, `vocabulary` floats a row.
  // Overwrites workspace.normed; may be called for any rows, in parts.
  void Logits(Workspace& workspace, std::size_t first, std::size_t count, float* logits);

  // Null: nobody looks. It must outlive the passes.
  void set_observer(StreamObserver* observer) { observer_ = observer; }

  const ModelConfig& config() const { return config_; }
  // (token, layer, expert) triples that routers chose so far, however they were answered.
  std::uint64_t expert_uses() const { return expert_uses_; }

  // Null: nobody looks. It must outlive its being here.
  void set_route_observer(RouteObserver* observer) { route_observer_ = observer; }
  RouteObserver* route_observer() const { return route_observer_; }

 private:
  Status CheckCall(const RowGroup& group, const Workspace& workspace) const;
  void Show(std::uint32_t layer, StreamPlace place, const Workspace& workspace,
            std::size_t tokens) const;
  void Embed(TokenIds tokens, Workspace& workspace) const;

  const ModelConfig& config_;
  const ModelWeights& weights_;
  ExpertSource& experts_;
  ThreadPool& pool_;
  MatMulRegion region_;
  StreamObserver* observer_ = nullptr;
  std::uint64_t expert_uses_ = 0;
  RouteObserver* route_observer_ = nullptr;
};

}  // namespace troupe
