// Gives up the expert that is needed last if what follows is what followed before: each sequence
// that shares the cache values it by its own past (echo_of_sequence.h), and their values add up.
// docs/design/eviction.md has the reasons and the figures.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "expert/cache/echo_of_sequence.h"
#include "expert/cache/eviction_policy.h"

namespace troupe {

class Echo final : public EvictionPolicy {
 public:
  // A sequence has a say until it has been absent from this number of passes. The value of an
  // expert is a sum over sequences, so one that has ended must fall silent; one that waits while
  // others' prompts are computed must not.
  static constexpr std::uint64_t kPassesAbsent = 8;

  // Further sequences get a history when they first ask.
  explicit Echo(ExpertGrid grid, std::uint32_t sequences = 1,
                std::uint32_t steps = RouteHistory::kSteps, const EchoSettings& settings = {});

  std::string_view name() const override { return "echo"; }
  // A layer's asks follow each other; a pass ends when layers begin again.
  void OnAsked(ExpertId id, std::span<const Asker> askers) override;
  std::size_t Choose(std::span<const ExpertId> candidates) override;

 private:
  struct Sequence {
    EchoOfSequence past;
    std::uint64_t last_pass = 0;  // 0: it has not asked yet
  };

  bool BeginsPass(ExpertId id) const;
  bool HasASay(const Sequence& sequence) const {
    return sequence.last_pass > 0 && pass_ - sequence.last_pass < kPassesAbsent;
  }

  ExpertGrid grid_;
  std::uint32_t steps_;
  EchoSettings settings_;
  std::vector<Sequence> sequences_;
  std::uint64_t pass_ = 0;
  std::optional<std::uint32_t> layer_;  // under way
  std::vector<bool> asked_;             // [expert] of that layer
};

}  // namespace troupe
