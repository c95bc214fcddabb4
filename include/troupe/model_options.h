// What an embedder chooses when a model is opened. All of it has defaults: without any, a model
// runs exactly, one request at a time, with the memory and processors that the machine has free.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "troupe/bytes.h"
#include "troupe/lossiness.h"

namespace troupe {

// Files beside the model. Empty: the one beside it, if there is one. "none": not even that.
struct StorageOptions {
  std::string container;      // packed experts, of `troupe pack`
  std::string profile;        // what `troupe calibrate` learned
  std::string quality_curve;  // what `troupe calibrate --measure-quality` measured; never "none"
};

struct ModelOptions {
  // Of the whole process; absent: what the machine or its cgroup has free, less a reserve.
  std::optional<Bytes> memory;
  // Tokens of a sequence, prompt and answer. Absent: what the model was trained with, at most
  // 4,096, and fewer if memory is short.
  std::optional<std::uint32_t> context;
  std::optional<std::uint32_t> threads;  // absent: as many as the process may run
  // Requests that run at the same time. Where memory is short they share fewer contexts than there
  // are requests (Plan::kv_positions), and one whose tokens have no room waits.
  std::uint32_t sequences = 1;
  std::size_t queue = 64;  // requests that may wait beside these
  // That a pass should take while somebody waits for its next token: how much of a long prompt is
  // read in between.
  double pass_seconds = 0.15;
  // Requests begin with what earlier ones have left of the same prompt. Takes no memory that
  // requests want, and changes no byte of an answer.
  bool prefix_cache = true;
  // Requests may have rules for their answers (Request::rule), which takes memory.
  bool answer_rules = false;
  // Tokens that are guessed and checked several in a pass, where that is faster: by what "auto",
  // "off", "lookup" (what the text has said before), "grammar" (what a rule forces), "draft" or
  // "heads" (the model's own) say. Changes no byte of an answer.
  std::string speculate = "auto";
  // GGUF file of a small model with the same vocabulary, which guesses tokens as well; empty: none.
  std::string draft;
  Lossiness lossiness = Exact{};
  StorageOptions storage;
};

}  // namespace troupe
