#include "model/workspace.h"

#include <algorithm>

#include "kernels/attention.h"

namespace troupe {

// Hands out memory from a base, or only counts if the base is null: the same code measures and
// places, so the two cannot disagree.
class Workspace::Bump {
 public:
  explicit Bump(std::byte* base) : base_(base) {}

  template <typename T>
  std::span<T> Take(std::size_t count) {
    const std::uint64_t begin = AlignUp(used_, kCacheLine.count());
    used_ = begin + count * sizeof(T);
    if (base_ == nullptr) return {};
    return {reinterpret_cast<T*>(base_ + begin), count};
  }

  float* Floats(std::size_t count) { return Take<float>(count).data(); }

  Rows TakeRows(std::size_t rows, std::size_t cols) {
    Rows result{.values = Floats(rows * cols), .cols = cols, .storage = {}};
    result.storage = Storage(rows, cols);
    return result;
  }

  std::span<std::byte> Storage(std::size_t rows, std::size_t cols) {
    if (cols % kGroupCols != 0) return {};
    return Take<std::byte>(ActivationBytes(rows, cols));
  }

  std::uint64_t used() const { return used_; }
  // Goes on there: what lies behind has its turn with what comes.
  void GoOnAt(std::uint64_t used) { used_ = used; }

 private:
  std::byte* base_;
  std::uint64_t used_ = 0;
};

void Workspace::PlaceAttention(const ModelConfig& config, std::size_t chunk, Bump& bump) {
  const AttentionConfig& a = config.attention;
  if (a.mla) {
    const std::size_t head_dim = a.mla->nope_dim + a.mla->rope_dim;
    q = bump.TakeRows(chunk, a.heads * head_dim);
    if (a.mla->q_rank > 0) q_low = bump.TakeRows(chunk, a.mla->q_rank);
    q_plain = {.values = q.values,
               .cols = a.mla->nope_dim,
               .storage = bump.Storage(chunk * a.heads, a.mla->nope_dim)};
    kv_row = bump.Floats(chunk * a.key_dim);
    q_latent = bump.Floats(chunk * a.heads * a.key_dim);
    latent = bump.TakeRows(chunk * a.heads, a.mla->kv_rank);
    attended = bump.TakeRows(chunk, a.heads * a.mla->value_dim);
    head_rows = bump.Take<std::uint32_t>(chunk * a.heads);
  } else {
    // Of layers with a window and of the others, the larger ones; blocks take what they need.
    const AttentionConfig& other =
        config.window && config.window->attention ? *config.window->attention : a;
    const auto take = [&](std::size_t cols) {
      Rows rows{.values = bump.Floats(chunk * cols), .cols = cols, .storage = {}};
      rows.storage = bump.Storage(chunk, AlignUp(cols, kGroupCols));
      return rows;
    };
    q = take(std::max(a.heads * a.key_dim, other.heads * other.key_dim));
    k = bump.Floats(chunk * std::max(a.KeyRow(), other.KeyRow()));
    v = bump.Floats(chunk * std::max(a.ValueRow(), other.ValueRow()));
    attended = take(std::max(a.heads * a.value_dim, other.heads * other.value_dim));
  }
  if (a.gated) q_gated = bump.Floats(chunk * 2 * a.heads * a.key_dim);
}

void Workspace::PlaceDeltaNet(const DeltaNetConfig& delta, std::size_t chunk, Bump& bump) {
  mixed = bump.Floats(chunk * delta.Channels());
  delta_z = bump.Floats(chunk * delta.ValueRow());
  delta_gates = bump.Floats(chunk * 2 * delta.value_heads);
  if (delta.fused_gates) fused_gates = bump.Floats(chunk * 2 * delta.value_heads);
  delta_out = bump.TakeRows(chunk, delta.ValueRow());
}

void Workspace::Place(const ModelConfig& config, const WorkspaceShape& shape, Bump& bump) {
  const AttentionConfig& a = config.attention;
  const MoeConfig& moe = config.moe;
  const std::size_t chunk = shape.chunk;
  embedding_row = bump.Take<std::byte>(config.width * sizeof(float));  // no type is wider
  stream = bump.Floats(chunk * config.width);
  normed = bump.TakeRows(chunk, config.width);
  positions = bump.Take<std::int32_t>(chunk);
  group_of_row = bump.Take<std::uint32_t>(chunk);

  // A layer has one of them, or one after the other.
  const std::uint64_t before = bump.used();
  PlaceAttention(config, chunk, bump);
  const std::uint64_t behind = bump.used();
  bump.GoOnAt(before);
  if (config.delta) PlaceDeltaNet(*config.delta, chunk, bump);
  if (config.space) {
    space_in = bump.Floats(chunk * config.space->InRow());
    space_gates = bump.Floats(chunk * 2 * config.space->heads);
    space_out = bump.TakeRows(chunk, config.space->ValueRow());
  }
  if (config.short_conv_taps > 0) {
    conv_in = bump.Floats(chunk * 3 * config.width);
    conv_out = bump.TakeRows(chunk, config.width);
  }
  bump.GoOnAt(std::max(bump.used(), behind));
  const std::size_t few = std::min<std::size_t>(chunk, shape.threads);
  std::size_t scratch = 0, partials = 0;
  for (const KvLayout& kv : shape.kv) {
    scratch = std::max(scratch, Attention::ScratchFloats(kv));
    // Keys are split among tasks where tokens are few; a chunk that is large enough never is.
    partials = std::max(partials, Attention::PartialFloats(kv, a.heads, few, shape.context));
  }
  scratch_floats_ = AlignUp(scratch, kCacheLine.count() / sizeof(float));
  attention_scratch = bump.Take<float>(shape.threads * scratch_floats_);
  attention_partials = bump.Take<float>(partials);

  if (config.encoder) {
    encoder_bias = bump.Take<float>(a.heads * (2 * chunk - 1));
    decoder_bias = bump.Take<float>(a.heads * shape.context);
  }
  bool has_dense = false, has_experts = false;
  for (std::uint32_t layer = shape.layers.first; layer < shape.layers.end; ++layer) {
    (config.IsMoeLayer(layer) ? has_experts : has_dense) = true;
  }
  if (config.dense_ff > 0 && has_dense) hidden = bump.TakeRows(chunk, config.dense_ff);
  if (has_experts) {
    const std::size_t assignments = chunk * moe.routing.top_k;
    router = bump.Floats(chunk * moe.routing.experts);
    chosen = bump.Take<ExpertChoice>(assignments).data();
    const std::size_t asked_early = std::min(chunk, kMostForecastRows);
    forecast_rows = bump.Take<std::uint32_t>(asked_early);
    gate_said = bump.Floats(asked_early * moe.routing.experts);
    forecast_input = bump.TakeRows(kMostLayersAhead * asked_early, config.width);
    forecast = bump.Floats(kMostLayersAhead * asked_early * moe.routing.experts);
    expert_hidden = bump.TakeRows(assignments, moe.expert_ff);
    expert_out = bump.Floats(assignments * config.width);
    assigned_token = bump.Take<std::uint32_t>(assignments);
    assignment_of = bump.Take<std::uint32_t>(assignments);
    first_assignment = bump.Take<std::uint32_t>(moe.routing.experts + 1);
    demands = bump.Take<ExpertDemand>(moe.routing.experts);
    if (moe.beside_dense) {
      router_input = bump.TakeRows(chunk, config.width);
      dense_input = bump.TakeRows(chunk, config.width);
    }
    if (moe.shared_ff > 0) {
      shared_hidden = bump.TakeRows(chunk, moe.shared_ff);
      shared_out = bump.Floats(chunk * config.width);
      shared_gate = bump.Floats(chunk);
    }
  }
}

PositionBias Workspace::PositionBiasOf(const ModelConfig& config, std::uint32_t layer) const {
  if (!config.encoder) return {};
  const bool encodes = config.IsEncoder(layer);
  const std::span<const float> numbers = encodes ? encoder_bias : decoder_bias;
  const std::size_t stride = numbers.size() / config.attention.heads;
  return {
      .numbers = numbers.data(), .stride = stride, .zero = encodes ? shape_.chunk - 1 : stride - 1};
}

Bytes Workspace::BytesFor(const ModelConfig& config, const WorkspaceShape& shape) {
  Bump bump(nullptr);
  Workspace unplaced;
  unplaced.Place(config, shape, bump);
  Bytes bytes = Bytes(bump.used()) + RopeTable::BytesFor(config.rope, shape.chunk);
  if (config.window && config.window->rope) {
    bytes += RopeTable::BytesFor(*config.window->rope, shape.chunk);
  }
  return bytes;
}

Result<Workspace> Workspace::Create(const ModelConfig& config, const WorkspaceShape& shape,
                                    RopeParams rope) {
  TROUPE_CHECK(shape.layers.first < shape.layers.end && shape.layers.end <= config.layers);
  Bump measure(nullptr);
  Workspace w;
  w.Place(config, shape, measure);
  TROUPE_ASSIGN_OR_RETURN(w.buffer_,
                          AlignedBuffer::Allocate(Bytes(measure.used()), {.alignment = kPage}));
  Bump place(w.buffer_.data());
  w.shape_ = shape;
  w.Place(config, shape, place);
  w.rope.emplace_back(std::move(rope), shape.chunk);
  if (config.window && config.window->rope) {
    w.rope.emplace_back(*config.window->rope, shape.chunk);
  }
  for (std::size_t h = 0, heads = config.attention.heads; !w.head_rows.empty() && h < heads; ++h) {
    for (std::size_t t = 0; t < shape.chunk; ++t) {
      w.head_rows[h * shape.chunk + t] = static_cast<std::uint32_t>(t * heads + h);
    }
  }
  return w;
}

}  // namespace troupe
