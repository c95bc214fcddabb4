// The experts' part of weight_binder.h.
#include "model/weight_binder.h"

namespace troupe {

Result<ExpertExtras> WeightBinder::BindExpertExtras(const std::string& prefix) {
  const MoeConfig& moe = config_.moe;
  const std::uint64_t experts = moe.routing.experts;
  ExpertExtras extras{.form = moe.form};
  if (!moe.biases) return extras;
  const Shape hidden{.cols = moe.expert_ff, .rows = experts};
  const Shape stream{.cols = config_.width, .rows = experts};
  TROUPE_ASSIGN_OR_RETURN(extras.gate_bias, Floats(prefix + "ffn_gate_exps.bias", hidden));
  TROUPE_ASSIGN_OR_RETURN(extras.up_bias, Floats(prefix + "ffn_up_exps.bias", hidden));
  TROUPE_ASSIGN_OR_RETURN(extras.down_bias, Floats(prefix + "ffn_down_exps.bias", stream));
  return extras;
}

Result<MoeWeights> WeightBinder::BindMoe(std::uint32_t layer, const std::string& prefix) {
  const MoeConfig& moe = config_.moe;
  const std::uint64_t width = config_.width, ff = moe.expert_ff, experts = moe.routing.experts;
  MoeWeights w;
  TROUPE_ASSIGN_OR_RETURN(w.router.weight, Matrix(prefix + "ffn_gate_inp.weight", width, experts));
  if (moe.biases) {
    TROUPE_ASSIGN_OR_RETURN(w.router.bias, Vector(prefix + "ffn_gate_inp.bias", experts));
  }
  if (moe.selection_bias != Presence::kNone) {
    const std::string name = prefix + "exp_probs_b.bias";
    TROUPE_ASSIGN_OR_RETURN(w.selection_bias, moe.selection_bias == Presence::kRequired
                                                  ? Vector(name, experts)
                                                  : OptionalVector(name, experts));
  }
  if (moe.shared_ff > 0) {
    TROUPE_ASSIGN_OR_RETURN(w.shared, BindMlp(prefix, "_shexp.weight", width, moe.shared_ff));
    if (moe.shared_gate) {
      TROUPE_ASSIGN_OR_RETURN(w.shared_gate,
                              Matrix(prefix + "ffn_gate_inp_shexp.weight", width, 1));
    }
  }
  const auto require = [&](const char* name, std::uint64_t cols, std::uint64_t rows) {
    return Require(prefix + name, {.cols = cols, .rows = rows, .matrices = experts});
  };
  TROUPE_ASSIGN_OR_RETURN(const TensorInfo* gate, require("ffn_gate_exps.weight", width, ff));
  TROUPE_ASSIGN_OR_RETURN(const TensorInfo* up, require("ffn_up_exps.weight", width, ff));
  TROUPE_ASSIGN_OR_RETURN(const TensorInfo* down, require("ffn_down_exps.weight", ff, width));
  expert_layouts_[layer] = ExpertLayout::For(*gate, *up, *down);
  TROUPE_ASSIGN_OR_RETURN(w.extras, BindExpertExtras(prefix));
  if (experts_ == RoutedExperts::kElsewhere) return w;
  const std::uint64_t before = used_;
  w.experts.reserve(experts);
  for (std::uint64_t e = 0; e < experts; ++e) {  // an expert's three matrices side by side
    Mlp expert;
    expert.gate = Panels(*gate, e * ff, ff);
    expert.up = Panels(*up, e * ff, ff);
    expert.down = Panels(*down, e * width, width);
    w.experts.push_back(w.extras.Complete(expert, static_cast<std::uint32_t>(e)));
  }
  expert_bytes_ += Bytes(used_ - before);
  return w;
}

}  // namespace troupe
