// Which expert a full cache gives up. A policy sees every expert that is asked for, by how many
// tokens of which sequences, and what comes and goes; it never sees bytes, slots or a clock. One
// file a policy: lru.h, lfu.h, arc.h, echo.h, score_window.h, belady.h.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "base/status.h"
#include "expert/cache/echo_settings.h"
#include "expert/expert_grid.h"
#include "expert/expert_id.h"
#include "expert/layer_choices.h"

namespace troupe {

class EvictionPolicy {
 public:
  virtual ~EvictionPolicy() = default;
  virtual std::string_view name() const = 0;

  // The expert is needed now, whether it is in the cache or not: once each time a layer runs.
  // `askers`: whose rows need it, each sequence once.
  virtual void OnAsked(ExpertId id, std::span<const Asker> askers) = 0;
  // What the layer's router said, a row of all experts' scores a token: before the layer asks, and
  // only for a policy that wants it.
  virtual bool wants_scores() const { return false; }
  virtual void OnScored(std::uint32_t /*layer*/, std::span<const float> /*scores*/) {}
  // It has been given a slot; it has lost it.
  virtual void OnAdmitted(ExpertId) {}
  virtual void OnEvicted(ExpertId) {}
  // It has lost it before it came: if it was asked for, it will be given another.
  virtual void OnAbandoned(ExpertId id) { OnEvicted(id); }
  // Index of the one to give up among candidates, of which there is at least one. The answer
  // depends on the set and on what was seen before, not on the candidates' order.
  virtual std::size_t Choose(std::span<const ExpertId> candidates) = 0;
  // Choices that fell on another because the layer under way had asked for the one that was due.
  virtual std::uint64_t shielded() const { return 0; }

  // For a policy that keeps its experts in the order in which it would give them up, and need not
  // compare all candidates: of those that `evictable` marks (by ExpertGrid::Index), in one layer or
  // in all, the one that Choose would take; none if none is marked. A policy whose keeps_order() is
  // false is never asked.
  virtual bool keeps_order() const { return false; }
  virtual std::optional<ExpertId> FirstToGo(std::optional<std::uint32_t> layer,
                                            std::span<const std::uint8_t> evictable) {
    (void)layer, (void)evictable;
    return std::nullopt;
  }
};

// What a cache is made of.
struct CacheShape {
  ExpertGrid grid;
  std::uint32_t slots = 0;
  std::vector<std::uint32_t> quotas;  // a number a layer, or empty: all layers are one pool
  // That are under way at once: a policy that keeps a history keeps one of each.
  std::uint32_t sequences = 1;
  // Of one pool: slots that a layer keeps, whatever the others load.
  std::uint32_t floor = 0;
};

// "lru", "lfu", "arc", "echo", "score": those that need no knowledge of the future.
Result<std::unique_ptr<EvictionPolicy>> MakeEvictionPolicy(std::string_view name,
                                                           const CacheShape& shape,
                                                           const EchoSettings& echo = {});
std::vector<std::string> EvictionPolicyNames();
// Those of them that need no scores.
std::vector<std::string> RoutePolicyNames();
// Memory that its tables take with this number of sequences under way at once.
Bytes EvictionPolicyBytes(std::string_view name, ExpertGrid grid, std::uint32_t sequences = 1);

}  // namespace troupe
