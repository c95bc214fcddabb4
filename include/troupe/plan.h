// How a model would be run: what of it stays in memory, and why. A value: made before any weight is
// read, obeyed afterwards.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "troupe/bytes.h"

namespace troupe {

struct Plan {
  std::uint32_t threads = 0;
  std::uint32_t context = 0;    // tokens of a sequence
  std::uint32_t sequences = 0;  // at the same time
  // Tokens of all sequences together that the KV cache holds: a context for each, or less where the
  // budget is short. A request waits until there is room for its prompt and its longest answer.
  std::uint64_t kv_positions = 0;
  std::uint32_t pass_rows = 0;  // tokens that go through the layers together, at most

  // The budget, and how it is divided.
  Bytes budget;
  Bytes program;      // code, vocabulary and whatever the process held before
  Bytes connections;  // of a server's clients: their requests, and what they have not read
  Bytes rules;        // of answers (ModelOptions::answer_rules)
  Bytes peers;        // of a cluster: what is computed and fetched for them and by them
  Bytes requests;     // what those of a server keep until they are answered
  Bytes words;        // of prompts that a server reads, while their tokens are found
  Bytes cuts;         // of prompts that an end and its cloud cut by layers
  Bytes draft;        // a model that guesses (ModelOptions::draft), or the model's own head
  Bytes dense;        // weights that every token uses
  Bytes kv_cache;     // of all sequences
  Bytes state;        // of all sequences, whose layers have a recurrence
  Bytes workspace;
  Bytes staging;     // buffers of reads
  Bytes prediction;  // tables that say what to prefetch
  Bytes experts;     // all of them, or the cache
  Bytes total;
  Bytes card;  // of a card's memory, which is not in the budget of the process

  std::uint32_t experts_in_memory = 0;  // at the same time
  std::uint32_t experts_in_card = 0;
  std::uint32_t experts_in_all = 0;
  std::string lossiness;           // "exact", or what may answer otherwise: a chain, peers
  std::vector<std::string> notes;  // "context 4096 of the trained 32768: --ctx asks for more"

  bool AllInMemory() const { return experts_in_memory == experts_in_all; }
  bool operator==(const Plan&) const = default;
};

// A line each, as `troupe plan` prints them.
std::vector<std::string> Describe(const Plan& plan);

}  // namespace troupe
