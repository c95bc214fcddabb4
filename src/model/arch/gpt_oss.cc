// gpt-oss: every other layer sees a window of the last keys, every head has a sink, every matrix a
// bias, and the experts' two halves meet in a clamped form. The weights of the chosen experts are a
// softmax over their logits alone: the softmax over all, divided by the sum of the chosen.
#include "model/arch/keys.h"

namespace troupe {

Result<ModelConfig> ReadGptOssConfig(const Metadata& metadata) {
  const ArchKeys keys(metadata, "gpt-oss");
  TROUPE_ASSIGN_OR_RETURN(ModelConfig config,
                          ReadCommonConfig(keys, Architecture::kGptOss, RopePairs::kHalves));
  MoeConfig& moe = config.moe;
  if (moe.routing.experts == 0) return InvalidArgument("{} is missing", keys.Full("expert_count"));
  TROUPE_RETURN_IF_ERROR(ReadExpertSizes(keys, config.dense_ff, moe));
  moe.routing.normalise = true;
  moe.biases = true;
  config.form = GateForm::kClamped;

  AttentionConfig& attention = config.attention;
  WindowConfig window;
  TROUPE_ASSIGN_OR_RETURN(window.positions, keys.Count("attention.sliding_window", 1, kMaxContext));
  for (std::uint32_t layer = 0; layer < config.layers; ++layer) {
    window.layers.push_back(layer % 2 == 0);
  }
  config.window = std::move(window);
  attention.sinks = true;
  attention.biases = true;
  config.ffn_norm = "post_attention_norm";
  return config;
}

}  // namespace troupe
