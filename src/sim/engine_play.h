// One engine that batches, on a virtual clock: requests go through the engine's own policy of
// passes (expert/flow/batch_policy.h), a linear model says how long each pass takes, and the
// engine's own meter (row_speed.h) learns from that what the policy is told. Requests come in by
// order of arrival, as in runtime/batch_loop.h. When passes begin is the caller's to say. Leaves
// out memory, the prefix cache and what an answer says. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

#include "expert/flow/batch_policy.h"

namespace troupe {

// A pass costs a time of its own, one for each of its rows, and one for each expert that some row
// needs. Rows choose experts evenly, so there are layers * experts * (1 - (1 - top_k /
// experts)^rows).
struct PassCosts {
  double pass_seconds = 0, row_seconds = 0, expert_seconds = 0;
  std::uint32_t layers = 1, experts = 1, top_k = 1;  // of a layer

  double Seconds(std::uint32_t rows) const;
};

struct EngineSetup {
  PassCosts costs;
  std::uint32_t sequences = 1;  // that run at the same time; the others wait
  BatchLimits limits;
};

class EnginePlay {
 public:
  // What a pass has done for one request.
  struct Progress {
    RequestId request = 0;
    std::uint32_t prompt_left = 0;
    bool has_token = false;
    bool ended = false;
  };
  struct Pass {
    double seconds = 0;
    std::uint32_t decodes = 0, prompts = 0;  // rows
  };

  explicit EnginePlay(const EngineSetup& setup) : setup_(setup) {}

  // At least one token in and out.
  void Add(RequestId request, std::uint32_t prompt, std::uint32_t tokens,
           std::optional<Nanos> deadline = {});
  // Drops those that `is` says; not while a pass is under way. Gives how many.
  template <typename Is>
  std::size_t DropIf(const Is& is) {
    const auto unwanted = [&is](const auto& one) { return is(one.request); };
    return std::erase_if(waiting_, unwanted) + std::erase_if(active_, unwanted);
  }

  // Nothing if there is no work. Until EndPass it is under way, and nothing else may begin.
  std::optional<Pass> BeginPass();
  // By rows, decodes first.
  std::vector<Progress> EndPass();

  bool has_work() const { return !waiting_.empty() || !active_.empty(); }
  // It has a sequence.
  bool HasBegun(RequestId request) const;
  std::size_t waiting() const { return waiting_.size(); }
  std::size_t reading() const;
  std::size_t decoding() const { return active_.size() - reading(); }
  std::size_t to_read() const;  // tokens of the prompts of all
  const RowSpeed& speed() const { return meter_.speed(); }
  // The most passes in a row in which a request that had been let in got no row.
  std::uint32_t most_passed_over() const { return most_passed_over_; }

 private:
  struct Asked {
    RequestId request = 0;
    std::uint32_t prompt_left = 0, tokens_left = 0;
    std::optional<Nanos> deadline;
    std::uint32_t passed_over = 0;
  };

  const EngineSetup setup_;
  std::deque<Asked> waiting_;
  std::vector<Asked> active_;  // in order of arrival
  BatchChoice choice_;         // of the pass under way
  Pass pass_;
  RowSpeedMeter meter_;
  std::uint32_t most_passed_over_ = 0;
};

}  // namespace troupe
