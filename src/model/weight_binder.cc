#include "model/weight_binder.h"

#include <algorithm>
#include <iterator>

namespace troupe {
namespace {

// Panels start on cache lines; the reads of AVX-512 then never straddle two.
constexpr std::uint64_t kRegionAlignment = 64;

// Tensors that old converters wrote and nobody reads: the engine computes what they hold.
bool IsIgnorable(std::string_view name) { return name.ends_with(".attn_rot_embd"); }

// What files of NVFP4 may have beside a tensor: a factor of each matrix in it, and one that cards
// which multiply 4 bits by 4 bits bring the activations to. The second has no part in products by 8
// bits; llama.cpp's processors leave it out, too.
constexpr std::string_view kMatrixScale = ".scale", kInputScale = ".input_scale";

bool IsFactorOf(const TensorInfo& scale, const TensorInfo& tensor) {
  return scale.dims[0] == tensor.MatrixCount() && scale.ElementCount() == scale.dims[0];
}

std::string MatrixOf(std::string_view name, std::string_view ending) {
  if (!name.ends_with(ending)) return {};
  return fmt::format("{}.weight", name.substr(0, name.size() - ending.size()));
}

// Of a layer that guesses a further token: attention and experts as in the others, or a dense block
// in place of these, and what joins the stream with the token before.
constexpr std::string_view kOfNextTokens[] = {"attn_norm.weight",
                                              "attn_qkv.weight",
                                              "attn_q.weight",
                                              "attn_k.weight",
                                              "attn_v.weight",
                                              "attn_q.bias",
                                              "attn_k.bias",
                                              "attn_v.bias",
                                              "attn_q_norm.weight",
                                              "attn_k_norm.weight",
                                              "attn_output.weight",
                                              "post_attention_norm.weight",
                                              "ffn_norm.weight",
                                              "layer_output_norm.weight",
                                              "ffn_gate_inp.weight",
                                              "exp_probs_b.bias",
                                              "ffn_gate.weight",
                                              "ffn_up.weight",
                                              "ffn_down.weight",
                                              "ffn_gate_exps.weight",
                                              "ffn_up_exps.weight",
                                              "ffn_down_exps.weight",
                                              "ffn_gate_shexp.weight",
                                              "ffn_up_shexp.weight",
                                              "ffn_down_shexp.weight",
                                              "ffn_gate_inp_shexp.weight",
                                              "nextn.eh_proj.weight",
                                              "nextn.enorm.weight",
                                              "nextn.hnorm.weight",
                                              "nextn.embed_tokens.weight",
                                              "nextn.shared_head_norm.weight",
                                              "nextn.shared_head_head.weight"};

}  // namespace

WeightBinder::WeightBinder(const GgufModel& file, const ModelConfig& config, LayerRange layers,
                           RoutedExperts experts, std::span<std::byte> buffer)
    : file_(file),
      config_(config),
      layers_(layers),
      experts_(experts),
      buffer_(buffer),
      expert_layouts_(config.layers) {}

template <typename F>
auto WeightBinder::PlacingIf(bool wanted, F&& bind) {
  const std::size_t jobs = jobs_.size();
  placing_ = wanted;
  auto bound = bind();
  placing_ = true;
  if (!wanted) jobs_.resize(jobs);
  return bound;
}

std::byte* WeightBinder::Take(std::uint64_t bytes) {
  if (!placing_) return nullptr;
  const std::uint64_t begin = AlignUp(used_, kRegionAlignment);
  used_ = begin + bytes;
  if (buffer_.empty()) return nullptr;
  TROUPE_CHECK(used_ <= buffer_.size());
  return buffer_.data() + begin;
}

const TensorInfo* WeightBinder::Find(const std::string& name) {
  const TensorInfo* tensor = file_.Find(name);
  if (tensor != nullptr) bound_.insert(name);
  return tensor;
}

Status WeightBinder::CheckShape(const TensorInfo& tensor, const Shape& shape) const {
  const std::array<std::uint64_t, kMaxTensorRank> expected = {shape.cols, shape.rows,
                                                              shape.matrices, 1};
  if (tensor.dims == expected) return OkStatus();
  TensorSpec wanted = tensor;
  wanted.dims = expected;
  wanted.rank = shape.matrices > 1 ? 3 : shape.rows > 1 ? 2 : 1;
  return InvalidArgument("{}: tensor '{}' has shape {}, expected {}", file_.path(), tensor.name,
                         DescribeShape(tensor), DescribeShape(wanted));
}

Result<const TensorInfo*> WeightBinder::Require(const std::string& name, const Shape& shape) {
  const TensorInfo* tensor = Find(name);
  if (tensor == nullptr) {
    return InvalidArgument("{}: tensor '{}' is missing, which architecture {} needs", file_.path(),
                           name, Name(config_.architecture));
  }
  TROUPE_RETURN_IF_ERROR(CheckShape(*tensor, shape));
  return tensor;
}

// Once, though the parts of a matrix may be asked for one by one.
const float* WeightBinder::FactorsOf(const TensorInfo& tensor) {
  constexpr std::string_view kWeight = ".weight", kEmbedding = "token_embd.weight";
  if (!tensor.name.ends_with(kWeight) || tensor.name == kEmbedding) return nullptr;
  const std::string name =
      tensor.name.substr(0, tensor.name.size() - kWeight.size()) + std::string(kMatrixScale);
  const TensorInfo* const scale = file_.Find(name);
  // What does not fit is left over, and refused there; gemma4 calls the norm of the router's inputs
  // so.
  if (scale == nullptr || !IsFactorOf(*scale, tensor)) return nullptr;
  if (!factors_.contains(name)) factors_[name] = Vector(name, tensor.MatrixCount()).value();
  return factors_[name];
}

PanelMatrix WeightBinder::Panels(const TensorInfo& tensor, std::uint64_t first_row,
                                 std::uint64_t rows) {
  const std::uint64_t cols = tensor.dims[0];
  std::byte* target = Take(PanelBytes(tensor.type, rows, cols));
  jobs_.push_back({.tensor = &tensor,
                   .offset = first_row * RowBytes(tensor.type, cols).count(),
                   .rows = rows,
                   .cols = cols,
                   .form = LoadJob::Form::kPanels,
                   .target = target});
  return {.type = tensor.type,
          .rows = rows,
          .cols = cols,
          .data = target,
          .factor = tensor.MatrixCount() == 1 ? FactorsOf(tensor) : nullptr};
}

Result<PanelMatrix> WeightBinder::Matrix(const std::string& name, std::uint64_t cols,
                                         std::uint64_t rows) {
  TROUPE_ASSIGN_OR_RETURN(const TensorInfo* tensor, Require(name, {.cols = cols, .rows = rows}));
  return Panels(*tensor, 0, rows);
}

Result<const float*> WeightBinder::Vector(const std::string& name, std::uint64_t length,
                                          float factor) {
  TROUPE_ASSIGN_OR_RETURN(const float* const floats, Floats(name, {.cols = length}));
  jobs_.back().factor = factor;
  return floats;
}

Result<const float*> WeightBinder::Floats(const std::string& name, const Shape& shape) {
  TROUPE_ASSIGN_OR_RETURN(const TensorInfo* tensor, Require(name, shape));
  const std::uint64_t count = shape.cols * shape.rows;
  std::byte* target = Take(count * sizeof(float));
  jobs_.push_back({.tensor = tensor,
                   .rows = 1,
                   .cols = count,
                   .form = LoadJob::Form::kFloats,
                   .target = target});
  return reinterpret_cast<const float*>(target);
}

Result<const float*> WeightBinder::Columns(const std::string& name, std::uint64_t cols,
                                           std::uint64_t rows) {
  TROUPE_ASSIGN_OR_RETURN(const TensorInfo* tensor, Require(name, {.cols = cols, .rows = rows}));
  std::byte* target = Take(cols * rows * sizeof(float));
  jobs_.push_back({.tensor = tensor,
                   .rows = rows,
                   .cols = cols,
                   .form = LoadJob::Form::kColumns,
                   .target = target});
  return reinterpret_cast<const float*>(target);
}

Result<const float*> WeightBinder::OptionalVector(const std::string& name, std::uint64_t length) {
  if (file_.Find(name) == nullptr) return nullptr;
  return Vector(name, length);
}

Result<Linear> WeightBinder::BindLinear(const std::string& prefix, std::uint64_t cols,
                                        std::uint64_t rows, Bias bias) {
  Linear linear;
  TROUPE_ASSIGN_OR_RETURN(linear.weight, Matrix(prefix + ".weight", cols, rows));
  const std::string name = prefix + ".bias";
  TROUPE_ASSIGN_OR_RETURN(
      linear.bias, bias == Bias::kRequired ? Vector(name, rows) : OptionalVector(name, rows));
  return linear;
}

Result<Mlp> WeightBinder::BindMlp(const std::string& prefix, const std::string& suffix,
                                  std::uint64_t width, std::uint64_t ff) {
  Mlp mlp{.form = config_.form};
  if (TakesUp(mlp.form)) {
    TROUPE_ASSIGN_OR_RETURN(mlp.gate, Matrix(prefix + "ffn_gate" + suffix, width, ff));
    TROUPE_ASSIGN_OR_RETURN(mlp.up, Matrix(prefix + "ffn_up" + suffix, width, ff));
  } else {  // files call the only one so
    TROUPE_ASSIGN_OR_RETURN(mlp.gate, Matrix(prefix + "ffn_up" + suffix, width, ff));
  }
  TROUPE_ASSIGN_OR_RETURN(mlp.down, Matrix(prefix + "ffn_down" + suffix, ff, width));
  return mlp;
}

Result<const float*> WeightBinder::AnswerNorm(const std::string& name) {
  if (!config_.answers_normed) return nullptr;
  return Vector(name, config_.width);
}

// The rows of one matrix: those of queries, of keys, and of values.
Status WeightBinder::BindFusedHeads(const std::string& prefix, std::uint64_t q_rows,
                                    std::uint64_t k_rows, std::uint64_t v_rows,
                                    AttentionWeights& w) {
  TROUPE_ASSIGN_OR_RETURN(const TensorInfo* all,
                          Require(prefix + "attn_qkv.weight",
                                  {.cols = config_.width, .rows = q_rows + k_rows + v_rows}));
  w.q.weight = Panels(*all, 0, q_rows);
  w.k.weight = Panels(*all, q_rows, k_rows);
  w.v.weight = Panels(*all, q_rows + k_rows, v_rows);
  return OkStatus();
}

Result<AttentionWeights> WeightBinder::BindAttention(std::uint32_t layer,
                                                     const std::string& prefix) {
  const AttentionConfig& a = config_.AttentionOf(layer);
  AttentionWeights w;
  TROUPE_ASSIGN_OR_RETURN(w.norm, Vector(prefix + "attn_norm.weight", config_.width));
  const std::uint64_t q_rows = std::uint64_t{a.heads} * a.key_dim * (a.gated ? 2 : 1);
  const std::uint64_t k_rows = std::uint64_t{a.kv_heads} * a.key_dim;
  const std::uint64_t v_rows = std::uint64_t{a.kv_heads} * a.value_dim;
  const Bias bias = a.biases ? Bias::kRequired : Bias::kOptional;
  if (a.fused) {
    TROUPE_RETURN_IF_ERROR(BindFusedHeads(prefix, q_rows, k_rows, v_rows, w));
  } else {
    TROUPE_ASSIGN_OR_RETURN(w.q, BindLinear(prefix + "attn_q", config_.width, q_rows, bias));
    TROUPE_ASSIGN_OR_RETURN(w.k, BindLinear(prefix + "attn_k", config_.width, k_rows, bias));
    // Values that are what keys are made of have no matrix.
    const bool may_lack_values = a.values_normed && !config_.HasWindow(layer) && k_rows == v_rows;
    const bool has_values = !may_lack_values || file_.Find(prefix + "attn_v.weight") != nullptr;
    if (has_values) {
      TROUPE_ASSIGN_OR_RETURN(w.v, BindLinear(prefix + "attn_v", config_.width, v_rows, bias));
    }
  }
  TROUPE_ASSIGN_OR_RETURN(
      w.out, BindLinear(prefix + "attn_output", std::uint64_t{a.heads} * a.value_dim, config_.width,
                        bias));
  TROUPE_ASSIGN_OR_RETURN(w.answer_norm, AnswerNorm(prefix + "post_attention_norm.weight"));
  if (a.sinks) {
    TROUPE_ASSIGN_OR_RETURN(w.sinks, Vector(prefix + "attn_sinks.weight", a.heads));
  }
  // The first layer's tells for all whether there are any.
  const bool lacks_norms =
      a.qk_norm == QkNorm::kPerHeadIfThere && file_.Find("blk.0.attn_q_norm.weight") == nullptr;
  if (a.qk_norm != QkNorm::kNone && !lacks_norms) {
    const bool whole = a.qk_norm == QkNorm::kWhole;
    TROUPE_ASSIGN_OR_RETURN(w.q_norm,
                            Vector(prefix + "attn_q_norm.weight", whole ? q_rows : a.key_dim));
    TROUPE_ASSIGN_OR_RETURN(w.k_norm,
                            Vector(prefix + "attn_k_norm.weight", whole ? k_rows : a.key_dim));
  }
  return w;
}

Status WeightBinder::BindLatentUps(const std::string& prefix, MlaWeights& w) {
  const MlaConfig& mla = *config_.attention.mla;
  const std::uint64_t heads = config_.attention.heads;
  if (const TensorInfo* both = Find(prefix + "attn_kv_b.weight")) {
    // The decompressing form of older files: per head nope_dim rows for keys, value_dim for values.
    // Absorbing needs the keys' part transposed, and blocks cannot be transposed: it becomes F32,
    // which loses nothing.
    const std::uint64_t per_head = mla.nope_dim + mla.value_dim;
    TROUPE_RETURN_IF_ERROR(CheckShape(*both, {.cols = mla.kv_rank, .rows = heads * per_head}));
    const std::uint64_t row_bytes = RowBytes(both->type, mla.kv_rank).count();
    for (std::uint64_t h = 0; h < heads; ++h) {
      std::byte* target = Take(PanelBytes(TensorType::kF32, mla.kv_rank, mla.nope_dim));
      jobs_.push_back({.tensor = both,
                       .offset = h * per_head * row_bytes,
                       .rows = mla.nope_dim,
                       .cols = mla.kv_rank,
                       .form = LoadJob::Form::kTransposed,
                       .target = target});
      w.k_up.push_back(
          {.type = TensorType::kF32, .rows = mla.kv_rank, .cols = mla.nope_dim, .data = target});
      w.v_up.push_back(Panels(*both, h * per_head + mla.nope_dim, mla.value_dim));
    }
    return OkStatus();
  }
  TROUPE_ASSIGN_OR_RETURN(const TensorInfo* k_up,
                          Require(prefix + "attn_k_b.weight",
                                  {.cols = mla.nope_dim, .rows = mla.kv_rank, .matrices = heads}));
  TROUPE_ASSIGN_OR_RETURN(const TensorInfo* v_up,
                          Require(prefix + "attn_v_b.weight",
                                  {.cols = mla.kv_rank, .rows = mla.value_dim, .matrices = heads}));
  for (std::uint64_t h = 0; h < heads; ++h) {
    w.k_up.push_back(Panels(*k_up, h * mla.kv_rank, mla.kv_rank));
    w.v_up.push_back(Panels(*v_up, h * mla.value_dim, mla.value_dim));
  }
  return OkStatus();
}

Result<MlaWeights> WeightBinder::BindMla(const std::string& prefix) {
  const MlaConfig& mla = *config_.attention.mla;
  const std::uint64_t heads = config_.attention.heads;
  const std::uint64_t q_rows = heads * (mla.nope_dim + mla.rope_dim);
  MlaWeights w;
  TROUPE_ASSIGN_OR_RETURN(w.norm, Vector(prefix + "attn_norm.weight", config_.width));
  if (mla.q_rank > 0) {
    TROUPE_ASSIGN_OR_RETURN(w.q_down,
                            Matrix(prefix + "attn_q_a.weight", config_.width, mla.q_rank));
    TROUPE_ASSIGN_OR_RETURN(w.q_down_norm, Vector(prefix + "attn_q_a_norm.weight", mla.q_rank));
    TROUPE_ASSIGN_OR_RETURN(w.q, BindLinear(prefix + "attn_q_b", mla.q_rank, q_rows));
  } else {
    TROUPE_ASSIGN_OR_RETURN(w.q, BindLinear(prefix + "attn_q", config_.width, q_rows));
  }
  TROUPE_ASSIGN_OR_RETURN(w.kv_down, Matrix(prefix + "attn_kv_a_mqa.weight", config_.width,
                                            mla.kv_rank + mla.rope_dim));
  TROUPE_ASSIGN_OR_RETURN(w.kv_down_norm, Vector(prefix + "attn_kv_a_norm.weight", mla.kv_rank));
  TROUPE_RETURN_IF_ERROR(BindLatentUps(prefix, w));
  TROUPE_ASSIGN_OR_RETURN(w.out,
                          BindLinear(prefix + "attn_output", heads * mla.value_dim, config_.width));
  return w;
}

std::string WeightBinder::PrefixOf(std::uint32_t layer, LayerPart part) const {
  std::uint32_t block = config_.next_token_block.value_or(layer);
  if (!config_.blocks.empty()) block = *(config_.blocks[layer].*part);
  return fmt::format("blk.{}.", block);
}

Status WeightBinder::BindMixers(std::uint32_t layer, LayerWeights& w) {
  if (config_.IsRecurrent(layer)) {
    TROUPE_RETURN_IF_ERROR(BindRecurrent(PrefixOf(layer, &LayerBlocks::recurrent), w));
  }
  if (!config_.HasAttention(layer)) return OkStatus();
  const std::string prefix = PrefixOf(layer, &LayerBlocks::attention);
  if (config_.attention.mla) {
    TROUPE_ASSIGN_OR_RETURN(w.mla, BindMla(prefix));
  } else {
    TROUPE_ASSIGN_OR_RETURN(w.attention, BindAttention(layer, prefix));
  }
  if (config_.IsDecoder(layer)) {
    TROUPE_ASSIGN_OR_RETURN(w.cross, BindCross(prefix));
  }
  return OkStatus();
}

Result<LayerWeights> WeightBinder::BindLayer(std::uint32_t layer) {
  LayerWeights w;
  TROUPE_RETURN_IF_ERROR(BindMixers(layer, w));
  if (!config_.HasFeedForward(layer)) return w;
  const std::string prefix = PrefixOf(layer, &LayerBlocks::feed_forward);
  TROUPE_ASSIGN_OR_RETURN(
      w.ffn_norm, Vector(fmt::format("{}{}.weight", prefix, config_.ffn_norm), config_.width));
  TROUPE_ASSIGN_OR_RETURN(w.ffn_answer_norm, AnswerNorm(prefix + "post_ffw_norm.weight"));
  TROUPE_ASSIGN_OR_RETURN(w.output_scale, OptionalVector(prefix + "layer_output_scale.weight", 1));
  if (config_.IsMoeLayer(layer)) {
    TROUPE_ASSIGN_OR_RETURN(w.moe, BindMoe(layer, prefix));
  } else {
    TROUPE_ASSIGN_OR_RETURN(w.dense, BindMlp(prefix, ".weight", config_.width, config_.dense_ff));
  }
  return w;
}

Status WeightBinder::BindEnds(ModelWeights& w) {
  const bool first = layers_.first == 0, last = layers_.end == config_.layers;
  const bool tied = file_.Find("output.weight") == nullptr;
  TROUPE_ASSIGN_OR_RETURN(w.embedding, PlacingIf(first || (last && tied), [&] {
                            return Matrix("token_embd.weight", config_.width, config_.vocabulary);
                          }));
  TROUPE_ASSIGN_OR_RETURN(w.output_norm, PlacingIf(last, [&] {
                            return Vector(fmt::format("{}.weight", config_.output_norm),
                                          config_.width);
                          }));
  if (tied) {
    w.output = w.embedding;
  } else {
    TROUPE_ASSIGN_OR_RETURN(w.output, PlacingIf(last, [&] {
                              return Matrix("output.weight", config_.width, config_.vocabulary);
                            }));
  }
  const TensorInfo* const factors = Find("rope_freqs.weight");
  if (factors != nullptr && config_.rope.dims > 0) {
    TROUPE_RETURN_IF_ERROR(CheckShape(*factors, {.cols = config_.rope.dims / 2}));
    if (factors->type != TensorType::kF32) {
      return InvalidArgument("{}: tensor '{}' has type {}, expected F32", file_.path(),
                             factors->name, Name(factors->type));
    }
    w.rope_freq_factors.resize(config_.rope.dims / 2);
    TROUPE_RETURN_IF_ERROR(
        file_.ReadTensor(*factors, std::as_writable_bytes(std::span(w.rope_freq_factors))));
  }
  return OkStatus();
}

bool WeightBinder::IsOfNextTokens(std::string_view name) const {
  for (std::uint32_t i = 0; i < config_.next_token_layers; ++i) {
    const std::string prefix = fmt::format("blk.{}.", config_.FileBlocks() + i);
    if (!name.starts_with(prefix)) continue;
    const std::string_view rest = name.substr(prefix.size());
    return std::ranges::find(kOfNextTokens, rest) != std::end(kOfNextTokens);
  }
  return false;
}

Status WeightBinder::CheckNothingLeftOver() const {
  for (const TensorInfo& tensor : file_.tensors()) {
    if (bound_.contains(tensor.name) || IsIgnorable(tensor.name)) continue;
    if (IsOfNextTokens(tensor.name)) continue;
    if (bound_.contains(MatrixOf(tensor.name, kInputScale))) continue;
    const std::string matrix = MatrixOf(tensor.name, kMatrixScale);
    if (IsOfNextTokens(matrix) || IsOfNextTokens(MatrixOf(tensor.name, kInputScale))) continue;
    if (bound_.contains(matrix)) {
      return Error(Code::kUnimplemented,
                   "{}: tensor '{}' has shape {}, and '{}' can have no such factor here",
                   file_.path(), tensor.name, DescribeShape(tensor), matrix);
    }
    return Error(Code::kUnimplemented,
                 "{}: tensor '{}' is none that architecture {} has here; answers without it would "
                 "be wrong",
                 file_.path(), tensor.name, Name(config_.architecture));
  }
  return OkStatus();
}

Result<ModelWeights> WeightBinder::Bind() {
  if (config_.next_token_block) return BindNextTokenHead();
  ModelWeights weights;
  TROUPE_RETURN_IF_ERROR(BindEnds(weights));
  if (config_.encoder) TROUPE_RETURN_IF_ERROR(BindEncoderEnds(weights));
  weights.layers.reserve(config_.layers);
  for (std::uint32_t layer = 0; layer < config_.layers; ++layer) {
    const bool wanted = layers_.Contains(layer);
    TROUPE_ASSIGN_OR_RETURN(LayerWeights w, PlacingIf(wanted, [&] { return BindLayer(layer); }));
    weights.layers.push_back(wanted ? std::move(w) : LayerWeights());
    if (!wanted) expert_layouts_[layer] = ExpertLayout();
  }
  TROUPE_RETURN_IF_ERROR(CheckNothingLeftOver());
  return weights;
}

}  // namespace troupe
