// Prompts of one server that go through the layers together, as a node's requests do: whoever is
// ready when a pass begins is in it, each with its input or with its last token. Says what they
// choose together. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "expert/expert_id.h"
#include "expert/pass_facts.h"
#include "sim/routing_trace.h"

namespace troupe {

// A prompt's part of a pass.
struct PassPart {
  std::uint32_t prompt = 0;
  const RoutingTrace* trace = nullptr;
  std::uint32_t first = 0;   // token of the trace, which goes on from its beginning at its end
  std::uint32_t tokens = 0;  // from there on
  Phase phase = Phase::kDecode;
  std::uint32_t position = 0;  // in the prompt's own text
};

// What rows of a pass choose among some experts of a layer.
struct ChosenRows {
  std::uint32_t tokens = 0;       // that choose any of them
  std::uint32_t assignments = 0;  // (token, expert) pairs
};

class SharedPass {
 public:
  // Layers of at most `experts`.
  explicit SharedPass(std::uint32_t experts) : experts_(experts) {}

  // Takes part in the next pass.
  void Join(const PassPart& part) { next_.push_back(part); }
  // False: a pass is under way, or nobody has joined.
  bool Begin();
  std::span<const PassPart> parts() const { return parts_; }
  // Of the pass and of the next one.
  std::vector<std::uint32_t> Prompts() const;
  // Meanwhile others may have joined the next one.
  void End() { parts_.clear(); }
  // The prompt has its answer.
  void Leave(std::uint32_t prompt);

  PassFacts Facts() const;
  std::uint32_t tokens() const;
  // In the order of the experts, each once.
  std::vector<ExpertDemand> DemandsOf(std::uint32_t layer) const;
  // By part and expert: [part][expert].
  std::vector<std::uint32_t> CountsOf(std::uint32_t layer) const;
  ChosenRows RowsOf(std::uint32_t layer, std::span<const std::uint32_t> experts) const;

 private:
  // A small number for each prompt until it leaves, for who keeps a history of each.
  SequenceId SequenceOf(std::uint32_t prompt);

  std::uint32_t experts_;
  std::vector<PassPart> parts_, next_;
  std::vector<SequenceId> sequences_;                  // by part
  std::vector<std::optional<std::uint32_t>> prompts_;  // by sequence
};

}  // namespace troupe
