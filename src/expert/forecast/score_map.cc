#include "expert/forecast/score_map.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/check.h"
#include "base/rng.h"
#include "expert/forecast/forecast_study.h"

namespace troupe {
namespace {

constexpr std::size_t kRandomSums = 48;
constexpr std::uint64_t kMapSeed = 18;
// Tokens after which each distance is learned at every second one: that takes most of the time.
constexpr std::uint64_t kLearnAll = 4000;
constexpr float kMapStep = 0.1f;
// Steps become shorter with what was learned, down to those after this many tokens: another text
// may come.
constexpr float kMapMomentKept = 1 - 1 / 20'000.0f;
constexpr float kFirstMapMoment = 0.01f;
constexpr float kLeastScore = 1e-9f;
constexpr float kChoice = 1.5f;  // of a choice, beside scores of deviation 1

// Mean 0 and deviation 1. Scores are chances, and their logarithms are what adds up; what is no
// chance is taken as it is. False if they are no numbers, or so far apart that floats of them end.
bool StandardiseScores(std::span<const float> scores, std::span<float> out) {
  const bool chances = std::ranges::all_of(scores, [](float s) { return s >= 0; });
  double sum = 0, squares = 0;
  for (std::size_t e = 0; e < scores.size(); ++e) {
    out[e] = chances ? std::log(std::max(scores[e], kLeastScore)) : scores[e];
    sum += static_cast<double>(out[e]);
    squares += static_cast<double>(out[e]) * static_cast<double>(out[e]);
  }
  const double count = static_cast<double>(scores.size());
  const double variance = squares / count - sum / count * (sum / count);
  if (!(variance < 1e60)) return false;
  const auto mean = static_cast<float>(sum / count);
  const auto scale = static_cast<float>(variance > 1e-12 ? 1 / std::sqrt(variance) : 0);
  for (float& x : out) x = (x - mean) * scale;
  return true;
}

void AddTimes(float factor, const float* from, std::span<float> to) {
  for (std::size_t i = 0; i < to.size(); ++i) to[i] += factor * from[i];
}

// Four at a time: each sum is read and written once for them all.
void AddRows(std::span<const float> factors, const float* rows, std::span<float> to) {
  const std::size_t size = to.size();
  std::size_t i = 0;
  for (; i + 4 <= factors.size(); i += 4) {
    const float a = factors[i], b = factors[i + 1], c = factors[i + 2], d = factors[i + 3];
    if (a == 0 && b == 0 && c == 0 && d == 0) continue;  // of choices most are
    const float* const row = rows + i * size;
    for (std::size_t e = 0; e < size; ++e) {
      to[e] += (a * row[e] + b * row[size + e]) + (c * row[2 * size + e] + d * row[3 * size + e]);
    }
  }
  for (; i < factors.size(); ++i) AddTimes(factors[i], rows + i * size, to);
}

float Chance(float logit) { return 1 / (1 + std::exp(-std::clamp(logit, -30.0f, 30.0f))); }

}  // namespace

std::size_t ScoreMap::OwnFeatures(ExpertGrid grid) {
  return 2 * std::size_t{grid.experts} + kRandomSums;
}

// Its own, the scores of the layer before, scores and choices of the token before at the layer that
// is predicted, and 1.
std::size_t ScoreMap::FeatureCount(ExpertGrid grid) {
  return OwnFeatures(grid) + 3 * std::size_t{grid.experts} + 1;
}

std::size_t ScoreMap::WeightCount(ExpertGrid grid) { return MomentCount(grid) * grid.experts; }

std::size_t ScoreMap::MomentCount(ExpertGrid grid) {
  return std::size_t{grid.layers} * ReachFor(grid) * FeatureCount(grid);
}

std::uint32_t ScoreMap::RandomSums() { return kRandomSums; }

Bytes ScoreMap::TableBytes(ExpertGrid grid, std::uint32_t reach) {
  const std::size_t features = FeatureCount(grid);
  return Bytes(std::size_t{grid.layers} * reach * features * (grid.experts + 1) * sizeof(float));
}

std::uint32_t ScoreMap::ReachFor(ExpertGrid grid) {
  constexpr Bytes kMost = 64_MiB;
  std::uint32_t reach = std::min(kMostReach, std::max(2u, grid.layers) - 1);
  while (reach > 1 && TableBytes(grid, reach) > kMost) --reach;
  return reach;
}

Bytes ScoreMap::BytesFor(ExpertGrid grid) {
  const std::size_t token =
      grid.layers * OwnFeatures(grid) * sizeof(float) + grid.layers / 8 + sizeof(std::uint64_t);
  const std::size_t random = 3 * std::size_t{grid.experts} * kRandomSums;
  const std::size_t work = FeatureCount(grid) + grid.experts;
  return TableBytes(grid, ReachFor(grid)) + Bytes((kMostRows + kMostSequences) * token) +
         Bytes((random + work) * sizeof(float));
}

ScoreMap::ScoreMap(ExpertGrid grid, std::uint32_t experts_per_token, ScoreTables* known)
    : grid_(grid),
      experts_per_token_(std::clamp(experts_per_token, 1u, std::max(1u, grid.experts))),
      reach_(ReachFor(grid)),
      looks_(reach_),
      weights_(known != nullptr ? std::move(known->weights)
                                : std::vector<float>(WeightCount(grid))),
      moments_(known != nullptr ? std::move(known->moments)
                                : std::vector<float>(MomentCount(grid), kFirstMapMoment)),
      random_(3 * std::size_t{grid.experts} * kRandomSums),
      features_(FeatureCount(grid)),
      logits_(grid.experts) {
  TROUPE_CHECK(grid.layers > 0 && grid.experts > 0);
  TROUPE_CHECK(weights_.size() == WeightCount(grid) && moments_.size() == MomentCount(grid));
  Rng rng(kMapSeed);
  const double scale = 1.5 / std::sqrt(3.0 * grid.experts);
  for (float& x : random_) x = static_cast<float>(scale * rng.Normal());
  sequences_.reserve(kMostSequences);
  rows_.reserve(kMostRows);
  if (known != nullptr) {
    order_ = known->layers;
    order_is_known_ = true;
    learned_tokens_ = known->tokens;
    return;
  }
  // Before anything was seen every expert is as likely as any other.
  const float share =
      std::min(0.9f, static_cast<float>(experts_per_token_) / static_cast<float>(grid.experts));
  const float offset = std::log(share / (1 - share));
  for (std::size_t map = 0; map < std::size_t{grid.layers} * reach_; ++map) {
    const std::size_t end = (map + 1) * FeatureCount(grid) * grid.experts;
    std::fill_n(weights_.begin() + static_cast<std::ptrdiff_t>(end - grid.experts), grid.experts,
                offset);
  }
}

void ScoreMap::MoveTo(ScoreTables& tables) {
  OnPassBegins({});  // the last one is learned from
  tables.grid = grid_;
  tables.experts_per_token = experts_per_token_;
  tables.layers = order_;
  tables.tokens = learned_tokens_;
  tables.weights = std::move(weights_);
  tables.moments = std::move(moments_);
}

Bytes ScoreMap::bytes() const {
  std::size_t floats = weights_.capacity() + moments_.capacity() + random_.capacity() +
                       features_.capacity() + logits_.capacity();
  const auto add = [&floats](const Token& token) { floats += token.features.capacity(); };
  for (const Row& row : rows_) add(row.token);
  for (const Token& token : spare_) add(token);
  for (const OfSequence& one : sequences_) add(one.last);
  return Bytes(floats * sizeof(float));
}

void ScoreMap::Reset(Token& token) const {
  token.said.assign(grid_.layers, false);
  token.features.resize(grid_.layers * OwnFeatures(grid_));
}

ScoreMap::Token& ScoreMap::LastOf(SequenceId sequence) {
  auto found = std::ranges::find(sequences_, sequence, &OfSequence::sequence);
  if (found == sequences_.end()) {
    if (sequences_.size() < kMostSequences) {
      sequences_.emplace_back();
      found = sequences_.end() - 1;
    } else {
      found = std::ranges::min_element(sequences_, {}, &OfSequence::used);
      found->last.said.clear();
    }
    found->sequence = sequence;
  }
  found->used = passes_;
  return found->last;
}

void ScoreMap::OnPassBegins(const PassFacts& pass) {
  EndPass();
  ++passes_;
  spoke_ = false;
  right_.clear();
  groups_ = pass.groups;
  ChooseRows(pass);
  for (const RowGroupFacts& group : groups_) {
    if (group.position == 0) LastOf(group.sequence).said.clear();
  }
}

// As many of each group, its last ones.
void ScoreMap::ChooseRows(const PassFacts& pass) {
  for (Row& row : rows_) spare_.push_back(std::move(row.token));
  rows_.clear();
  const std::size_t each = kMostRows / std::max<std::size_t>(1, pass.groups.size());
  std::size_t first = 0;
  for (std::size_t g = 0; g < pass.groups.size(); ++g) {
    const std::size_t count = pass.groups[g].rows;
    for (std::size_t r = count - std::min(count, each); r < count; ++r) {
      rows_.push_back({.number = first + r, .group = g, .of_group = r, .token = {}});
      if (!spare_.empty()) {
        rows_.back().token = std::move(spare_.back());
        spare_.pop_back();
      }
      Reset(rows_.back().token);
    }
    first += count;
  }
  pass_rows_ = first;
}

// The text's tokens among the rows, one after the other as if they had been generated so.
void ScoreMap::EndPass() {
  if (!spoke_) return;
  for (std::size_t g = 0; g < groups_.size(); ++g) {
    const std::size_t right = g < right_.size() ? right_[g] : 0;
    const std::size_t of_text = groups_[g].sure() + right;
    Token& last = LastOf(groups_[g].sequence);
    Row* before = nullptr;
    for (Row& row : rows_) {
      if (row.group != g || row.of_group >= of_text) continue;
      const bool first = row.of_group == 0;
      const Token& token_before = before != nullptr ? before->token : first ? last : unknown_;
      if (before != nullptr) {
        for (std::size_t p = 0; p < order_.size(); ++p) SumUp(row.token, token_before, p);
      }
      Learn(row.token, token_before);
      before = &row;
    }
    if (before != nullptr && before->of_group + 1 == of_text) {
      std::swap(last, before->token);
    } else if (of_text > 0) {
      last.said.clear();  // its last row was not looked at
    }
  }
}

bool ScoreMap::FindPlace(std::uint32_t layer) {
  const auto found = std::ranges::find(order_, layer);
  if (found != order_.end()) {
    place_ = static_cast<std::size_t>(found - order_.begin());
    return true;
  }
  // Layers speak as they lie, so one that was not heard before belongs behind the others.
  if (!order_.empty() && layer < order_.back()) return false;
  place_ = order_.size();
  order_.push_back(layer);
  return true;
}

std::span<float> ScoreMap::Own(Token& token, std::size_t place) const {
  const std::size_t own = OwnFeatures(grid_);
  return std::span(token.features).subspan(place * own, own);
}

const float* ScoreMap::ScoresOf(const Token& token, std::size_t place) const {
  if (!token.known() || place >= token.said.size() || !token.said[place]) return nullptr;
  return token.features.data() + place * OwnFeatures(grid_);
}

void ScoreMap::OnScores(std::uint32_t layer, std::span<const float> scores) {
  if (layer >= grid_.layers || scores.empty() || !FindPlace(layer)) return;
  spoke_ = true;
  // Of a pass of very many rows there may be those of the last ones alone.
  const std::size_t given = scores.size() / grid_.experts;
  const std::size_t left_out = pass_rows_ - std::min(pass_rows_, given);
  for (Row& row : rows_) {
    if (row.number < left_out) continue;
    const std::size_t at = row.number - left_out;
    Describe(row.token, scores.subspan(at * grid_.experts, grid_.experts));
    SumUp(row.token, LastOf(groups_[row.group].sequence), place_);
  }
}

void ScoreMap::Describe(Token& token, std::span<const float> scores) const {
  const std::size_t experts = grid_.experts;
  const std::span<float> own = Own(token, place_);
  if (!StandardiseScores(scores, own.first(experts))) return;
  const std::span<float> choices = own.subspan(experts, experts);
  std::ranges::fill(choices, 0.0f);
  for (const std::uint32_t e : TopOf(scores, experts_per_token_)) choices[e] = kChoice;
  token.said[place_] = true;
}

// Random sums of what the layer and the one before it said, and the token before at the layer after
// the next.
void ScoreMap::SumUp(Token& token, const Token& before, std::size_t place) {
  const std::size_t experts = grid_.experts, places = order_.size();
  const float* said = ScoresOf(token, place);
  if (said == nullptr) return;
  const std::span<float> sums = Own(token, place).last(kRandomSums);
  std::ranges::fill(sums, 0.0f);
  const float* earlier = place > 0 ? ScoresOf(token, place - 1) : ScoresOf(before, places - 1);
  const float* later =
      place + 2 < places ? ScoresOf(before, place + 2) : ScoresOf(token, (place + 2) % places);
  const float* rows = random_.data();
  for (const float* from : {said, earlier, later}) {
    if (from != nullptr) AddRows({from, experts}, rows, sums);
    rows += experts * kRandomSums;
  }
  for (float& sum : sums) sum = std::max(0.0f, sum);
}

std::optional<std::uint32_t> ScoreMap::LayerAhead(std::uint32_t ahead) const {
  if (!knows_order() || !spoke_ || ahead >= order_.size()) return std::nullopt;
  return order_[(place_ + ahead) % order_.size()];
}

// What a token knew at a place of another place, `before` being the token before it; false if that
// was not enough.
bool ScoreMap::Gather(const Token& source, const Token& before, std::size_t place,
                      std::size_t target) {
  const std::size_t experts = grid_.experts, own = OwnFeatures(grid_);
  const float* said = ScoresOf(source, place);
  if (said == nullptr) return false;
  auto to = std::copy_n(said, own, features_.begin());
  const auto copy = [&](const float* from, std::size_t count) {
    to = from == nullptr ? std::fill_n(to, count, 0.0f) : std::copy_n(from, count, to);
  };
  copy(place > 0 ? ScoresOf(source, place - 1) : ScoresOf(before, order_.size() - 1), experts);
  copy(ScoresOf(target > place ? before : source, target), 2 * experts);
  *to = 1;
  return true;
}

ScoreMap::Map ScoreMap::At(std::size_t place, std::uint32_t ahead) {
  const std::size_t features = features_.size(), map = place * reach_ + ahead - 1;
  const std::size_t size = features * grid_.experts;
  return {.weights = std::span(weights_).subspan(map * size, size),
          .moments = std::span(moments_).subspan(map * features, features)};
}

void ScoreMap::Evaluate(const Map& map) {
  std::ranges::fill(logits_, 0.0f);
  AddRows(features_, map.weights.data(), logits_);
}

std::span<const float> ScoreMap::Predict(std::size_t row, std::uint32_t ahead) {
  TROUPE_CHECK(row < rows_.size() && ahead >= 1 && ahead <= reach_);
  if (!LayerAhead(ahead)) return {};
  const std::size_t target = (place_ + ahead) % order_.size();
  Row& of = rows_[row];
  if (!Gather(of.token, LastOf(groups_[of.group].sequence), place_, target)) return {};
  Evaluate(At(target, ahead));
  return logits_;
}

void ScoreMap::Learn(const Token& token, const Token& before) {
  if (!knows_order()) return;
  const std::size_t places = order_.size();
  bool learned = false;
  for (std::size_t target = 0; target < places; ++target) {
    const float* said = ScoresOf(token, target);
    if (said == nullptr) continue;
    const std::span<const float> chosen(said + grid_.experts, grid_.experts);
    for (std::uint32_t ahead = 1; ahead <= looks_ && ahead < places; ++ahead) {
      const bool same = ahead <= target;
      const std::size_t place = same ? target - ahead : places + target - ahead;
      if (learned_tokens_ > kLearnAll && (passes_ + ahead) % 2 != 0) continue;
      // Of the token before that one nothing is needed, as the layer before is its own.
      if (!same && place == 0) continue;
      if (!Gather(same ? token : before, same ? before : unknown_, place, target)) continue;
      LearnOne(target, ahead, chosen);
      learned = true;
    }
  }
  learned_tokens_ += learned ? 1 : 0;
}

void ScoreMap::LearnOne(std::size_t target, std::uint32_t ahead, std::span<const float> chosen) {
  const Map map = At(target, ahead);
  Evaluate(map);
  float squares = 0;
  for (std::size_t e = 0; e < logits_.size(); ++e) {
    const float error = (chosen[e] > 0 ? 1.0f : 0.0f) - Chance(logits_[e]);
    logits_[e] = error;
    squares += error * error;
  }
  squares /= static_cast<float>(logits_.size());
  for (std::size_t i = 0; i < features_.size(); ++i) {
    const float x = features_[i];
    float& moment = map.moments[i];
    moment = kMapMomentKept * moment + x * x * squares;
    if (x == 0) continue;
    AddTimes(kMapStep * x / std::sqrt(moment), logits_.data(),
             map.weights.subspan(i * grid_.experts, grid_.experts));
  }
}

}  // namespace troupe
