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
  if (file_.Find(prefix + "embed_tokens.weight") != nullptr) {
    TROUPE_ASSIGN_OR_RETURN(w.embedding,
                            Matrix(prefix + "embed_tokens.weight", width, config_.vocabulary));
  }
  // Of as many tokens as it has rows: next_token_head.cc knows of which.
  if (const TensorInfo* const output = file_.Find(prefix + "shared_head_head.weight")) {
    TROUPE_ASSIGN_OR_RETURN(w.output, Matrix(output->name, width, output->dims[1]));
  }
  return w;
}

}  // namespace troupe
