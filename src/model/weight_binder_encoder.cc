// What an encoder-decoder has beside other models: the part of weight_binder.h for it.
#include "model/weight_binder.h"

namespace troupe {

Result<CrossWeights> WeightBinder::BindCross(const std::string& prefix) {
  const AttentionConfig& a = config_.attention;
  const std::uint64_t width = config_.width;
  const std::uint64_t values = std::uint64_t{a.heads} * a.value_dim;
  CrossWeights w;
  TROUPE_ASSIGN_OR_RETURN(w.norm, Vector(prefix + "cross_attn_norm.weight", width));
  TROUPE_ASSIGN_OR_RETURN(
      w.q, BindLinear(prefix + "cross_attn_q", width, std::uint64_t{a.heads} * a.key_dim));
  TROUPE_ASSIGN_OR_RETURN(w.k, BindLinear(prefix + "cross_attn_k", width, a.KeyRow()));
  TROUPE_ASSIGN_OR_RETURN(w.v, BindLinear(prefix + "cross_attn_v", width, a.ValueRow()));
  TROUPE_ASSIGN_OR_RETURN(w.out, BindLinear(prefix + "cross_attn_output", values, width));
  return w;
}

Status WeightBinder::BindEncoderEnds(ModelWeights& w) {
  const EncoderConfig& encoder = *config_.encoder;
  TROUPE_ASSIGN_OR_RETURN(w.encoder_norm, Vector("enc.output_norm.weight", config_.width));
  const auto bias = [&](std::uint32_t layer) {
    return Floats(fmt::format("blk.{}.attn_rel_b.weight", layer),
                  {.cols = config_.attention.heads, .rows = encoder.buckets});
  };
  TROUPE_ASSIGN_OR_RETURN(w.encoder_bias, bias(0));
  TROUPE_ASSIGN_OR_RETURN(w.decoder_bias, bias(encoder.layers));
  return OkStatus();
}

}  // namespace troupe
