// The feed-forward of layers without experts.
#include "model/expert_mlp.h"
#include "model/forward_pass.h"

namespace troupe {

void ForwardPass::DenseBlock(const LayerWeights& w) {
  NormaliseStream(w.ffn_norm);
  AddFirstHalf(region_, w.dense, ws_.normed.Of(tokens_), {}, ws_.hidden.values, ws_.hidden.cols);
  region_.Run(pool_);
  const Activations hidden = ws_.hidden.Of(tokens_);
  QuantizeRows(hidden, pool_);
  AddSecondHalf(region_, w.dense, hidden, ws_.normed.values);
  region_.Run(pool_);
  AddToStream(ws_.normed.values, w.ffn_answer_norm);
}

}  // namespace troupe
