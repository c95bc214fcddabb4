// The experts' part of weight_binder.h.
#include <array>
#include <cmath>

#include "model/weight_binder.h"

namespace troupe {

Result<ExpertExtras> WeightBinder::BindExpertExtras(const std::string& prefix) {
  const MoeConfig& moe = config_.moe;
  const std::uint64_t experts = moe.routing.experts;
  ExpertExtras extras{.form = config_.form};
  if (moe.beside_dense) {
    TROUPE_ASSIGN_OR_RETURN(extras.scale, OptionalVector(prefix + "ffn_down_exps.scale", experts));
  }
  if (!moe.biases) return extras;
  const Shape hidden{.cols = moe.expert_ff, .rows = experts};
  const Shape stream{.cols = config_.width, .rows = experts};
  TROUPE_ASSIGN_OR_RETURN(extras.gate_bias, Floats(prefix + "ffn_gate_exps.bias", hidden));
  TROUPE_ASSIGN_OR_RETURN(extras.up_bias, Floats(prefix + "ffn_up_exps.bias", hidden));
  TROUPE_ASSIGN_OR_RETURN(extras.down_bias, Floats(prefix + "ffn_down_exps.bias", stream));
  return extras;
}

Result<BesideDenseNorms> WeightBinder::BindBesideDenseNorms(const std::string& prefix) {
  const std::uint64_t width = config_.width;
  BesideDenseNorms norms;
  if (!config_.moe.beside_dense) return norms;
  // The router reads its rows divided by the square root of their length.
  const float factor = 1.0f / std::sqrt(static_cast<float>(width));
  TROUPE_ASSIGN_OR_RETURN(norms.router, Vector(prefix + "ffn_gate_inp.scale", width, factor));
  TROUPE_ASSIGN_OR_RETURN(norms.experts, Vector(prefix + "pre_ffw_norm_2.weight", width));
  TROUPE_ASSIGN_OR_RETURN(norms.expert_answer, Vector(prefix + "post_ffw_norm_2.weight", width));
  TROUPE_ASSIGN_OR_RETURN(norms.dense_answer, Vector(prefix + "post_ffw_norm_1.weight", width));
  return norms;
}

Status WeightBinder::BindExpertMatrices(std::uint32_t layer, const std::string& prefix,
                                        MoeWeights& w) {
  const std::uint64_t width = config_.width, ff = config_.moe.expert_ff;
  const std::uint64_t experts = config_.moe.routing.experts;
  const auto require = [&](const char* name, std::uint64_t cols, std::uint64_t rows) {
    return Require(prefix + name, {.cols = cols, .rows = rows, .matrices = experts});
  };
  const TensorInfo *gate = nullptr, *up = nullptr;
  if (!TakesUp(config_.form)) {  // files call the only one so
    TROUPE_ASSIGN_OR_RETURN(gate, require("ffn_up_exps.weight", width, ff));
  } else if (file_.Find(prefix + "ffn_gate_up_exps.weight") != nullptr) {
    // Both in one tensor: of each expert first the rows of the gate, then those of up.
    TROUPE_ASSIGN_OR_RETURN(gate, require("ffn_gate_up_exps.weight", width, 2 * ff));
    up = gate;
  } else {
    TROUPE_ASSIGN_OR_RETURN(gate, require("ffn_gate_exps.weight", width, ff));
    TROUPE_ASSIGN_OR_RETURN(up, require("ffn_up_exps.weight", width, ff));
  }
  TROUPE_ASSIGN_OR_RETURN(const TensorInfo* down, require("ffn_down_exps.weight", ff, width));
  const ExpertLayout& layout = expert_layouts_[layer] =
      up == nullptr ? ExpertLayout::WithoutUp(*gate, *down) : ExpertLayout::For(*gate, *up, *down);
  w.extras.gate_factor = FactorsOf(*gate);
  if (up != nullptr) w.extras.up_factor = FactorsOf(*up);
  if (!config_.moe.beside_dense) w.extras.down_factor = FactorsOf(*down);  // else it is the scale
  if (experts_ == RoutedExperts::kElsewhere) return OkStatus();
  const std::uint64_t before = used_;
  w.experts.reserve(experts);
  for (std::uint32_t e = 0; e < experts; ++e) {  // an expert's three matrices side by side
    std::array<PanelMatrix, 3> panels;
    for (std::size_t m = 0; m < panels.size(); ++m) {
      const ExpertMatrix& matrix = layout.matrices[m];
      if (matrix.rows == 0) {
        panels[m] = {.type = matrix.type, .cols = matrix.cols};
        continue;
      }
      panels[m] = Panels(*matrix.tensor, matrix.FirstRow(e), matrix.rows);
      panels[m].factor = nullptr;  // Complete knows it, also of one expert alone
    }
    const Mlp matrices{.gate = panels[0], .up = panels[1], .down = panels[2]};
    w.experts.push_back(w.extras.Complete(matrices, e));
  }
  expert_bytes_ += Bytes(used_ - before);
  return OkStatus();
}

Result<MoeWeights> WeightBinder::BindMoe(std::uint32_t layer, const std::string& prefix) {
  const MoeConfig& moe = config_.moe;
  const std::uint64_t width = config_.width, experts = moe.routing.experts;
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
    TROUPE_ASSIGN_OR_RETURN(
        w.shared,
        BindMlp(prefix, moe.beside_dense ? ".weight" : "_shexp.weight", width, moe.shared_ff));
    if (moe.shared_gate) {
      TROUPE_ASSIGN_OR_RETURN(w.shared_gate,
                              Matrix(prefix + "ffn_gate_inp_shexp.weight", width, 1));
    }
  }
  TROUPE_ASSIGN_OR_RETURN(w.norms, BindBesideDenseNorms(prefix));
  TROUPE_ASSIGN_OR_RETURN(w.extras, BindExpertExtras(prefix));
  TROUPE_RETURN_IF_ERROR(BindExpertMatrices(layer, prefix, w));
  return w;
}

}  // namespace troupe
