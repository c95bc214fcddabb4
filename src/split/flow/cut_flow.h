// One prompt that is cut between two layers: which tokens the end takes through its layers next,
// and which rows go over the link. The end computes a chunk while the one before is on its way and
// the cloud works on that before it. Whoever it tells what to do has engine, link and clock. Pure.
// Design: docs/design/end-cloud.md.
#pragma once

#include <algorithm>
#include <cstddef>
#include <optional>
#include <vector>

namespace troupe {

class CutFlow {
 public:
  struct Chunk {
    std::size_t first = 0;  // token of the prompt
    std::size_t tokens = 0;
    bool is_last = false;

    bool operator==(const Chunk&) const = default;
  };
  // What is to be done.
  struct Step {
    std::optional<Chunk> compute;  // then OnComputed
    std::vector<Chunk> send;       // in this order; each then OnTaken

    bool operator==(const Step&) const = default;
  };

  // `most_ahead`: chunks that are computed and not taken by the cloud yet, at most: their rows are
  // in memory. REQUIRES: all of them are more than 0.
  static constexpr std::size_t kMostAhead = 4;
  CutFlow(std::size_t tokens, std::size_t chunk, std::size_t most_ahead = kMostAhead)
      : tokens_(tokens), chunk_(chunk), most_ahead_(most_ahead) {}

  Step Begin() { return GoOn(); }
  // The cloud waits for the prompt's rows: none is sent before.
  Step OnCloudReady() {
    is_ready_ = true;
    return GoOn();
  }
  Step OnComputed() {
    waiting_.push_back(*computing_);
    computing_.reset();
    return GoOn();
  }
  // The cloud has taken a chunk through its layers.
  Step OnTaken() {
    --sent_;
    return GoOn();
  }

  std::size_t under_way() const { return sent_; }  // chunks
  std::size_t computed() const { return next_ - (computing_ ? computing_->tokens : 0); }

 private:
  Step GoOn() {
    Step step;
    if (is_ready_) {
      step.send.swap(waiting_);
      sent_ += step.send.size();
    }
    if (!computing_ && next_ < tokens_ && waiting_.size() + sent_ < most_ahead_) {
      const std::size_t count = std::min(chunk_, tokens_ - next_);
      computing_ = {.first = next_, .tokens = count, .is_last = next_ + count == tokens_};
      next_ += count;
      step.compute = computing_;
    }
    return step;
  }

  const std::size_t tokens_, chunk_, most_ahead_;
  std::size_t next_ = 0;  // token
  std::size_t sent_ = 0;
  bool is_ready_ = false;
  std::optional<Chunk> computing_;
  std::vector<Chunk> waiting_;  // for the cloud to be ready
};

}  // namespace troupe
