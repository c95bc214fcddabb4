// One number in, a division of it out: what a process may hold of dense weights, KV cache, working
// memory, staging and experts, so that all of it together stays within a budget. Pure: sizes come
// in as facts, and --explain and `troupe plan` print what comes out with its reasons.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/status.h"

namespace troupe {

// What a process takes that serves a model to others, beside running it.
struct ServingMemory {
  Bytes connections;    // of clients: what they send, and what they have not read of their answers
  Bytes rules;          // for answers: schemas, grammars, tools
  Bytes peers;          // of a cluster: what is computed and fetched for them and by them
  Bytes requests = {};  // what they keep until they are answered
  Bytes words = {};     // of prompts, while their tokens are found
  Bytes cuts = {};      // of prompts that an end and its cloud cut: keys, values and rows

  Bytes total() const { return connections + rules + peers + requests + words + cuts; }
  bool operator==(const ServingMemory&) const = default;
};

// What a model needs; sizes that depend on choices are functions of them.
struct MemoryNeeds {
  Bytes program;  // the process without what follows: code, vocabulary, stacks, logits
  // A draft model or a head that guesses: weights, and the memory of its sequences and passes.
  Bytes draft;
  Bytes dense;       // weights that every token uses
  Bytes experts;     // all routed experts, as they lie where none is ever evicted
  Bytes slot;        // of the cache: the largest expert, rounded up to what a direct read fills
  Bytes staging;     // buffers that loading takes beside the slots
  Bytes prediction;  // a predictor's tables
  Bytes state;       // of one sequence, besides keys and values, however long it is
  std::uint32_t expert_layers = 0;
  std::uint32_t experts_per_layer = 0;
  std::uint32_t experts_per_token = 0;                   // of a layer
  std::function<Bytes(std::uint32_t context)> kv_cache;  // of one sequence of that length
  std::function<Bytes(std::uint32_t context, std::uint32_t chunk)> workspace;
  std::function<ServingMemory(std::uint32_t context)> serving;  // null: it serves nobody

  std::uint32_t AllExperts() const { return expert_layers * experts_per_layer; }
  // Experts that one token uses on its way through the layers.
  std::uint32_t WorkingSet() const { return expert_layers * experts_per_token; }
};

struct MemoryRequest {
  Bytes budget;
  std::uint32_t context = 0;
  bool context_given = false;               // by the user: then it does not shrink
  std::uint32_t least_context = 256;        // that it shrinks to otherwise
  std::uint32_t sequences = 1;              // that are held at once
  std::uint64_t least_positions = 0;        // of the KV cache that they share
  std::uint32_t chunk = 512;                // rows that go through the layers together, at most
  std::uint32_t longest_prompt = ~0u;       // so that it is no loss if no more do
  std::optional<std::uint32_t> most_slots;  // a smaller cache than would fit, to see what it costs
};

struct MemoryPlan {
  Bytes budget;
  Bytes program;
  ServingMemory serving;
  Bytes draft;
  Bytes dense, kv_cache, workspace;
  Bytes state;                // of all sequences, besides the KV cache
  Bytes staging, prediction;  // zero if all experts are resident
  Bytes experts;              // all of them, or the cache's slots
  std::uint32_t context = 0;
  std::uint32_t sequences = 1;
  // That all sequences share: a context for each of them, or fewer where the budget is short.
  std::uint64_t kv_positions = 0;
  std::uint32_t chunk = 0;  // at least a row for each sequence
  bool all_resident = false;
  std::uint32_t slots = 0;                   // of the cache; 0 if all are resident
  std::vector<std::string> notes, warnings;  // one line each

  Bytes total() const {
    return program + serving.total() + draft + dense + kv_cache + state + workspace + staging +
           prediction + experts;
  }
  bool operator==(const MemoryPlan&) const = default;
};

// A cache of fewer slots cannot load one expert while another is used.
inline constexpr std::uint32_t kLeastSlots = 2;

// More memory never gives fewer contexts, nor, for as many contexts, fewer experts or a shorter
// context or chunk.
// Fails with the sum of what is needed if even the least cache, the smallest chunk and one context
// for all sequences (the shortest one, if the user gave none), or the least positions, do not fit.
Result<MemoryPlan> PlanMemory(const MemoryNeeds& needs, const MemoryRequest& request);

std::vector<std::string> Describe(const MemoryPlan& plan, const MemoryNeeds& needs);

}  // namespace troupe
