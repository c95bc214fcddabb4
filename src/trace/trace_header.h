// What a routing trace is of: the model and its shape, what of each token is kept, where it comes
// from. A value, and its JSON as the file's header has it (docs/formats/trace.md).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "expert/cache/eviction_policy.h"

namespace troupe {

// What a score is; policies that compare scores of different experts need to know.
enum class ScoreKind {
  kNone,
  kSoftmax,       // probability over all experts
  kSigmoid,       // of each expert alone
  kChosenSoftmax  // probability over the chosen ones
};
enum class ScoreType { kF32, kF16 };

// The cache that a recorded run had, so that a replay can be told to have the same.
struct RecordedCache {
  std::uint32_t slots = 0;
  std::uint32_t spare = 0;  // of them in no layer's quota
  bool per_layer = true;
  std::uint32_t shallow = 0;
  std::string policy;
  std::string predictor;

  bool operator==(const RecordedCache&) const = default;
};

struct TraceHeader {
  std::string model;                      // its name
  std::string fingerprint;                // 32 hex digits; empty: not known
  std::uint32_t layers = 0;               // of the model, those without experts counted
  std::vector<std::uint32_t> moe_layers;  // rising
  std::uint32_t experts = 0;              // a layer
  std::uint32_t top_k = 0;
  ScoreKind scores = ScoreKind::kNone;
  ScoreType score_type = ScoreType::kF32;
  bool all_scores = false;  // those of experts that were not chosen, too
  // What an expert and the rest of a layer weigh, for times; zero or empty: not known.
  std::vector<std::uint64_t> expert_bytes;  // by MoE layer
  std::string expert_shape;                 // a key of the cost model
  std::uint64_t dense_bytes = 0;            // that each token uses whatever it chooses
  std::string origin, licence;
  std::optional<RecordedCache> cache;
  // That the recorded run could hold at once; of more than one, segments have places.
  std::uint32_t sequences = 1;
  // The last chunk is followed by an end mark; older traces have none.
  bool ends = true;

  ExpertGrid grid() const { return {.layers = layers, .experts = experts}; }
  std::size_t ChoicesOf(std::size_t tokens) const { return moe_layers.size() * tokens * top_k; }
  bool operator==(const TraceHeader&) const = default;
};

// Far above any model's; they bound what a hostile file can make us allocate.
inline constexpr std::uint32_t kMaxTraceLayers = 4096;
inline constexpr std::uint32_t kMaxTraceExperts = 65536;
inline constexpr std::uint32_t kMaxTraceTopK = 1024;
inline constexpr std::uint32_t kMaxTraceSequences = 1024;

Status Validate(const TraceHeader& header);
// Whether routing of one says anything about routing of the other: what differs, or ok. The
// shape has to be the same, and the model as far as both say which it is.
Status SameModel(const TraceHeader& a, const TraceHeader& b);

std::string_view Name(ScoreKind kind);

std::string ToJson(const TraceHeader& header);
// `name` is the file's, for errors.
Result<TraceHeader> TraceHeaderFromJson(const std::string& name, std::string_view text);

}  // namespace troupe
