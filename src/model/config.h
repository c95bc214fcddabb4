// What a model is, read from a GGUF's metadata and checked: sizes, attention, rotary embedding,
// experts. One file under arch/ a family knows that family's keys and habits; after it has run,
// nothing above asks for the architecture's name again: the blocks ask this value.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "gguf/metadata.h"
#include "kernels/rope.h"
#include "kernels/top_experts.h"
#include "model/recurrent_config.h"
#include "quant/gate_reference.h"

namespace troupe {

enum class Architecture {
  kLlama,
  kQwen2Moe,
  kQwen3Moe,
  kOlmoe,
  kDeepseek,
  kDeepseek2,
  kQwen3Next,
  kQwen35Moe,
  kGptOss,
  kMinimaxM2,
  kLfm2Moe,
  kGlm4Moe,
  kGraniteMoe,
  kGraniteHybrid,
  kGemma4,
  kQwen3VlMoe,
  kDots1,
  kErnie45Moe,
  kHunyuanMoe,
  kBailingMoe2,
  kNemotronH,
  kNemotronHMoe,
  kSwitch
};

std::string_view Name(Architecture architecture);  // as general.architecture has it
std::optional<Architecture> ArchitectureByName(std::string_view name);
std::string SupportedArchitectures();  // "llama, qwen2moe, …" for messages

enum class QkNorm {
  kNone,
  kPerHead,         // qwen3moe
  kPerHeadIfThere,  // glm4moe: larger models have the norms, smaller ones do not
  kPerHeadRotated,  // hunyuan-moe: after the rotation
  kWhole            // olmoe
};

// Multi-head latent attention: keys and values live in one compressed row per token.
struct MlaConfig {
  std::uint32_t q_rank = 0;   // 0: queries are not compressed
  std::uint32_t kv_rank = 0;  // length of the compressed row without its rotary part
  std::uint32_t nope_dim = 0;
  std::uint32_t rope_dim = 0;
  std::uint32_t value_dim = 0;
};

struct AttentionConfig {
  std::uint32_t heads = 0;
  std::uint32_t kv_heads = 0;
  std::uint32_t key_dim = 0;  // per head, as multiplied with queries
  std::uint32_t value_dim = 0;
  float scale = 0;  // on query x key
  QkNorm qk_norm = QkNorm::kNone;
  // The query projection gives as many numbers more: what a head attended is multiplied with their
  // sigmoid.
  bool gated = false;
  bool fused = false;   // one matrix gives queries, keys and values
  bool biases = false;  // of queries, keys, values and the output; others may have some of them
  bool sinks = false;   // every head has a score that takes its share of the softmax
  bool values_normed = false;  // to the length of 1, without a weight
  std::optional<MlaConfig> mla;

  // What one token adds to the KV cache of one layer: floats of keys, floats of values.
  std::uint32_t KeyRow() const { return kv_heads * key_dim; }
  std::uint32_t ValueRow() const { return mla ? 0 : kv_heads * value_dim; }  // MLA: in its keys
};

// Layers whose queries see a window of the last keys alone.
struct WindowConfig {
  std::uint32_t positions = 0;  // that a query sees, its own the last
  std::vector<bool> layers;     // that have it; one flag a layer
  // Where their heads are other ones than those of the layers that see everything.
  std::optional<AttentionConfig> attention;
  std::optional<RopeParams> rope;
};

// What a token's pass keeps on the stack is sized by this; far above any model's top-k.
inline constexpr std::uint32_t kMaxExpertsPerToken = 256;

enum class Presence { kNone, kOptional, kRequired };  // of a tensor in each layer

struct MoeConfig {
  TopExpertsParams routing;  // routing.experts is 0 in a dense model
  std::uint32_t expert_ff = 0;
  std::uint32_t shared_ff = 0;  // all shared experts as one; 0: none
  bool shared_gate = false;     // the shared expert is weighed by a sigmoid of its own
  std::uint32_t leading_dense = 0;
  std::vector<bool> dense_layers;  // those without experts, if there are others than the leading
  Presence selection_bias = Presence::kNone;  // added to the scores where experts are chosen
  bool biases = false;                        // of the router and of every matrix of the experts
  // gemma4: a dense feed-forward beside the experts, in place of a shared one. Router, experts and
  // dense part each read the stream through a norm of their own, and each answer is normed, too.
  bool beside_dense = false;
};

// Which block of the file ("blk.N") each part of a layer is, in files whose blocks have one part
// each. What a layer does not have is empty.
struct LayerBlocks {
  std::optional<std::uint32_t> recurrent, attention, feed_forward;  // in this order
};

// Of an encoder-decoder: its first layers read a prompt as a whole, the others answer
// (docs/design/encoder-decoder.md).
struct EncoderConfig {
  std::uint32_t layers = 0;
  std::int32_t decoder_start = 0;     // the token behind the prompt that the decoder begins with
  std::uint32_t buckets = 0;          // of distances between a query and its key
  std::uint32_t max_distance = 0;     // from which on all are alike
  std::uint32_t expert_capacity = 0;  // tokens of a prompt that one expert answers; 0: any number
};

struct ModelConfig {
  Architecture architecture = Architecture::kLlama;
  std::string name;
  std::uint32_t layers = 0;
  std::uint32_t width = 0;  // of the residual stream
  std::uint32_t dense_ff = 0;
  std::uint32_t vocabulary = 0;
  std::uint32_t trained_context = 0;
  // How texts become vectors, as GGUF numbers it (1: mean, 3: last token); 0: the file says
  // nothing.
  std::uint32_t pooling = 0;
  float norm_epsilon = 1e-5f;
  std::string_view ffn_norm = "ffn_norm";  // what the tensor of the norm before experts is called
  std::string_view output_norm = "output_norm";  // and that of the last norm
  // What a token's embedding, what a block adds to the stream, and logits are multiplied with.
  float embedding_scale = 1;
  float residual_scale = 1;
  float logit_scale = 1;
  float logit_cap = 0;  // logits are bent to stay within this; 0: not
  AttentionConfig attention;
  RopeParams rope;  // without frequency factors: those are a tensor; 0 dimensions: none rotates
  std::optional<WindowConfig> window;
  MoeConfig moe;
  std::optional<EncoderConfig> encoder;
  GateForm form = GateForm::kSilu;  // of experts and dense feed-forwards
  bool answers_normed = false;      // a block's answer goes through a norm before it is added
  // Layers that have one of the three in place of attention, or before it; empty: none.
  std::vector<bool> recurrent;
  // Of each layer; empty: a layer is the block of its number, with attention or one of the three,
  // and a feed-forward.
  std::vector<LayerBlocks> blocks;
  std::optional<DeltaNetConfig> delta;
  std::optional<StateSpaceConfig> space;
  std::uint32_t short_conv_taps =
      0;  // a convolution over so many tokens between two gates; 0: none
  // Layers behind the last one that guess further tokens. The model itself leaves them out; the
  // first may be a head that next_token_head.h can run.
  std::uint32_t next_token_layers = 0;
  bool next_token_head = false;
  // Of such a head, which is the last of `layers`: what its tensors call it.
  std::optional<std::uint32_t> next_token_block;

  bool IsRecurrent(std::uint32_t layer) const { return !recurrent.empty() && recurrent[layer]; }
  bool HasState() const { return !recurrent.empty(); }
  std::uint32_t RecurrentLayers() const;
  bool HasAttention(std::uint32_t layer) const {
    return blocks.empty() ? !IsRecurrent(layer) : blocks[layer].attention.has_value();
  }
  std::uint32_t AttentionLayers() const;
  std::uint32_t MoeLayersIn(std::uint32_t first, std::uint32_t end) const;
  bool HasFeedForward(std::uint32_t layer) const {
    return blocks.empty() || blocks[layer].feed_forward.has_value();
  }
  // The blocks of the file that the layers are; those behind them guess further tokens.
  std::uint32_t FileBlocks() const;
  std::uint32_t LayerOfBlock(std::uint32_t block) const;  // of one of these
  // Whether all that a sequence has of a token are keys and values that depend on no token behind
  // it: then sequences can share pages of them, and prompts be cut.
  bool KeysTellAll() const { return !HasState() && !encoder; }

  bool IsMoeLayer(std::uint32_t layer) const {
    return moe.routing.experts > 0 && layer >= moe.leading_dense &&
           (moe.dense_layers.empty() || !moe.dense_layers[layer]);
  }
  bool IsEncoder(std::uint32_t layer) const { return encoder && layer < encoder->layers; }
  bool IsDecoder(std::uint32_t layer) const { return encoder && layer >= encoder->layers; }
  // Whether a sequence keeps keys and values of it.
  bool HasKeys(std::uint32_t layer) const { return HasAttention(layer) && !IsEncoder(layer); }
  bool HasWindow(std::uint32_t layer) const { return window && window->layers[layer]; }
  // Keys that a query of this layer sees; 0: all before it.
  std::uint32_t WindowOf(std::uint32_t layer) const {
    return HasWindow(layer) ? window->positions : 0;
  }
  const AttentionConfig& AttentionOf(std::uint32_t layer) const {
    return HasWindow(layer) && window->attention ? *window->attention : attention;
  }
};

// Reads and checks; the message names the key that is missing, of a wrong type or out of range.
Result<ModelConfig> ReadModelConfig(const Metadata& metadata);

// One line a fact, for `troupe inspect` and --explain.
std::vector<std::string> Describe(const ModelConfig& config);

}  // namespace troupe
