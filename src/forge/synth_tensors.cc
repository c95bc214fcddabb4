// The tensors half of synth_layout.h.
#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <string>

#include "forge/synth_layout.h"

namespace troupe {
namespace {

// Gains over 1/sqrt(inputs), which alone would keep a matrix's outputs at the size of its inputs.
constexpr double kScoreGain = 1.5;   // queries: attention prefers some positions
constexpr double kRouterGain = 2.0;  // the chosen experts carry most of the weight
constexpr double kDownGain = 2.0;    // SiLU shrinks, and the weights of experts add to 1 or less
// gpt-oss's clamped form: wide enough for some numbers to meet its limits; it grows what it is
// given.
constexpr double kClampedGain = 3.0;
constexpr double kClampedDownGain = 0.25;
// Squared ReLU makes numbers of 1.2 or so of normal ones.
constexpr double kSquaredDownGain = 1.0;
constexpr double kOutputGain = 3.0;  // logits: some tokens likely, none certain

// Against the 1 or so that each block adds: in a deep stream of random parts rounding anywhere
// would decide between near ties, of routers and of tokens, and no two engines could be held to the
// same tokens. What a block computes still moves a logit by a quarter of the logits' spread.
constexpr double kEmbeddingDeviation = 4.0;

constexpr double kNormDeviation = 0.1;  // about 1: seen if forgotten
constexpr double kBiasDeviation = 0.2;
constexpr double kSinkDeviation = 1.5;
constexpr double kMatrixFactor = 0.5;
constexpr double kLayerScale = 0.8;  // of the stream behind a layer of gemma4

// Of the state of a delta net or of Mamba-2 about a tenth a token: it remembers as many tokens as a
// test has.
constexpr double kDecay = -0.15;
constexpr double kDecayDeviation = 0.03;

class TensorList {
 public:
  TensorList(const ModelShape& shape, const SynthLayout& layout)
      : shape_(shape), mix_(layout.mix) {}

  void set_layer(std::uint32_t layer) { prefix_ = fmt::format("blk.{}.", layer); }

  bool Is(std::initializer_list<Architecture> families) const {
    return std::ranges::find(families, shape_.architecture) != families.end();
  }

  void Norm(std::string_view name, std::uint64_t n) {
    Add(fmt::format("{}.weight", name), {n}, 1.0, kNormDeviation);
  }
  void Bias(std::string_view name, std::uint64_t n) {
    Add(fmt::format("{}.bias", name), {n}, 0.0, kBiasDeviation);
  }
  // Whether a feed-forward has a second product, which the first one gates.
  bool HasGate() const { return shape_.blocks.empty(); }
  double DownGain() const {
    if (!HasGate()) return kSquaredDownGain;
    return shape_.architecture == Architecture::kGptOss ? kClampedDownGain : kDownGain;
  }
  // `inputs`: how many products an output sums, where that is not the first dimension.
  void Weight(std::string_view name, std::initializer_list<std::uint64_t> dims, double gain = 1.0,
              std::uint64_t inputs = 0) {
    if (inputs == 0) inputs = *dims.begin();
    const double deviation = gain / std::sqrt(static_cast<double>(inputs));
    const TensorSpec spec(fmt::format("{}.weight", name), TensorType::kF32, dims);
    // llama.cpp reads one of the output in NVFP4 alone.
    if (!shape_.matrix_factors || !IsQuantizable(spec) || name == "output") {
      Add(spec.name, dims, 0.0, deviation);
      return;
    }
    Add(spec.name, dims, 0.0, deviation / kMatrixFactor);
    Add(fmt::format("{}.scale", name), {spec.MatrixCount()}, kMatrixFactor, kNormDeviation);
  }
  void Add(std::string name, std::initializer_list<std::uint64_t> dims, double mean,
           double deviation) {
    TensorSpec spec(prefix_ + std::move(name), TensorType::kF32, dims);
    if (IsQuantizable(spec)) spec.type = mix_.TypeFor(spec);
    tensors_.push_back({std::move(spec), mean, deviation});
  }

  const ModelShape& shape() const { return shape_; }
  std::vector<SynthTensor> Take() { return std::move(tensors_); }

 private:
  const ModelShape& shape_;
  const TensorMix& mix_;
  std::string prefix_;
  std::vector<SynthTensor> tensors_;
};

// What the family multiplies embeddings with, beside what the shape says.
double EmbeddingScale(const ModelShape& shape) {
  return shape.architecture == Architecture::kGemma4 ? std::sqrt(shape.width) : 1.0;
}

void AddEnds(TensorList& list) {
  const ModelShape& shape = list.shape();
  const std::uint64_t d = shape.width;
  // An embedding that is the output too must be small, or every token would predict itself.
  const double deviation =
      shape.tied_embedding ? kOutputGain / std::sqrt(shape.width) : kEmbeddingDeviation;
  // A family's scales leave the proportions of stream, blocks and logits as they are elsewhere.
  const ScalesShape scales = shape.scales.value_or(ScalesShape());
  list.Add("token_embd.weight", {d, shape.vocabulary}, 0.0,
           deviation * scales.residual / scales.embedding / EmbeddingScale(shape));
  list.Norm(list.Is({Architecture::kLfm2Moe}) ? "token_embd_norm" : "output_norm", d);
  if (!shape.tied_embedding) {
    list.Weight("output", {d, shape.vocabulary}, kOutputGain * scales.logits);
  }
}

void AddAttention(TensorList& list) {
  const ModelShape& shape = list.shape();
  const std::uint64_t d = shape.width;
  const std::uint64_t q = std::uint64_t{shape.heads} * shape.head_dim;
  const std::uint64_t gates = shape.delta ? q : 0;
  const std::uint64_t kv = std::uint64_t{shape.kv_heads} * shape.head_dim;
  if (list.Is({Architecture::kBailingMoe2})) {
    list.Weight("attn_qkv", {d, q + 2 * kv});
  } else {
    list.Weight("attn_q", {d, q + gates}, kScoreGain);
    list.Weight("attn_k", {d, kv});
    list.Weight("attn_v", {d, kv});
  }
  if (shape.qkv_bias) {
    list.Bias("attn_q", q);
    list.Bias("attn_k", kv);
    list.Bias("attn_v", kv);
  }
  if (list.Is({Architecture::kOlmoe, Architecture::kMinimaxM2})) {
    list.Norm("attn_q_norm", q);
    list.Norm("attn_k_norm", kv);
  }
  if (list.Is({Architecture::kQwen3Moe, Architecture::kLfm2Moe, Architecture::kQwen3VlMoe,
               Architecture::kDots1, Architecture::kHunyuanMoe, Architecture::kBailingMoe2}) ||
      shape.delta || shape.head_norms) {
    list.Norm("attn_q_norm", shape.head_dim);
    list.Norm("attn_k_norm", shape.head_dim);
  }
  list.Weight("attn_output", {q, d});
  if (shape.architecture == Architecture::kGptOss) {
    list.Bias("attn_output", d);
    list.Add("attn_sinks.weight", {shape.heads}, 0.0, kSinkDeviation);
  }
}

// Without a scale on scores, which the norm of keys has; values are what keys are made of in layers
// that see everything.
void AddGemmaAttention(TensorList& list, std::uint32_t layer) {
  const ModelShape& shape = list.shape();
  const bool full = shape.window_heads->IsFull(layer);
  const std::uint64_t d = shape.width;
  const std::uint64_t dim = full ? shape.head_dim : shape.window_heads->head_dim;
  const std::uint64_t kv = dim * (full ? shape.kv_heads : shape.window_heads->kv_heads);
  list.Weight("attn_q", {d, shape.heads * dim});
  list.Weight("attn_k", {d, kv});
  if (!full) list.Weight("attn_v", {d, kv});
  list.Norm("attn_q_norm", dim);
  const double mean = kScoreGain / std::sqrt(static_cast<double>(dim));
  list.Add("attn_k_norm.weight", {dim}, mean, kNormDeviation * mean);
  list.Weight("attn_output", {shape.heads * dim, d});
  list.Norm("post_attention_norm", d);
}

void AddDeltaNet(TensorList& list) {
  const ModelShape& shape = list.shape();
  const DeltaNetShape& delta = *shape.delta;
  const std::uint64_t d = shape.width, heads = delta.value_heads;
  const std::uint64_t values = heads * delta.head_dim;
  const std::uint64_t channels = 2 * delta.key_heads * delta.head_dim + values;
  list.Weight("attn_qkv", {d, channels});
  list.Weight("attn_gate", {d, values});
  if (shape.architecture == Architecture::kQwen3Next) {
    list.Weight("ssm_ba", {d, 2 * heads});
  } else {
    list.Weight("ssm_alpha", {d, heads});
    list.Weight("ssm_beta", {d, heads});
  }
  list.Weight("ssm_conv1d", {delta.taps, channels});
  list.Bias("ssm_dt", heads);
  list.Add("ssm_a", {heads}, kDecay, kDecayDeviation);
  list.Norm("ssm_norm", delta.head_dim);
  list.Weight("ssm_out", {values, d});
}

void AddStateSpace(TensorList& list) {
  const StateSpaceShape& space = *list.shape().space;
  const std::uint64_t d = list.shape().width, heads = space.heads;
  const std::uint64_t values = heads * space.head_dim;
  const std::uint64_t channels = values + 2 * space.groups * space.key_dim;
  list.Weight("ssm_in", {d, values + channels + heads});
  list.Weight("ssm_conv1d", {space.taps, channels});
  list.Bias("ssm_conv1d", channels);
  list.Bias("ssm_dt", heads);
  list.Add("ssm_a", {1, heads}, kDecay, kDecayDeviation);
  list.Add("ssm_d", {1, heads}, 1.0, kBiasDeviation);
  list.Add("ssm_norm.weight", {values / space.groups, space.groups}, 1.0, kNormDeviation);
  list.Weight("ssm_out", {values, d});
}

void AddShortConv(TensorList& list) {
  const std::uint64_t d = list.shape().width, taps = list.shape().short_conv->taps;
  list.Weight("shortconv.in_proj", {d, 3 * d});
  list.Weight("shortconv.conv", {taps, d});
  list.Weight("shortconv.out_proj", {d, d});
}

bool HasShortConv(const ModelShape& shape, std::uint32_t layer) {
  return shape.short_conv && std::ranges::count(shape.short_conv->attention_layers, layer) == 0;
}

bool HasStateSpace(const ModelShape& shape, std::uint32_t layer) {
  return shape.space && std::ranges::count(shape.space->attention_layers, layer) == 0;
}

void AddMla(TensorList& list, bool combined_kv) {
  const ModelShape& shape = list.shape();
  const MlaConfig& mla = *shape.mla;
  const std::uint64_t d = shape.width, heads = shape.heads, rank = mla.kv_rank;
  const std::uint64_t q = heads * (mla.nope_dim + mla.rope_dim);
  if (mla.q_rank > 0) {
    list.Weight("attn_q_a", {d, mla.q_rank});
    list.Norm("attn_q_a_norm", mla.q_rank);
    list.Weight("attn_q_b", {mla.q_rank, q}, kScoreGain);
  } else {
    list.Weight("attn_q", {d, q}, kScoreGain);
  }
  list.Weight("attn_kv_a_mqa", {d, rank + mla.rope_dim});
  list.Norm("attn_kv_a_norm", rank);
  if (combined_kv) {
    list.Weight("attn_kv_b", {rank, heads * (mla.nope_dim + mla.value_dim)});
  } else {
    // Stored transposed: as applied to a query it sums nope_dim products, but it is the matrix that
    // makes keys of latent rows.
    list.Weight("attn_k_b", {mla.nope_dim, rank, heads}, 1.0, rank);
    list.Weight("attn_v_b", {rank, mla.value_dim, heads});
  }
  list.Weight("attn_output", {heads * mla.value_dim, d});
}

void AddDenseFeedForward(TensorList& list, std::uint64_t ff) {
  const std::uint64_t d = list.shape().width;
  if (list.HasGate()) list.Weight("ffn_gate", {d, ff});
  list.Weight("ffn_up", {d, ff});
  list.Weight("ffn_down", {ff, d}, list.DownGain());
}

void AddExperts(TensorList& list) {
  const ModelShape& shape = list.shape();
  const ExpertsShape& experts = *shape.experts;
  const std::uint64_t d = shape.width, ff = experts.ff, shared = experts.shared_ff;
  list.Weight("ffn_gate_inp", {d, experts.count}, kRouterGain);
  if (experts.selection_bias) list.Bias("exp_probs_b", experts.count);
  const bool clamped = shape.architecture == Architecture::kGptOss;
  const double gain = clamped ? kClampedGain : 1.0;
  if (list.HasGate()) list.Weight("ffn_gate_exps", {d, ff, experts.count}, gain);
  list.Weight("ffn_up_exps", {d, ff, experts.count}, gain);
  list.Weight("ffn_down_exps", {ff, d, experts.count}, list.DownGain());
  if (clamped) {
    list.Bias("ffn_gate_inp", experts.count);
    list.Add("ffn_gate_exps.bias", {ff, experts.count}, 0.0, kBiasDeviation);
    list.Add("ffn_up_exps.bias", {ff, experts.count}, 0.0, kBiasDeviation);
    list.Add("ffn_down_exps.bias", {d, experts.count}, 0.0, kBiasDeviation);
  }
  if (shared == 0) return;
  if (shape.architecture == Architecture::kQwen2Moe || shape.delta) {
    list.Weight("ffn_gate_inp_shexp", {d});
  }
  if (list.HasGate()) list.Weight("ffn_gate_shexp", {d, shared});
  list.Weight("ffn_up_shexp", {d, shared});
  list.Weight("ffn_down_shexp", {shared, d}, list.DownGain());
}

void AddGemmaFeedForward(TensorList& list) {
  const ModelShape& shape = list.shape();
  const std::uint64_t d = shape.width;
  list.Norm("ffn_norm", d);
  AddDenseFeedForward(list, shape.dense_ff);
  list.Norm("post_ffw_norm", d);
  list.Add("layer_output_scale.weight", {1}, kLayerScale, kNormDeviation);
  if (!shape.experts) return;
  const ExpertsShape& experts = *shape.experts;
  // The family divides the router's input by the square root of its length.
  list.Weight("ffn_gate_inp", {d, experts.count}, kRouterGain * std::sqrt(shape.width));
  list.Add("ffn_gate_inp.scale", {d}, 1.0, kNormDeviation);
  list.Add("pre_ffw_norm_2.weight", {d}, 1.0, kNormDeviation);
  list.Add("post_ffw_norm_1.weight", {d}, 1.0, kNormDeviation);
  list.Add("post_ffw_norm_2.weight", {d}, 1.0, kNormDeviation);
  list.Weight("ffn_gate_up_exps", {d, 2 * experts.ff, experts.count});
  list.Weight("ffn_down_exps", {experts.ff, d, experts.count}, kDownGain);
  list.Add("ffn_down_exps.scale", {experts.count}, 1.0, kBiasDeviation);
}

void AddFeedForwardNorm(TensorList& list) {
  const bool late = list.shape().delta || list.Is({Architecture::kGptOss, Architecture::kGlm4Moe});
  list.Norm(late ? "post_attention_norm" : "ffn_norm", list.shape().width);
}

void AddFeedForward(TensorList& list, std::uint32_t layer) {
  const ModelShape& shape = list.shape();
  if (list.Is({Architecture::kGemma4})) {
    AddGemmaFeedForward(list);
    return;
  }
  AddFeedForwardNorm(list);
  if (shape.experts && layer >= shape.experts->leading_dense) {
    AddExperts(list);
  } else {
    AddDenseFeedForward(list, shape.dense_ff);
  }
}

void AddBlock(TensorList& list, char part) {
  if (part == 'M') {
    AddStateSpace(list);
  } else if (part == '*') {
    AddAttention(list);
  } else if (part == 'E') {
    AddExperts(list);
  } else {
    AddDenseFeedForward(list, list.shape().dense_ff);
  }
}

// Layers that see the stream behind the last one beside the embedding of the next token.
void AddNextTokenLayer(TensorList& list, std::uint32_t layer) {
  const std::uint64_t d = list.shape().width;
  list.set_layer(layer);
  list.Norm("attn_norm", d);
  AddAttention(list);
  const SmallHeadShape& small = list.shape().small_head;
  if (small.dense_ff > 0) {
    AddFeedForwardNorm(list);
    AddDenseFeedForward(list, small.dense_ff);
  } else {
    AddFeedForward(list, layer);
  }
  if (small.tokens > 0) list.Weight("nextn.shared_head_head", {d, small.tokens}, kOutputGain);
  list.Weight("nextn.eh_proj", {2 * d, d});
  list.Norm("nextn.enorm", d);
  list.Norm("nextn.hnorm", d);
  list.Norm("nextn.shared_head_norm", d);
  if (list.Is({Architecture::kBailingMoe2})) list.Norm("layer_output_norm", d);
}

void SetTypes(UploadMix mix, std::vector<SynthTensor>& tensors) {
  std::vector<TensorSpec> specs;
  for (const SynthTensor& tensor : tensors) specs.push_back(tensor.spec);
  const std::vector<TensorType> types = TypesOf(mix, specs);
  for (std::size_t i = 0; i < tensors.size(); ++i) tensors[i].spec.type = types[i];
}

}  // namespace

std::vector<SynthTensor> TensorsOf(const ModelShape& shape, const SynthLayout& layout) {
  TensorList list(shape, layout);
  AddEnds(list);
  if (shape.window_heads) {
    list.Add("rope_freqs.weight", {shape.head_dim / 2}, 1.0, kNormDeviation);
  }
  for (std::uint32_t layer = 0; layer < shape.layers; ++layer) {
    list.set_layer(layer);
    list.Norm("attn_norm", shape.width);
    if (!shape.blocks.empty()) {
      AddBlock(list, shape.blocks[layer]);
      continue;
    }
    if (shape.delta && (layer + 1) % shape.delta->attention_every != 0) {
      AddDeltaNet(list);
    } else if (HasShortConv(shape, layer)) {
      AddShortConv(list);
    } else if (HasStateSpace(shape, layer)) {
      AddStateSpace(list);
    } else if (shape.window_heads) {
      AddGemmaAttention(list, layer);
    } else if (shape.mla) {
      AddMla(list, layout.combined_kv);
    } else {
      AddAttention(list);
    }
    AddFeedForward(list, layer);
  }
  for (std::uint32_t i = 0; i < shape.next_token_layers; ++i) {
    AddNextTokenLayer(list, shape.layers + i);
  }
  std::vector<SynthTensor> tensors = list.Take();
  if (layout.upload) SetTypes(*layout.upload, tensors);
  return tensors;
}

}  // namespace troupe
