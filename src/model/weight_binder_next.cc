// The part of weight_binder.h for heads that guess a further token.
#include "model/weight_binder.h"

namespace troupe {

// Files have the matrices of the ends, and their last norm, only where they differ from the
// model's.
Result<ModelWeights> WeightBinder::BindNextTokenHead() {
  const std::uint64_t width = config_.width;
  const std::string prefix = fmt::format("blk.{}.nextn.", *config_.next_token_block);
  ModelWeights w;
  w.layers.resize(config_.layers);
  TROUPE_ASSIGN_OR_RETURN(w.layers.back(), BindLayer(config_.layers - 1));
  NextTokenWeights& next = w.next_token;
  TROUPE_ASSIGN_OR_RETURN(next.token_norm, Vector(prefix + "enorm.weight", width));
  TROUPE_ASSIGN_OR_RETURN(next.stream_norm, Vector(prefix + "hnorm.weight", width));
  TROUPE_ASSIGN_OR_RETURN(next.join, Matrix(prefix + "eh_proj.weight", 2 * width, width));
  TROUPE_ASSIGN_OR_RETURN(w.output_norm, OptionalVector(prefix + "shared_head_norm.weight", width));
  for (const auto& [name, matrix] : {std::pair("embed_tokens.weight", &w.embedding),
                                     std::pair("shared_head_head.weight", &w.output)}) {
    if (file_.Find(prefix + name) == nullptr) continue;
    TROUPE_ASSIGN_OR_RETURN(*matrix, Matrix(prefix + name, width, config_.vocabulary));
  }
  return w;
}

}  // namespace troupe
