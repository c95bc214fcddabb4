// What the next layers will choose, predicted from what routers have said alone: the layer under
// way and the one before it, and the token before at the layer that is predicted. For each layer
// and distance a linear map from these scores and choices, and from random rectified sums of them,
// to the chance of each expert: logistic regression with a step for each feature, learned while
// tokens pass. It reaches several layers ahead and past the token's end, needs no weights of the
// model and no forecasts of its gates, so a replay of a trace with scores knows what a live run
// knows.
//
// A pass is learned from when it is over, by the tokens that the text has; of a prompt's many by
// the last few. Pure. Design: docs/design/prefetch.md.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/bytes.h"
#include "expert/expert_grid.h"
#include "expert/forecast/score_tables.h"
#include "expert/pass_facts.h"

namespace troupe {

class ScoreMap {
 public:
  static constexpr std::uint32_t kMostReach = 5;
  // Of a pass that are looked at, the last ones of each group.
  static constexpr std::uint32_t kMostRows = 8;
  // Whose last tokens are remembered.
  static constexpr std::size_t kMostSequences = 16;

  // How many layers ahead tables of a useful size reach.
  static std::uint32_t ReachFor(ExpertGrid grid);
  static Bytes BytesFor(ExpertGrid grid);

  // Of tables of this grid.
  static std::size_t WeightCount(ExpertGrid grid);
  static std::size_t MomentCount(ExpertGrid grid);
  // On which weights depend: tables of another number say nothing.
  static std::uint32_t RandomSums();

  // Takes its part of `known`, if there are any, and so need not learn it.
  ScoreMap(ExpertGrid grid, std::uint32_t experts_per_token, ScoreTables* known = nullptr);

  void OnPassBegins(const PassFacts& pass);
  // What a layer's router said of all rows of the pass; layers in the order in which tokens pass
  // them.
  void OnScores(std::uint32_t layer, std::span<const float> scores);
  // Of each group of the last pass, how many of its guesses were right.
  void OnGuessesChecked(std::span<const std::uint32_t> right) {
    right_.assign(right.begin(), right.end());
  }

  // How far tables reach; and how far they are learned from now on, as each distance takes time.
  std::uint32_t reach() const { return reach_; }
  void Look(std::uint32_t layers_ahead) { looks_ = layers_ahead < reach_ ? layers_ahead : reach_; }
  // Rows of the pass under way that are looked at.
  std::size_t rows() const { return rows_.size(); }
  // The layer that lies so far after the one that has spoken last, maybe of the next token; none
  // before a whole pass has shown which layers have experts.
  std::optional<std::uint32_t> LayerAhead(std::uint32_t ahead) const;
  // Of that layer, the logit of the chance that a row chooses each expert. Empty: nothing is known.
  // Valid until the next call.
  std::span<const float> Predict(std::size_t row, std::uint32_t ahead);

  std::uint64_t learned_tokens() const { return learned_tokens_; }
  Bytes bytes() const;
  // Gives its part away, and is of no use any more.
  void MoveTo(ScoreTables& tables);

 private:
  // What is known of one token.
  struct Token {
    std::vector<bool> said;       // by place
    std::vector<float> features;  // by place: standard scores, choices, rectified sums
    bool known() const { return !said.empty(); }
  };
  struct Row {
    std::size_t number = 0;  // in the pass
    std::size_t group = 0;
    std::size_t of_group = 0;  // its number there
    Token token;
  };
  struct OfSequence {
    SequenceId sequence = 0;
    std::uint64_t used = 0;
    Token last;
  };
  // One layer from one distance.
  struct Map {
    std::span<float> weights;  // a row of experts for each feature
    std::span<float> moments;  // of each feature
  };

  static std::size_t OwnFeatures(ExpertGrid grid);
  static std::size_t FeatureCount(ExpertGrid grid);
  static Bytes TableBytes(ExpertGrid grid, std::uint32_t reach);

  bool knows_order() const { return (passes_ > 1 || order_is_known_) && !order_.empty(); }
  bool FindPlace(std::uint32_t layer);
  void Reset(Token& token) const;
  Token& LastOf(SequenceId sequence);
  void ChooseRows(const PassFacts& pass);
  void EndPass();
  std::span<float> Own(Token& token, std::size_t place) const;
  void Describe(Token& token, std::span<const float> scores) const;
  void SumUp(Token& token, const Token& before, std::size_t place);
  const float* ScoresOf(const Token& token, std::size_t place) const;
  bool Gather(const Token& source, const Token& before, std::size_t place, std::size_t target);
  Map At(std::size_t place, std::uint32_t ahead);
  void Evaluate(const Map& map);
  void Learn(const Token& token, const Token& before);
  void LearnOne(std::size_t target, std::uint32_t ahead, std::span<const float> chosen);

  ExpertGrid grid_;
  std::uint32_t experts_per_token_;
  std::uint32_t reach_, looks_;
  std::vector<float> weights_, moments_;
  std::vector<float> random_;  // of the sums: a row of them for each of their inputs

  std::vector<std::uint32_t> order_;  // layers that have experts: a place each
  bool order_is_known_ = false;       // before a pass has shown it
  std::size_t place_ = 0;             // that has spoken last
  bool spoke_ = false;                // in the pass under way

  std::vector<RowGroupFacts> groups_;  // of the pass under way
  std::vector<std::uint32_t> right_;   // of its guesses, by group
  std::size_t pass_rows_ = 0;
  std::vector<Row> rows_;
  std::vector<Token> spare_;
  std::vector<OfSequence> sequences_;
  Token unknown_;
  std::uint64_t passes_ = 0;

  std::vector<float> features_, logits_;
  std::uint64_t learned_tokens_ = 0;
};

}  // namespace troupe
