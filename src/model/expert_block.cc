// The feed-forward of layers with experts. Expert-major for any number of tokens: each chosen
// expert's matrices are read once a pass, whatever number of tokens chose it. Answers are kept a
// row an assignment and added in the order of the slots, so that the order in which experts were
// computed leaves no trace in the sum.
#include <algorithm>
#include <array>
#include <atomic>

#include "kernels/elementwise.h"
#include "model/forward_pass.h"

namespace troupe {
namespace {

Activations Slice(Activations x, std::size_t first, std::size_t count) {
  x.values += first * x.stride;
  if (x.groups != nullptr) x.groups = x.Groups(first);
  x.tokens = count;
  return x;
}

}  // namespace

Status ForwardPass::Route(std::uint32_t layer, const MoeWeights& w) {
  const TopExpertsParams& routing = config_.moe.routing;
  const Activations normed = ws_.normed.Of(tokens_);
  region_.Add(w.router, normed, {}, ws_.router, routing.experts);
  if (config_.moe.shared_gate) region_.Add(w.shared_gate, normed, {}, ws_.shared_gate, 1);
  region_.Run(pool_);

  const std::span<const float> bias = w.selection_bias == nullptr
                                          ? std::span<const float>()
                                          : std::span(w.selection_bias, routing.experts);
  std::atomic<bool> broken{false};
  ForRows(tokens_, [&](std::size_t t) {
    if (!ChooseTopExperts(routing, {ws_.router + t * routing.experts, routing.experts}, bias,
                          {ws_.chosen + t * routing.top_k, routing.top_k})) {
      broken.store(true, std::memory_order_relaxed);
    }
  });
  if (broken.load()) {
    return DataLoss(
        "layer {}: the router's scores are not finite numbers; the file is damaged or "
        "its numbers overflow",
        layer);
  }
  return OkStatus();
}

void ForwardPass::OrderByExpert() {
  const TopExpertsParams& routing = config_.moe.routing;
  const std::size_t assignments = tokens_ * routing.top_k;
  const std::span<std::uint32_t> first = ws_.first_assignment;
  std::fill(first.begin(), first.end(), 0u);
  for (std::size_t i = 0; i < assignments; ++i) ++first[ws_.chosen[i].expert + 1];
  for (std::size_t e = 0; e < routing.experts; ++e) first[e + 1] += first[e];
  // Walks first[e] up to the end of e's range, which is where e + 1 began; then shifts it back.
  for (std::size_t i = 0; i < assignments; ++i) {
    const std::uint32_t place = first[ws_.chosen[i].expert]++;
    ws_.assigned_token[place] = static_cast<std::uint32_t>(i / routing.top_k);
    ws_.assignment_of[i] = place;
  }
  for (std::size_t e = routing.experts; e > 0; --e) first[e] = first[e - 1];
  first[0] = 0;
}

void ForwardPass::RunExperts(const MoeWeights& w) {
  const MoeConfig& moe = config_.moe;
  const Activations normed = ws_.normed.Of(tokens_);
  const auto for_each_chosen = [&](auto&& add) {
    for (std::size_t e = 0; e < moe.routing.experts; ++e) {
      const std::size_t begin = ws_.first_assignment[e];
      const std::size_t count = ws_.first_assignment[e + 1] - begin;
      if (count > 0) add(w.experts[e], begin, count);
    }
  };
  for_each_chosen([&](const Mlp& expert, std::size_t begin, std::size_t count) {
    region_.AddGateUp(expert.gate, expert.up, normed, ws_.assigned_token.subspan(begin, count),
                      ws_.expert_hidden.Row(begin), ws_.expert_hidden.cols);
  });
  if (moe.shared_ff > 0) {
    region_.AddGateUp(w.shared.gate, w.shared.up, normed, {}, ws_.shared_hidden.values,
                      ws_.shared_hidden.cols);
  }
  region_.Run(pool_);

  const Activations hidden = ws_.expert_hidden.Of(tokens_ * moe.routing.top_k);
  QuantizeAll(hidden);
  for_each_chosen([&](const Mlp& expert, std::size_t begin, std::size_t count) {
    region_.Add(expert.down, Slice(hidden, begin, count), {},
                ws_.expert_out + begin * config_.width, config_.width);
  });
  if (moe.shared_ff > 0) {
    const Activations shared = ws_.shared_hidden.Of(tokens_);
    QuantizeAll(shared);
    region_.Add(w.shared.down, shared, {}, ws_.shared_out, config_.width);
  }
  region_.Run(pool_);
}

void ForwardPass::Combine() {
  const MoeConfig& moe = config_.moe;
  const std::size_t width = config_.width, top_k = moe.routing.top_k;
  ForRows(tokens_, [&](std::size_t t) {
    std::array<float, kMaxExpertsPerToken> weights;
    std::array<const float*, kMaxExpertsPerToken> answers;
    for (std::size_t slot = 0; slot < top_k; ++slot) {
      weights[slot] = ws_.chosen[t * top_k + slot].weight;
      answers[slot] = ws_.expert_out + ws_.assignment_of[t * top_k + slot] * width;
    }
    float* stream = ws_.stream + t * width;
    MixExperts({weights.data(), top_k}, {answers.data(), top_k}, stream, width);
    if (moe.shared_ff == 0) return;
    const float* shared = ws_.shared_out + t * width;
    if (moe.shared_gate) {
      AddGated(ws_.shared_gate[t], shared, stream, width);
    } else {
      Add(shared, stream, width);
    }
  });
}

Status ForwardPass::ExpertBlock(std::uint32_t layer, const float* norm, const MoeWeights& w) {
  NormaliseStream(norm);
  TROUPE_RETURN_IF_ERROR(Route(layer, w));
  OrderByExpert();
  RunExperts(w);
  Combine();
  return OkStatus();
}

}  // namespace troupe
