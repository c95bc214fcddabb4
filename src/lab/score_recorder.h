// Gives the tokens of a text that is read in passes to a ScoreLearner, one by one as an answer's:
// what the routers said of each, and what gates that were asked early did. Hands the passes on to
// whoever else watches them.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/bytes.h"
#include "expert/prefetch/score_learner.h"
#include "model/route_observer.h"

namespace troupe {

class ScoreRecorder final : public RouteObserver {
 public:
  // The most tokens that a pass may have.
  static Bytes BytesFor(ExpertGrid grid, std::size_t tokens);

  // Either may be null; both must outlive it.
  ScoreRecorder(ScoreLearner* learner, RouteObserver* next, ExpertGrid grid)
      : learner_(learner), next_(next), grid_(grid), layers_(grid.layers) {}

  void PassBegins(const PassFacts& pass) override;
  void Routed(std::uint32_t layer, std::span<const ExpertChoice> chosen,
              std::span<const float> scores) override;
  void PassEnded() override {
    if (next_ != nullptr) next_->PassEnded();
  }
  // What the gate of `layer` says of the pass's tokens `ahead` layers before it, corrected.
  void AskedEarly(std::uint32_t layer, std::uint32_t ahead, std::span<const float> scores);

  bool records() const { return learner_ != nullptr; }
  void TextBegins() { position_ = 0; }
  // After each pass of the text.
  void Learn();

 private:
  struct Early {
    std::uint32_t layer = 0, ahead = 0;
    std::vector<float> scores;  // a row a token
  };
  struct OfLayer {
    bool routed = false;
    std::vector<float> scores;          // a row a token
    std::vector<std::uint32_t> chosen;  // the same
    std::vector<Early> early;           // said while this layer was computed
  };

  ScoreLearner* learner_;
  RouteObserver* next_;
  ExpertGrid grid_;
  std::vector<OfLayer> layers_;  // of the pass under way
  std::uint32_t position_ = 0;   // of the text's next token
};

}  // namespace troupe
