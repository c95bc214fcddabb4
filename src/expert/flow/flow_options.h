// What MissFlow (miss_flow.h) is made with beside its cache, its policy and its port.
#pragma once

#include <functional>
#include <memory>
#include <optional>

#include "expert/cache/expert_cache.h"
#include "expert/flow/miss_answers.h"
#include "expert/flow/substituted_routing.h"
#include "expert/forecast/score_tables.h"
#include "expert/prefetch/prefetcher.h"
#include "expert/substitution/low_copies.h"

namespace troupe {

struct FlowOptions {
  RoutingFacts routing;
  PrefetchOptions prefetch = {};
  LowCopyOptions low_copies = {};  // takes a low copy of the experts to allow any
  // Where a layer asks for more than has slots, who gives way depends on which load ends first, and
  // a replay could not know. In order, experts are given as they were asked for until all have
  // their slots: the same bytes, the same hits on every run, a little waiting.
  bool in_order = false;
  // Decode passes are read ahead by what routers say, as far as it is worth it (worth_prefetch.h);
  // the predictor is for other passes.
  bool by_worth = false;
  std::optional<ScoreTables> score_tables = {};  // what that begins with
  // Passes may draft: what they name is read ahead of everything else (named_ahead.h).
  bool drafts = false;
  // What reads ahead, in place of a Prefetcher of the predictor's guesses. The cache is the flow's.
  std::function<std::unique_ptr<Prefetching>(ExpertCache&)> read_ahead = {};
  MissOrder miss_order = MissOrder::kRows;  // of loads, and of what other places compute
};

}  // namespace troupe
