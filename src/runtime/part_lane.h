// Where pieces of cut prompts wait for the engine's thread: those that go through the same layers
// share a pass, and a pass of them comes between two passes of whole answers, so that neither waits
// for more than one of the other. Prompts wait here for room as well, in the order in which they
// came. Beside answers under way such a pass has as many rows as the time of a pass leaves, less
// what keys and values have taken that were stored or taken out before it.
// Thread-safe; outcomes come on the engine's thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "base/clock.h"
#include "base/status.h"
#include "runtime/part_runner.h"
#include "runtime/pass_gaps.h"

namespace troupe {

// Sums since the lane was made, and what waits now.
struct PartCounters {
  std::uint64_t prompts = 0;  // that were opened
  std::uint64_t rows = 0;     // that went through the layers
  std::uint64_t passes = 0;
  double pass_seconds = 0;
  std::size_t prompts_now = 0;
  std::size_t waiting_rows = 0;
  std::uint64_t stored_bytes = 0;  // of keys and values that others have computed
  std::uint64_t moves = 0;         // times between two passes that some were stored or taken out

  bool operator==(const PartCounters&) const = default;
};

class PartLane {
 public:
  // The clock must outlive it.
  PartLane(PartRunner runner, PassGaps gaps, const Clock& clock);
  ~PartLane();
  PartLane(const PartLane&) = delete;
  PartLane& operator=(const PartLane&) = delete;

  // A prompt of that many tokens that goes through these layers here. Gives its room back when
  // nobody has it any more.
  class Prompt;
  // kInvalidArgument: not of these layers. kResourceExhausted: it never has room.
  Result<std::shared_ptr<Prompt>> Open(LayerRange layers, std::size_t tokens);

  enum class Wanted {
    kNothing,
    kRows,    // behind the last of the layers
    kLogits,  // of its last row
  };
  // The prompt's next tokens, or, of layers that do not begin with the first, their rows of the
  // residual stream.
  struct Piece {
    std::vector<TokenId> tokens = {};
    std::vector<float> stream = {};
    Wanted wanted = Wanted::kNothing;
    // The largest part, in bytes, in which the keys and values of all its rows (whole tiles) are
    // wanted as well; 0: they are not.
    std::size_t most_keys_bytes = 0;
  };
  struct Outcome {
    Status status;
    std::vector<float> rows = {};
    std::vector<KeysPart> keys = {};
    std::span<const float> logits = {};  // good during the call
    double waited_seconds = 0;           // for others: all the rest of the time in the lane
    double seconds = 0;                  // its share of the passes it was in, by rows
    Nanos ended = 0;                     // by the lane's clock
  };
  // Pieces of a prompt are run in the order in which they came.
  void Run(std::shared_ptr<Prompt> prompt, Piece piece,
           std::function<void(const Outcome& outcome)> on_done);

  // Keys and values of other layers than the prompt goes through here. PartRunner::Store says what
  // is required.
  void Store(std::shared_ptr<Prompt> prompt, KeysPart part,
             std::function<void(const Outcome& outcome)> on_done);
  // Has all that the prompt has read taken out, some of it between two passes: `take` gets how many
  // positions there is time for, and may take a page however few these are.
  struct Taken {
    std::size_t positions = 0;
    bool more = false;  // it is to be called again
  };
  using Take = std::function<Taken(std::size_t positions)>;
  void TakeOut(std::shared_ptr<Prompt> prompt, Take take,
               std::function<void(const Outcome& outcome)> on_done);
  // While it is taken out: as PartRunner::CopyTo.
  void CopyTo(const Prompt& prompt, std::size_t positions, KvSequence& to) const;

  // Fails what waits, on this thread, and all that comes with kCancelled: the model is to be
  // closed, after this.
  void Close();

  std::size_t most_positions() const;
  const KvPool& pool() const;  // for its layouts
  // Room is given by pages: of a prompt, and all there is.
  std::size_t PagesFor(std::size_t tokens) const { return (tokens + page_ - 1) / page_; }
  std::size_t pages() const { return pages_; }
  PartCounters counters() const;

 private:
  struct State;
  struct Work;
  void Add(std::unique_ptr<Work> work);
  const std::size_t page_, pages_;  // positions of one, and how many there are
  const std::shared_ptr<State> state_;
};

}  // namespace troupe
