// The passes of a trace, one after the other, as what a cache is asked: for each layer the experts
// that any of the pass's tokens chose. Holds one pass and one chunk of the trace at a time.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/status.h"
#include "expert/expert_id.h"
#include "expert/pass_facts.h"
#include "expert/substitution/routed_layer.h"
#include "trace/trace_reader.h"

namespace troupe {

// What a layer's router said of a pass's tokens: of its last ones, where it has very many of one
// sequence.
struct PassRoutes {
  std::vector<ExpertChoice>
      chosen;                 // [token][slot]; without scores in the trace all weigh the same
  std::vector<float> scores;  // [token][expert], or empty: the trace does not have them all
};

struct ReplayPass {
  std::uint32_t tokens = 0;
  TracePhase phase = TracePhase::kPrefill;  // of its first token
  bool mixed = false;                       // it has tokens of the other phase, too
  bool recorded = true;  // it was a pass in the run itself, not a group of n tokens
  // Whose rows it has, a group a segment of the trace; a group of tokens that was no pass in the
  // run counts as decode. Sequences have small numbers, used again after they ended, as an engine
  // numbers them. Without groups all rows are of one sequence.
  PassFacts facts = {};
  std::vector<std::vector<ExpertDemand>> demands;  // by MoE layer; experts rise
  std::vector<PassRoutes> routes;                  // by MoE layer, if they were asked for
  // By MoE layer, if there are several groups: rows by [group][expert].
  std::vector<std::vector<std::uint32_t>> by_group = {};
};

// Tokens of a pass of one sequence whose routes are kept.
inline constexpr std::uint32_t kMostRoutedTokens = 256;
// Those of a pass of several are all kept, as a row's sequence goes by its place: up to here.
inline constexpr std::uint32_t kMostSharedTokens = 1 << 16;

class TracePasses {
 public:
  // `group`: 0 takes passes as they were recorded; n makes a pass of n tokens of a sequence,
  // whatever they were: 1 plays a prompt as if it had been generated.
  TracePasses(TraceReader& reader, std::uint32_t group, bool with_routes = false);

  // Leaves out the next `tokens`; before the first pass.
  Status Skip(std::uint64_t tokens);

  // False at the end of the trace.
  Result<bool> Next(ReplayPass& pass);

 private:
  Result<bool> FillBlock();        // false if there is no more
  void Take(std::uint32_t count);  // goes on by `count` tokens of the segment
  bool Ends(const TraceSegment& segment) const;
  // Whether the pass is this segment's next token alone, which is known without a look ahead.
  bool IsLone(const TraceSegment& segment) const;
  void TakeLone(ReplayPass& pass) const;
  void Add(std::uint32_t first, std::uint32_t count);
  // Whether the segment's tokens may turn out not to be the only ones of the pass.
  bool MayBeJoined() const;
  void AddRoutes(std::uint32_t first, std::uint32_t count, ReplayPass& pass) const;
  // The group that the segment's next tokens belong to.
  void OpenGroup(const TraceSegment& segment);
  SequenceId PlaceOf(const TraceSegment& segment);
  static void KeepLast(std::uint32_t tokens, const TraceHeader& header, PassRoutes& routes);
  void Label(ReplayPass& pass) const;
  void Finish(ReplayPass& pass);

  TraceReader& reader_;
  const TraceHeader& header_;
  std::uint32_t group_;
  bool with_routes_;
  std::optional<TraceBlock> block_;
  std::size_t segment_ = 0;  // of the block; the next to be taken, in part perhaps
  std::uint32_t taken_ = 0;  // tokens of it
  std::uint32_t token_ = 0;  // of the block
  bool broken_ = false;      // what comes next does not go on with what came before

  std::uint32_t tokens_ = 0;  // of the pass in the making
  std::uint32_t sequence_ = 0;
  TracePhase phase_ = TracePhase::kPrefill;
  bool mixed_ = false;
  PassFacts facts_;
  // By group: [MoE layer][expert]; all zero between passes.
  std::vector<std::vector<std::uint32_t>> counts_;
  // The trace's number of the sequence in each place.
  std::vector<std::optional<std::uint32_t>> numbers_;
};

}  // namespace troupe
