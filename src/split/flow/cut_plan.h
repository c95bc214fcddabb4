// Before which layer a prompt is cut between end and cloud, and into how many tokens at a time, so
// that it ends soonest: from what a layer was measured to take on each side by the number of rows,
// and what a row's bytes take of the link. Running the pipeline is cut_flow.h's. Pure.
// Design: docs/design/end-cloud.md.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "base/clock.h"
#include "expert/flow/row_speed.h"
#include "split/flow/link_batch.h"

namespace troupe {

struct CutFacts {
  std::uint32_t layers = 0;                // of the model
  std::vector<std::uint32_t> before = {};  // layers that it may be cut before
  std::size_t most_rows = 0;               // of a chunk
  std::size_t unit = 1;                    // rows of a chunk: this, or a multiple
  // What a layer takes for n rows at once.
  std::function<double(std::size_t rows)> end_layer_seconds = {}, cloud_layer_seconds = {};
  double end_wait_seconds = 0, cloud_wait_seconds = 0;  // before it begins there
  double chunk_wait_seconds = 0;                        // of each chunk in the cloud, for others
  double round_trip_seconds = 0;
  double bytes_a_row = 0;
  // Of keys and values of each of the end's layers, that cross as well so that the cloud can go on.
  double bytes_a_row_and_layer = 0;
  double bytes_a_second = 0;  // 0: not measured, and nothing is counted
  // Of a row that crosses in fewer bytes: writing it here, and reading it in the cloud.
  double encode_seconds_a_row = 0, decode_seconds_a_row = 0;
};

struct CutPlan {
  std::uint32_t layer = 0;  // the first one in the cloud
  std::size_t chunk = 0;    // tokens at a time
  // Until the answer is here, expected; where it goes on: until it begins.
  double seconds = 0;
  // Tokens of the prompt that cross with their keys and values, and the cloud goes on behind them
  // by itself; 0: all of them without, for an answer of one token.
  std::size_t prefix = 0;
  bool lossy = false;      // its rows cross in the fewer bytes of PlanCutByLink,
  std::uint32_t code = 0;  // by this one of the layer's codes

  bool operator==(const CutPlan&) const = default;
};

// Seconds until the first token is here, of a prompt in chunks of these sizes.
double CutSeconds(const CutFacts& facts, std::uint32_t layer, std::span<const std::size_t> chunks);

// The chunks of a prompt: all alike, the last one maybe smaller.
std::vector<std::size_t> ChunksOf(std::size_t tokens, std::size_t chunk);

// The best cut and chunk for a prompt; absent: there is no cut. `chunk`: of that size, whatever
// would be best.
std::optional<CutPlan> PlanCut(const CutFacts& facts, std::size_t tokens,
                               std::optional<std::size_t> chunk = std::nullopt);

// A code by which rows before that layer cross in fewer bytes, and lose something.
struct ShorterRows {
  std::uint32_t layer = 0;
  double bytes_a_row = 0;
  std::uint32_t code = 0;                         // which of the layer's
  double encode_seconds = 0, decode_seconds = 0;  // of a row
};

// The best cut of exact rows, which `facts` says, or the best of shorter ones where the link makes
// so much of a difference that it is worth a loss.
std::optional<CutPlan> PlanCutByLink(const CutFacts& facts, std::span<const ShorterRows> shorter,
                                     std::size_t tokens,
                                     std::optional<std::size_t> chunk = std::nullopt);

// What chunks have taken here: of each side a layer's seconds by rows, of the link bytes a second.
class CutMeter {
 public:
  // A chunk of `rows` rows has gone through `layers` layers.
  void OnEnd(std::size_t rows, std::uint32_t layers, double seconds);
  // The same in the cloud, where it has waited for others before.
  void OnCloud(std::size_t rows, std::uint32_t layers, double waited, double seconds, Nanos now);
  // Of each message: it is on its way, and then it was from and to these times, or nobody knows.
  void OnSent() { link_.OnSent(); }
  void OnThrough(std::size_t bytes, Nanos sent, Nanos through, Nanos round_trip) {
    NoteLink(link_.OnThrough(bytes, sent, through, round_trip));
  }
  void OnLost() { NoteLink(link_.OnLost()); }
  // Bytes were on the link for that long, with a round trip, and nothing else was.
  void OnLink(std::size_t bytes, double seconds, double round_trip);

  bool measured() const { return end_.measured() && cloud_.measured() && bytes_a_second_ > 0; }
  // `read_seconds`: of a token through the whole model, used where nothing was measured.
  double EndLayerSeconds(std::size_t rows, double read_seconds, std::uint32_t layers) const {
    return LayerSeconds(end_, rows, read_seconds, layers);
  }
  double CloudLayerSeconds(std::size_t rows, double read_seconds, std::uint32_t layers) const {
    return LayerSeconds(cloud_, rows, read_seconds, layers);
  }
  // Halves with each two seconds of silence: what others take there is then not known.
  double ChunkWaitSeconds(Nanos now) const;
  double bytes_a_second() const { return bytes_a_second_; }

 private:
  static double LayerSeconds(const RowCurve& curve, std::size_t rows, double read_seconds,
                             std::uint32_t layers);
  void NoteLink(const std::optional<LinkBatch::Sample>& sample) {
    if (sample) OnLink(sample->bytes, sample->seconds, sample->round_trip_seconds);
  }

  RowCurve end_, cloud_;  // of one layer
  LinkBatch link_;
  double bytes_a_second_ = 0;
  double chunk_wait_ = 0;
  Nanos waited_at_ = 0;
};

}  // namespace troupe
