// Writes a model of a given shape with random weights, for tests and speed runs: what a token costs
// depends on sizes and types, not on what the weights have learnt.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/status.h"
#include "forge/synth_layout.h"
#include "forge/synth_shape.h"
#include "gguf/metadata.h"
#include "model/byte_progress.h"

namespace troupe {

struct SynthOptions {
  SynthLayout layout = {};
  std::uint64_t seed = 1;
  std::optional<Metadata> tokenizer =
      std::nullopt;         // of a model whose vocabulary to use; else one is made
  Bytes split_bytes = {};   // start a new file beyond this; 0: one file
  std::size_t threads = 1;  // the bytes are the same for any number
  ByteProgress progress = nullptr;
};

struct SynthReport {
  std::vector<std::string> files = {};
  Bytes bytes = {};
  bool drawn_from_pool = false;
};

// Models of at most this many weights are drawn weight by weight; larger ones from a pool of blocks
// (synth_weights.h).
inline constexpr std::uint64_t kMostWeightsDrawn = 64 << 20;

// On failure no file is left.
Result<SynthReport> Synthesize(const ModelShape& shape, const SynthOptions& options,
                               const std::string& path);

}  // namespace troupe
