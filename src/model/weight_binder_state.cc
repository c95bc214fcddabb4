// The part of weight_binder.h for layers whose past is a state: delta nets and convolutions.
#include "kernels/delta_net.h"
#include "model/weight_binder.h"

namespace troupe {

// Files made before the projections were told apart have all four in one matrix, key head by key
// head: its rows are brought into their order.
Status WeightBinder::BindDeltaInputs(const std::string& prefix, DeltaNetWeights& w) {
  const DeltaNetConfig& delta = *config_.delta;
  const std::uint64_t width = config_.width, dim = delta.head_dim;
  const TensorInfo* const all = Find(prefix + "ssm_in.weight");
  if (all == nullptr) {
    TROUPE_ASSIGN_OR_RETURN(w.qkv, Matrix(prefix + "attn_qkv.weight", width, delta.Channels()));
    TROUPE_ASSIGN_OR_RETURN(w.z, Matrix(prefix + "attn_gate.weight", width, delta.ValueRow()));
    return OkStatus();
  }
  TROUPE_RETURN_IF_ERROR(
      CheckShape(*all, {.cols = width, .rows = delta.Channels() + delta.ValueRow()}));
  const TensorType type = all->type;
  const std::uint64_t row_bytes = RowBytes(type, width).count();
  std::byte* const qkv = Take(PanelBytes(type, delta.Channels(), width));
  std::byte* const z = Take(PanelBytes(type, delta.ValueRow(), width));
  // Pieces of whole panels, so that they join.
  static_assert(DeltaNetHead::kTile % kPanelRows == 0);
  std::uint64_t row = 0;
  const auto piece = [&](std::byte* target, std::uint64_t to, std::uint64_t rows) {
    jobs_.push_back({.tensor = all,
                     .offset = row * row_bytes,
                     .rows = rows,
                     .cols = width,
                     .form = LoadJob::Form::kPanels,
                     .target = target == nullptr ? nullptr : target + to * row_bytes});
    row += rows;
  };
  const std::uint64_t values = dim * (delta.value_heads / delta.key_heads);
  for (std::uint64_t head = 0; head < delta.key_heads; ++head) {
    piece(qkv, head * dim, dim);
    piece(qkv, delta.KeyRow() + head * dim, dim);
    piece(qkv, 2 * delta.KeyRow() + head * values, values);
    piece(z, head * values, values);
  }
  w.qkv = {.type = type, .rows = delta.Channels(), .cols = width, .data = qkv};
  w.z = {.type = type, .rows = delta.ValueRow(), .cols = width, .data = z};
  return OkStatus();
}

Result<DeltaNetWeights> WeightBinder::BindDeltaNet(const std::string& prefix) {
  const DeltaNetConfig& delta = *config_.delta;
  const std::uint64_t width = config_.width, heads = delta.value_heads;
  DeltaNetWeights w;
  TROUPE_ASSIGN_OR_RETURN(w.norm, Vector(prefix + "attn_norm.weight", width));
  TROUPE_RETURN_IF_ERROR(BindDeltaInputs(prefix, w));
  if (delta.fused_gates) {
    TROUPE_ASSIGN_OR_RETURN(w.gates, Matrix(prefix + "ssm_ba.weight", width, 2 * heads));
  } else {
    TROUPE_ASSIGN_OR_RETURN(w.alpha, Matrix(prefix + "ssm_alpha.weight", width, heads));
    TROUPE_ASSIGN_OR_RETURN(w.beta, Matrix(prefix + "ssm_beta.weight", width, heads));
  }
  TROUPE_ASSIGN_OR_RETURN(w.conv,
                          Columns(prefix + "ssm_conv1d.weight", delta.taps, delta.Channels()));
  TROUPE_ASSIGN_OR_RETURN(w.dt, Vector(prefix + "ssm_dt.bias", heads));
  TROUPE_ASSIGN_OR_RETURN(w.a, Vector(prefix + "ssm_a", heads));
  TROUPE_ASSIGN_OR_RETURN(w.head_norm, Vector(prefix + "ssm_norm.weight", delta.head_dim));
  TROUPE_ASSIGN_OR_RETURN(w.out, BindLinear(prefix + "ssm_out", delta.ValueRow(), width));
  return w;
}

Result<StateSpaceWeights> WeightBinder::BindStateSpace(const std::string& prefix) {
  const StateSpaceConfig& space = *config_.space;
  const std::uint64_t width = config_.width, heads = space.heads, groups = space.groups;
  StateSpaceWeights w;
  TROUPE_ASSIGN_OR_RETURN(w.norm, Vector(prefix + "attn_norm.weight", width));
  TROUPE_ASSIGN_OR_RETURN(w.in, BindLinear(prefix + "ssm_in", width, space.InRow()));
  TROUPE_ASSIGN_OR_RETURN(w.conv,
                          Columns(prefix + "ssm_conv1d.weight", space.taps, space.Channels()));
  TROUPE_ASSIGN_OR_RETURN(w.conv_bias, Vector(prefix + "ssm_conv1d.bias", space.Channels()));
  TROUPE_ASSIGN_OR_RETURN(w.dt, Vector(prefix + "ssm_dt.bias", heads));
  TROUPE_ASSIGN_OR_RETURN(w.a, Floats(prefix + "ssm_a", {.cols = 1, .rows = heads}));
  TROUPE_ASSIGN_OR_RETURN(w.skip, Floats(prefix + "ssm_d", {.cols = 1, .rows = heads}));
  TROUPE_ASSIGN_OR_RETURN(
      w.group_norms,
      Floats(prefix + "ssm_norm.weight", {.cols = space.ValueRow() / groups, .rows = groups}));
  TROUPE_ASSIGN_OR_RETURN(w.out, BindLinear(prefix + "ssm_out", space.ValueRow(), width));
  return w;
}

Status WeightBinder::BindRecurrent(const std::string& prefix, LayerWeights& w) {
  if (config_.short_conv_taps > 0) {
    TROUPE_ASSIGN_OR_RETURN(w.conv, BindShortConv(prefix));
  } else if (config_.space) {
    TROUPE_ASSIGN_OR_RETURN(w.space, BindStateSpace(prefix));
  } else {
    TROUPE_ASSIGN_OR_RETURN(w.delta, BindDeltaNet(prefix));
  }
  return OkStatus();
}

Result<ShortConvWeights> WeightBinder::BindShortConv(const std::string& prefix) {
  const std::uint64_t width = config_.width;
  ShortConvWeights w;
  TROUPE_ASSIGN_OR_RETURN(w.norm, Vector(prefix + "attn_norm.weight", width));
  TROUPE_ASSIGN_OR_RETURN(w.in, BindLinear(prefix + "shortconv.in_proj", width, 3 * width));
  TROUPE_ASSIGN_OR_RETURN(
      w.conv, Columns(prefix + "shortconv.conv.weight", config_.short_conv_taps, width));
  TROUPE_ASSIGN_OR_RETURN(w.out, BindLinear(prefix + "shortconv.out_proj", width, width));
  return w;
}

}  // namespace troupe
