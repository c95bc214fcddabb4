// The feed-forward of layers without experts.
#include "kernels/elementwise.h"
#include "model/expert_mlp.h"
#include "model/forward_pass.h"

namespace troupe {

void ForwardPass::DenseBlock(const float* norm, const Mlp& w) {
  NormaliseStream(norm);
  AddFirstHalf(region_, w, ws_.normed.Of(tokens_), {}, ws_.hidden.values, ws_.hidden.cols);
  region_.Run(pool_);
  const Activations hidden = ws_.hidden.Of(tokens_);
  QuantizeRows(hidden, pool_);
  AddSecondHalf(region_, w, hidden, ws_.normed.values);
  region_.Run(pool_);
  ForRows(tokens_, [&](std::size_t t) {
    Add(ws_.normed.Row(t), ws_.stream + t * config_.width, config_.width);
  });
}

}  // namespace troupe
