#include "model/next_token_head.h"

#include <limits>
#include <utility>

#include "base/check.h"
#include "kernels/elementwise.h"
#include "kernels/quantize_activations.h"
#include "kernels/rms_norm.h"
#include "model/weight_loader.h"
#include "quant/panel.h"

namespace troupe {
namespace {

// The layer that the head's model runs; the one before it stands for the whole model.
constexpr LayerRange kHeadLayer = {1, 2};

KvPoolShape KvShapeOf(const NextTokenShape& shape) {
  return {.type = shape.kv_type, .context = shape.context, .sequences = shape.sequences};
}

WorkspaceShape WorkspaceShapeOf(const ModelConfig& head, const NextTokenShape& shape) {
  return {.chunk = NextTokenHead::kMostRows,
          .threads = shape.threads,
          .kv = KvPool::LayoutsFor(head, kHeadLayer, shape.kv_type, shape.context),
          .context = shape.context,
          .layers = kHeadLayer};
}

std::size_t PairFloats(const ModelConfig& head) {
  return NextTokenHead::kMostRows * 2 * head.width;
}
std::size_t PairCodes(const ModelConfig& head) {
  return head.width % kGroupCols == 0 ? ActivationBytes(NextTokenHead::kMostRows, 2 * head.width)
                                      : 0;
}
std::size_t BufferBytes(const ModelConfig& head) {
  return (PairFloats(head) + NextTokenHead::kMostRows * head.width) * sizeof(float) +
         PairCodes(head);
}

using HeadTokens = std::vector<std::int32_t>;

// Those that rows of its output stand for; none: all.
Result<HeadTokens> ListedTokens(const Metadata& metadata, const ModelConfig& config) {
  const std::string key = fmt::format("{}.nextn_tokens", Name(config.architecture));
  HeadTokens tokens;
  if (metadata.Find(key) == nullptr) return tokens;
  TROUPE_ASSIGN_OR_RETURN(const std::vector<std::int64_t> listed, metadata.GetInts(key));
  for (const std::int64_t token : listed) {
    if (token < (tokens.empty() ? 0 : tokens.back() + 1) || token >= config.vocabulary) {
      return metadata.BadValue(key,
                               fmt::format("ascending ids of the {} tokens", config.vocabulary));
    }
    tokens.push_back(static_cast<std::int32_t>(token));
  }
  if (tokens.empty()) return metadata.BadValue(key, "one token at least");
  return tokens;
}

// The same, and as many as the output has rows.
Result<HeadTokens> TokensOfHead(const GgufModel& file, const ModelConfig& config) {
  TROUPE_ASSIGN_OR_RETURN(HeadTokens tokens, ListedTokens(file.metadata(), config));
  const std::string name = fmt::format("blk.{}.nextn.shared_head_head.weight", config.layers);
  const TensorInfo* const output = file.Find(name);
  const std::uint64_t rows = output == nullptr ? config.vocabulary : output->dims[1];
  const std::uint64_t wanted = tokens.empty() ? config.vocabulary : tokens.size();
  if (rows == wanted) return tokens;
  return InvalidArgument("{}: the head's output has {} rows, expected one for each of {} tokens",
                         file.path(), rows, wanted);
}

// The head's own, and the model's where it has none.
ModelWeights WithEnds(ModelWeights head, const ModelWeights& model) {
  if (head.embedding.data == nullptr) head.embedding = model.embedding;
  if (head.output.data == nullptr) head.output = model.output;
  if (head.output_norm == nullptr) head.output_norm = model.output_norm;
  head.rope_freq_factors = model.rope_freq_factors;
  return head;
}

}  // namespace

bool HasNextTokenHead(const GgufModel& file, const ModelConfig& config) {
  return config.next_token_head &&
         file.Find(fmt::format("blk.{}.nextn.eh_proj.weight", config.layers)) != nullptr;
}

ModelConfig NextTokenHeadOf(const GgufModel& file, const ModelConfig& config) {
  ModelConfig head = config;
  head.layers = kHeadLayer.end;
  head.next_token_block = config.layers;
  head.next_token_layers = 0;
  head.next_token_head = false;
  head.recurrent.clear();
  head.blocks.clear();
  head.delta.reset();
  head.space.reset();
  head.moe.leading_dense = 0;
  const TensorInfo* const dense = file.Find(fmt::format("blk.{}.ffn_gate.weight", config.layers));
  if (dense != nullptr) {
    head.moe = MoeConfig();
    head.dense_ff = static_cast<std::uint32_t>(dense->dims[1]);
  }
  return head;
}

Result<Bytes> NextTokenHead::BytesFor(const GgufModel& file, const ModelConfig& model,
                                      const NextTokenShape& shape) {
  const ModelConfig head = NextTokenHeadOf(file, model);
  TROUPE_ASSIGN_OR_RETURN(const HeadTokens tokens, TokensOfHead(file, model));
  TROUPE_ASSIGN_OR_RETURN(const WeightMeasure measure, MeasureWeights(file, head, kHeadLayer));
  return measure.bytes.total() + KvPool::BytesFor(head, kHeadLayer, KvShapeOf(shape)) +
         Workspace::BytesFor(head, WorkspaceShapeOf(head, shape)) + Bytes(BufferBytes(head)) +
         Bytes(head.vocabulary * sizeof(float) +
               tokens.size() * (sizeof(HeadTokens::value_type) + sizeof(float)));
}

NextTokenHead::NextTokenHead(ModelConfig config, WeightStore store, const ModelWeights& model,
                             HeadTokens tokens, ThreadPool& pool)
    : config_(std::move(config)),
      store_(std::move(store)),
      weights_(WithEnds(store_.weights(), model)),
      pool_(pool),
      experts_(weights_),
      transformer_(config_, weights_, experts_, pool_, kHeadLayer),
      logits_(config_.vocabulary, -std::numeric_limits<float>::infinity()),
      tokens_(std::move(tokens)),
      some_logits_(tokens_.size()) {}

Result<std::unique_ptr<NextTokenHead>> NextTokenHead::Open(
    const GgufModel& file, const ModelConfig& model, const ModelWeights& weights, ThreadPool& pool,
    const NextTokenShape& shape, const WeightChecks* checks) {
  ModelConfig config = NextTokenHeadOf(file, model);
  TROUPE_ASSIGN_OR_RETURN(HeadTokens tokens, TokensOfHead(file, model));
  TROUPE_ASSIGN_OR_RETURN(
      WeightStore store,
      LoadWeights(file, config, kHeadLayer, RoutedExperts::kResident, pool, {}, checks));
  std::unique_ptr<NextTokenHead> head(
      new NextTokenHead(std::move(config), std::move(store), weights, std::move(tokens), pool));
  TROUPE_ASSIGN_OR_RETURN(head->kv_, KvPool::Create(head->config_, kHeadLayer, KvShapeOf(shape)));
  RopeParams rope = head->config_.rope;
  rope.freq_factors = head->weights_.rope_freq_factors;
  TROUPE_ASSIGN_OR_RETURN(
      head->workspace_,
      Workspace::Create(head->config_, WorkspaceShapeOf(head->config_, shape), std::move(rope)));
  TROUPE_ASSIGN_OR_RETURN(head->buffer_, AlignedBuffer::Allocate(Bytes(BufferBytes(head->config_)),
                                                                 {.alignment = kPage}));
  auto* const floats = reinterpret_cast<float*>(head->buffer_.data());
  const std::size_t joined = kMostRows * head->config_.width;
  head->pairs_ = {.values = floats, .cols = 2 * std::size_t{head->config_.width}, .storage = {}};
  head->joined_ = {floats + PairFloats(head->config_), joined};
  if (PairCodes(head->config_) > 0) {
    head->pairs_.storage = {reinterpret_cast<std::byte*>(head->joined_.data() + joined),
                            PairCodes(head->config_)};
  }
  return head;
}

void NextTokenHead::Join(TokenIds tokens, std::span<const float> rows) {
  const std::size_t width = config_.width;
  const Activations pairs = pairs_.Of(tokens.size());
  const NextTokenWeights& w = weights_.next_token;
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    const std::span<float> embedding(pairs_.Row(i), width);
    UnpackRow(weights_.embedding, static_cast<std::size_t>(tokens[i]), embedding);
    if (config_.embedding_scale != 1) Scale(config_.embedding_scale, embedding.data(), width);
    RmsNorm(embedding.data(), w.token_norm, config_.norm_epsilon, embedding.data(), width);
    RmsNorm(rows.data() + i * width, w.stream_norm, config_.norm_epsilon, embedding.data() + width,
            width);
    if (pairs.groups != nullptr) QuantizeActivations(pairs, i, 1);
  }
  region_.Add(w.join, pairs, {}, joined_.data(), width);
  region_.Run(pool_);
}

Status NextTokenHead::Forward(KvSequence& sequence, TokenIds tokens, std::span<const float> rows) {
  const std::size_t count = tokens.size();
  TROUPE_CHECK(count > 0 && count <= kMostRows && rows.size() == count * config_.width);
  Join(tokens, rows);
  const RowGroup group{.cache = &sequence, .stream = joined_.first(rows.size())};
  return transformer_.Forward(Batch(&group, 1), *workspace_);
}

std::span<const float> NextTokenHead::Logits() {
  const auto last =
      static_cast<std::uint32_t>(transformer_.Stream(*workspace_).size() / config_.width - 1);
  float* const said = tokens_.empty() ? logits_.data() : some_logits_.data();
  transformer_.Logits(*workspace_, {&last, 1}, said);
  for (std::size_t i = 0; i < tokens_.size(); ++i) {
    logits_[static_cast<std::size_t>(tokens_[i])] = some_logits_[i];
  }
  return logits_;
}

std::span<const float> NextTokenHead::LastRow() const {
  return transformer_.Stream(*workspace_).last(config_.width);
}

}  // namespace troupe
