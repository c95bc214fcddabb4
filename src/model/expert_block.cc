// The feed-forward of layers with experts. Expert-major for any number of tokens: each chosen
// expert's matrices are read once a pass, whatever number of tokens chose it, and experts are
// computed as the source hands them out, unless it hands out their answers. Answers are kept a row
// an assignment and added in the order of the slots, so that neither the order of arrival nor who
// computed them leaves a trace in the sum.
#include <algorithm>
#include <array>
#include <atomic>

#include "base/clock.h"
#include "kernels/axpy.h"
#include "kernels/elementwise.h"
#include "kernels/quantize_activations.h"
#include "kernels/rms_norm.h"
#include "model/expert_mlp.h"
#include "model/forward_pass.h"
#include "model/gate_probe.h"

namespace troupe {
namespace {

Activations Slice(Activations x, std::size_t first, std::size_t count) {
  x.values += first * x.stride;
  if (x.groups != nullptr) x.groups = x.Groups(first);
  x.tokens = count;
  return x;
}

}  // namespace

// What a following gate is shown: the stream as it is now, through that layer's own norm. The
// stream changes little from layer to layer, the norms' weights differ more.
void ForwardPass::AskEarly(const LayerWeights& next, std::size_t place) {
  const std::size_t rows = ForecastRows(), experts = config_.moe.routing.experts;
  const Activations input = Slice(ws_.forecast_input.Of((place + 1) * rows), place * rows, rows);
  for (std::size_t row = 0; row < rows; ++row) {
    RmsNorm(ws_.stream + forecast_rows_[row] * config_.width, next.RouterNorm(),
            config_.norm_epsilon, ws_.forecast_input.Row(place * rows + row), config_.width);
    if (input.groups != nullptr) QuantizeActivations(input, row, 1);
  }
  region_.Add(next.moe.router, input, {}, ws_.forecast + place * rows * experts, experts);
}

void ForwardPass::AddRouter(std::uint32_t layer, const MoeWeights& w, const Activations& input) {
  const std::size_t experts = config_.moe.routing.experts;
  if (groups_ == nullptr) return region_.Add(w.router, input, {}, ws_.router, experts);
  groups_->AddGroups(layer, input, region_);
  std::size_t first = 0;
  for (const RowGroup& group : batch_) {
    const std::size_t count = group.Rows(config_.width);
    if (group.exact) {
      region_.Add(w.router, Slice(input, first, count), {}, ws_.router + first * experts, experts);
    }
    first += count;
  }
}

void ForwardPass::KeepExactLogits() {
  const std::size_t experts = config_.moe.routing.experts;
  for (std::size_t i = 0; i < ForecastRows(); ++i) {
    const std::size_t row = forecast_rows_[i];
    if (IsGrouped(row)) continue;
    std::copy_n(ws_.router + row * experts, experts, ws_.gate_said + i * experts);
  }
}

void ForwardPass::KeepGroupedLogits(std::uint32_t layer) {
  const std::size_t experts = config_.moe.routing.experts;
  for (std::size_t i = 0; i < ForecastRows(); ++i) {
    const std::size_t row = forecast_rows_[i];
    if (!IsGrouped(row)) continue;
    groups_->LogitsOf(layer, row, {ws_.router + row * experts, experts},
                      {ws_.gate_said + i * experts, experts});
  }
}

Status ForwardPass::Route(std::uint32_t layer, const MoeWeights& w,
                          std::span<const LayerWeights> forecasts, bool tells) {
  const Stopwatch watch;
  const Activations input = (config_.moe.beside_dense ? ws_.router_input : ws_.normed).Of(tokens_);
  const TopExpertsParams& routing = config_.moe.routing;
  AddRouter(layer, w, input);
  if (config_.moe.shared_gate)
    region_.Add(w.shared_gate, ws_.normed.Of(tokens_), {}, ws_.shared_gate, 1);
  // Guesses at what the next gates will say, at the price of some more small products in a region
  // that runs anyway.
  for (std::size_t place = 0; place < forecasts.size(); ++place) AskEarly(forecasts[place], place);
  region_.Run(pool_);
  if (groups_ != nullptr) {
    groups_->AddExperts(layer, input, region_);
    region_.Run(pool_);
  }
  const std::span<const float> bias = w.selection_bias == nullptr
                                          ? std::span<const float>()
                                          : std::span(w.selection_bias, routing.experts);
  if (tells) KeepExactLogits();  // before they become scores
  std::atomic<bool> broken{false};
  ForRows(tokens_, [&](std::size_t t) {
    const std::span<float> scores(ws_.router + t * routing.experts, routing.experts);
    const std::span<ExpertChoice> chosen(ws_.chosen + t * routing.top_k, routing.top_k);
    const bool sane = IsGrouped(t) ? groups_->Choose(layer, t, routing, scores, chosen)
                                   : ChooseTopExperts(routing, scores, bias, chosen);
    if (!sane) broken.store(true, std::memory_order_relaxed);
  });
  if (broken.load()) {
    return DataLoss(
        "layer {}: the router's scores are not finite numbers; the file is damaged or "
        "its numbers overflow",
        layer);
  }
  if (tells) KeepGroupedLogits(layer);
  gate_seconds_ += watch.Seconds();
  if (observer_ != nullptr) {
    observer_->Routed(layer, {ws_.chosen, tokens_ * routing.top_k},
                      {ws_.router, tokens_ * routing.experts});
  }
  return OkStatus();
}

GateScores ForwardPass::GateSaid(const MoeWeights& w) {
  const std::uint32_t experts = config_.moe.routing.experts;
  const std::span<float> rows(ws_.gate_said, ForecastRows() * experts);
  RankByGate(config_, w, rows);
  return {.experts = experts, .scores = rows};
}

GateScores ForwardPass::Forecast(const MoeWeights& next, std::size_t place) {
  const std::uint32_t experts = config_.moe.routing.experts;
  const std::size_t count = ForecastRows() * experts;
  const std::span<float> rows(ws_.forecast + place * count, count);
  RankByGate(config_, next, rows);
  return {.experts = experts, .scores = rows};
}

void ForwardPass::OrderByExpert() {
  const TopExpertsParams& routing = config_.moe.routing;
  const std::size_t assignments = tokens_ * routing.top_k;
  const std::span<std::uint32_t> first = ws_.first_assignment;
  std::fill(first.begin(), first.end(), 0u);
  for (std::size_t i = 0; i < assignments; ++i) {
    if (ws_.chosen[i].expert != kNoExpert) ++first[ws_.chosen[i].expert + 1];
  }
  for (std::size_t e = 0; e < routing.experts; ++e) first[e + 1] += first[e];
  // Walks first[e] up to the end of e's range, which is where e + 1 began; then shifts it back.
  for (std::size_t i = 0; i < assignments; ++i) {
    if (ws_.chosen[i].expert == kNoExpert) continue;
    const std::uint32_t place = first[ws_.chosen[i].expert]++;
    ws_.assigned_token[place] = static_cast<std::uint32_t>(i / routing.top_k);
    ws_.assignment_of[i] = place;
  }
  for (std::size_t e = routing.experts; e > 0; --e) first[e] = first[e - 1];
  first[0] = 0;
}

ForwardPass::Assignments ForwardPass::AssignmentsOf(std::uint32_t expert) const {
  const std::size_t first = ws_.first_assignment[expert];
  return {.first = first, .count = ws_.first_assignment[expert + 1] - first};
}

std::span<const ExpertDemand> ForwardPass::Demands() const {
  std::size_t count = 0;
  for (std::uint32_t e = 0; e < config_.moe.routing.experts; ++e) {
    const std::size_t tokens = AssignmentsOf(e).count;
    if (tokens == 0) continue;
    ws_.demands[count++] = {.expert = e, .tokens = static_cast<std::uint32_t>(tokens)};
  }
  return ws_.demands.first(count);
}

void ForwardPass::QuantizeHidden(const Activations& hidden, std::span<const ReadyExpert> experts) {
  // Experts whose rows lie side by side are one run: all of them, where all are ready at once.
  Assignments run{.first = 0, .count = 0};
  for (const ReadyExpert& expert : experts) {
    if (!std::holds_alternative<Mlp>(expert.answer)) continue;
    const Assignments mine = AssignmentsOf(expert.expert);
    if (mine.first == run.first + run.count) {
      run.count += mine.count;
      continue;
    }
    QuantizeRows(Slice(hidden, run.first, run.count), pool_);
    run = mine;
  }
  QuantizeRows(Slice(hidden, run.first, run.count), pool_);
}

void ForwardPass::CopyAnswers(std::span<const ReadyExpert> experts) {
  for (const ReadyExpert& expert : experts) {
    const auto* const answered = std::get_if<ReadyRows>(&expert.answer);
    if (answered == nullptr) continue;
    const Assignments mine = AssignmentsOf(expert.expert);
    TROUPE_CHECK(answered->values.size() == mine.count * config_.width);
    std::ranges::copy(answered->values, ws_.expert_out + mine.first * config_.width);
  }
}

void ForwardPass::BeginExperts() {
  while (const std::optional<BegunExpert> begun = experts_.TakeBegun()) {
    const Assignments mine = AssignmentsOf(begun->expert);
    AddFirstHalf(region_, begun->weights, ws_.normed.Of(tokens_),
                 ws_.assigned_token.subspan(mine.first, mine.count),
                 ws_.expert_hidden.Row(mine.first), ws_.expert_hidden.cols);
    region_.Run(pool_);
    begun_.push_back(begun->expert);
  }
}

void ForwardPass::RunExperts(std::span<const ReadyExpert> experts, const Mlp* shared) {
  CopyAnswers(experts);
  const Activations normed = ws_.normed.Of(tokens_);
  for (const ReadyExpert& expert : experts) {
    const auto* const weights = std::get_if<Mlp>(&expert.answer);
    if (weights == nullptr || HasBegun(expert.expert)) continue;
    const Assignments mine = AssignmentsOf(expert.expert);
    AddFirstHalf(region_, *weights, normed, ws_.assigned_token.subspan(mine.first, mine.count),
                 ws_.expert_hidden.Row(mine.first), ws_.expert_hidden.cols);
  }
  if (shared != nullptr) {
    const Rows& input = config_.moe.beside_dense ? ws_.dense_input : ws_.normed;
    AddFirstHalf(region_, *shared, input.Of(tokens_), {}, ws_.shared_hidden.values,
                 ws_.shared_hidden.cols);
  }
  region_.Run(pool_);
  experts_.Advance();

  const Activations hidden = ws_.expert_hidden.Of(tokens_ * config_.moe.routing.top_k);
  QuantizeHidden(hidden, experts);
  for (const ReadyExpert& expert : experts) {
    const auto* const weights = std::get_if<Mlp>(&expert.answer);
    if (weights == nullptr) continue;
    const Assignments mine = AssignmentsOf(expert.expert);
    AddSecondHalf(region_, *weights, Slice(hidden, mine.first, mine.count),
                  ws_.expert_out + mine.first * config_.width);
  }
  if (shared != nullptr) {
    const Activations shared_hidden = ws_.shared_hidden.Of(tokens_);
    QuantizeRows(shared_hidden, pool_);
    AddSecondHalf(region_, *shared, shared_hidden, ws_.shared_out);
  }
  region_.Run(pool_);
}

void ForwardPass::TellForecasts(std::uint32_t layer, const MoeWeights& w,
                                std::span<const LayerWeights> following, std::size_t forecasts,
                                bool tells) {
  if (tells) experts_.OnGateScores(layer, GateSaid(w));
  for (std::size_t place = 0; place < forecasts; ++place) {
    const auto ahead = static_cast<std::uint32_t>(place) + 1;
    experts_.OnForecast(layer + ahead, ahead, Forecast(following[place].moe, place));
  }
  if (forecasts == 0 && !following.empty()) experts_.OnForecast(layer + 1, 1, {});
}

Status ForwardPass::RunChosen(std::uint32_t layer, const LayerWeights& w,
                              std::span<const ExpertDemand> demands, const LayerWeights* next) {
  begun_.clear();
  // What is there at once runs together with the shared expert, while the rest is on its way.
  TROUPE_ASSIGN_OR_RETURN(std::span<const ReadyExpert> ready, experts_.Take(/*wait=*/false));
  RunExperts(ready, config_.moe.shared_ff > 0 ? &w.moe.shared : nullptr);
  std::size_t run = ready.size();
  if (next != nullptr) ForecastWithAnswers(layer, w, *next, ready);
  for (; run < demands.size(); run += ready.size()) {
    BeginExperts();
    TROUPE_ASSIGN_OR_RETURN(ready, experts_.Take(/*wait=*/true));
    RunExperts(ready, nullptr);
  }
  return OkStatus();
}

void ForwardPass::MixAnswers(std::size_t token, const ExpertExtras& extras,
                             std::span<const std::uint8_t> there, float* out) const {
  const std::size_t width = config_.width, top_k = config_.moe.routing.top_k;
  std::array<float, kMaxExpertsPerToken> weights;
  std::array<const float*, kMaxExpertsPerToken> answers;
  std::size_t answered = 0;
  for (std::size_t slot = token * top_k; slot < (token + 1) * top_k; ++slot) {
    const std::uint32_t expert = ws_.chosen[slot].expert;
    if (expert == kNoExpert || (!there.empty() && there[expert] == 0)) continue;
    const float scale = extras.scale == nullptr ? config_.residual_scale : extras.scale[expert];
    weights[answered] = ws_.chosen[slot].weight * scale;
    answers[answered++] = ws_.expert_out + ws_.assignment_of[slot] * width;
  }
  MixExperts({weights.data(), answered}, {answers.data(), answered}, out, width);
}

void ForwardPass::CombineBesideDense(const LayerWeights& w) {
  const std::size_t width = config_.width;
  const BesideDenseNorms& norms = w.moe.norms;
  // Nobody reads the experts' input any more.
  ForRows(tokens_, [&](std::size_t t) {
    float* const answer = ws_.normed.Row(t);
    std::fill_n(answer, width, 0.0f);
    MixAnswers(t, w.moe.extras, {}, answer);
    RmsNorm(answer, norms.expert_answer, config_.norm_epsilon, answer, width);
    float* const dense = ws_.shared_out + t * width;
    RmsNorm(dense, norms.dense_answer, config_.norm_epsilon, dense, width);
    Add(dense, answer, width);
  });
  AddToStream(ws_.normed.values, w.ffn_answer_norm);
}

void ForwardPass::AddAnswers(std::size_t token, const MoeWeights& w,
                             std::span<const std::uint8_t> there, float* stream) const {
  const std::size_t width = config_.width;
  MixAnswers(token, w.extras, there, stream);
  if (config_.moe.shared_ff == 0) return;
  const float* shared = ws_.shared_out + token * width;
  if (config_.moe.shared_gate) {
    AddGated(ws_.shared_gate[token], shared, stream, width);
  } else {
    Axpy(config_.residual_scale, shared, stream, width);
  }
}

void ForwardPass::Combine(const LayerWeights& w) {
  const std::size_t width = config_.width;
  ForRows(tokens_, [&](std::size_t t) { AddAnswers(t, w.moe, {}, ws_.stream + t * width); });
}

void ForwardPass::DropBeyondCapacity(std::uint32_t layer) {
  const std::uint32_t capacity = config_.IsEncoder(layer) ? config_.encoder->expert_capacity : 0;
  if (capacity == 0) return;
  const std::span<std::uint32_t> taken = ws_.first_assignment;  // nobody has ordered them yet
  const std::size_t top_k = config_.moe.routing.top_k;
  std::size_t slot = 0;
  for (const RowGroup& group : batch_) {
    std::ranges::fill(taken, 0u);
    for (const std::size_t end = slot + group.Rows(config_.width) * top_k; slot < end; ++slot) {
      ExpertChoice& choice = ws_.chosen[slot];
      if (choice.expert == kNoExpert || ++taken[choice.expert] <= capacity) continue;
      choice = {.expert = kNoExpert, .weight = 0};
    }
  }
}

void ForwardPass::RouterInputs(const LayerWeights& w) {
  if (!config_.moe.beside_dense) {
    NormaliseStream(w.ffn_norm);
    return;
  }
  NormaliseStream(w.moe.norms.router, ws_.router_input);
  NormaliseStream(w.moe.norms.experts);
  NormaliseStream(w.ffn_norm, ws_.dense_input);
}

Status ForwardPass::ExpertBlock(std::uint32_t layer, const LayerWeights& w,
                                std::span<const LayerWeights> following) {
  RouterInputs(w);
  const std::uint32_t ahead = std::min(experts_.forecast_layers(), kMostLayersAhead);
  const std::size_t forecasts = std::min<std::size_t>(following.size(), ahead);
  const LayerWeights* const later =
      forecasts > 0 && experts_.forecasts_with_answers() ? &following.front() : nullptr;
  const std::size_t early = later == nullptr ? forecasts : 0;
  // The last layer, too: forecasts of it are learned from.
  const bool tells = ahead > 0;
  TROUPE_RETURN_IF_ERROR(Route(layer, w.moe, following.first(early), tells));
  const TopExpertsParams& routing = config_.moe.routing;
  experts_.OnRouted(layer, {ws_.router, tokens_ * routing.experts},
                    {ws_.chosen, tokens_ * routing.top_k});
  DropBeyondCapacity(layer);
  OrderByExpert();
  const std::span<const ExpertDemand> demands = Demands();
  experts_.Ask({.layer = layer,
                .demands = demands,
                .input = ws_.normed.Of(tokens_),
                .rows = ws_.assigned_token,
                .first_row = ws_.first_assignment});
  TellForecasts(layer, w.moe, later == nullptr ? following : following.first(0), early, tells);
  TROUPE_RETURN_IF_ERROR(RunChosen(layer, w, demands, later));
  if (config_.moe.beside_dense) {
    CombineBesideDense(w);
  } else {
    Combine(w);
  }
  return OkStatus();
}

}  // namespace troupe
