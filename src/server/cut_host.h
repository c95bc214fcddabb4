// What a cloud has for prompts that ends cut between two layers: the lane of its layers
// (runtime/part_lane.h), whose turn it is, what the rows that cross are decoded by and on which
// thread, and where the rows of a prompt find it. Thread-safe; calls nobody while it holds its
// lock.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "base/status.h"
#include "runtime/part_lane.h"
#include "server/end_turns.h"
#include "server/errands.h"
#include "server/request_memory.h"
#include "split/codec/cut_basis.h"
#include "split/codec/state_codec.h"
#include "split/wire/cut_ask.h"

namespace troupe {

class CloudCut;

// A cut that takes longer is ended: its end is gone, has left it for another way, or is too slow to
// keep others waiting for its room. What waits in the lane for its pass is not the end's fault.
struct CutLimits {
  double silence_seconds = 10;  // without new rows
  double row_seconds = 0.1;     // beside that, of all its rows
};

class CutHost {
 public:
  // For the layers behind any cut of the model and `tokens` tokens at a time, with room for the
  // layers before, whose keys and values ends have computed.
  static PartShape ShapeFor(const ModelConfig& config, std::size_t tokens);
  // For the memory plan: the pool, and what waits: rows, as they came and decoded, and messages of
  // keys and values.
  static Bytes BytesFor(const ModelConfig& config, std::size_t tokens, KvType type,
                        std::uint32_t context);
  // `bases`: of cuts that codes were fitted for.
  static Result<std::shared_ptr<CutHost>> Create(Engine& engine, PassGaps gaps, std::size_t tokens,
                                                 std::vector<CutBasis> bases,
                                                 CutLimits limits = {});
  ~CutHost();

  PartLane& lane() { return *lane_; }
  // For a prompt of that many tokens; false: too many of this end wait. An end has half of the
  // turns and of the room at most, or one turn.
  bool Enter(std::uint64_t end, std::size_t tokens, const void* who, EndTurns::Begin begin);
  void Leave(std::uint64_t end, const void* who) { turns_.Leave(end, who); }
  std::size_t waiting() const { return turns_.waiting(); }
  // Has no connection wait for the products of a code with a rank.
  Errands& decoding() { return decoding_; }
  const RequestMemory& waiting_memory() const { return memory_; }
  const CutLimits& limits() const { return limits_; }
  std::size_t tokens() const { return lane_->most_positions(); }
  // kInvalidArgument: it has another basis, or none for that code.
  Result<StateDecoder> DecoderFor(const CutAsk& ask) const;

  // Until Close of the same; in place of another one of that name. False: all were ended.
  bool Open(std::uint64_t end, std::uint64_t name, std::shared_ptr<CloudCut> cut);
  void Close(std::uint64_t end, std::uint64_t name, const CloudCut* cut);
  std::shared_ptr<CloudCut> Find(std::uint64_t end, std::uint64_t name) const;

  // As of its lane.
  PartCounters counters() const { return lane_->counters(); }
  // Of cut prompts whose answers went on, by whether these have found all that was read of them: or
  // not, as the model's pool had no room for it, or gave it up before the answer began.
  struct WentOn {
    std::uint64_t kept = 0, no_room = 0, given_up = 0;
  };
  void CountWentOn(bool has_found_all, bool has_no_room) {
    ++(has_found_all ? kept_ : has_no_room ? no_room_ : given_up_);
  }
  WentOn went_on() const { return {.kept = kept_, .no_room = no_room_, .given_up = given_up_}; }

  // Ends all with kCancelled, and waits for what is being decoded: the model is to be closed, after
  // this.
  void EndAll();

 private:
  CutHost(std::uint32_t width, std::size_t tokens, std::vector<CutBasis> bases, CutLimits limits);

  const std::uint32_t width_;
  std::map<std::uint32_t, std::shared_ptr<const CutBasis>> bases_;  // that were fitted, by layer
  const RequestMemory memory_;
  const CutLimits limits_;
  std::unique_ptr<PartLane> lane_;
  EndTurns turns_;
  std::atomic<std::uint64_t> kept_ = 0, no_room_ = 0, given_up_ = 0;
  mutable Mutex mu_;
  bool ended_ TROUPE_GUARDED_BY(mu_) = false;
  std::map<std::pair<std::uint64_t, std::uint64_t>, std::shared_ptr<CloudCut>> open_
      TROUPE_GUARDED_BY(mu_);
  Errands decoding_;  // last: it has cuts that use the others
};

}  // namespace troupe
