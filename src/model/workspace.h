// The memory that one forward pass works in, made once for the largest number of rows and known
// beforehand to the byte: nothing is allocated while tokens flow. Nothing of a sequence stays in it
// after its pass, so all sequences of an engine take turns with one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/bytes.h"
#include "base/status.h"
#include "io/aligned_buffer.h"
#include "kernels/attention.h"
#include "kernels/kv_layout.h"
#include "kernels/rope.h"
#include "kernels/top_experts.h"
#include "model/config.h"
#include "model/expert_source.h"
#include "model/layer_range.h"
#include "quant/activations.h"

namespace troupe {

struct WorkspaceShape {
  std::size_t chunk = 512;  // rows of one pass at most
  std::size_t threads = 1;
  std::vector<KvLayout> kv;  // of each layer's part of a page
  std::size_t context = 0;   // positions of one sequence at most
  LayerRange layers;         // that will run in it
};

// Rows of floats with room for their 8-bit form, as a matrix product reads them.
struct Rows {
  float* values = nullptr;
  std::size_t cols = 0;
  std::span<std::byte> storage;  // empty if cols has no 8-bit form

  float* Row(std::size_t i) const { return values + i * cols; }
  // The same memory for rows of fewer numbers.
  Rows Narrowed(std::size_t to_cols) const {
    const bool has_codes = to_cols % kGroupCols == 0;
    return {
        .values = values, .cols = to_cols, .storage = has_codes ? storage : std::span<std::byte>()};
  }
  Activations Of(std::size_t rows) const {
    return MakeActivations(values, cols, rows, cols, storage);
  }
};

class Workspace {
 public:
  static Bytes BytesFor(const ModelConfig& config, const WorkspaceShape& shape);
  static Result<Workspace> Create(const ModelConfig& config, const WorkspaceShape& shape,
                                  RopeParams rope);

  std::size_t chunk() const { return shape_.chunk; }
  Bytes bytes() const { return buffer_.size(); }
  std::span<float> AttentionScratch(std::size_t thread) const {
    return attention_scratch.subspan(thread * scratch_floats_, scratch_floats_);
  }

  // One row a row of the pass where nothing else is said.
  std::span<std::byte> embedding_row;  // one, as the file has it
  float* stream = nullptr;             // the residual stream
  Rows normed;                         // what a block reads of it
  Rows q;                              // all heads, before attention
  float* k = nullptr;
  float* v = nullptr;
  Rows attended;  // all heads, after attention

  // Gated attention: all heads, each its query and its gate.
  float* q_gated = nullptr;

  // Delta nets.
  float* mixed = nullptr;        // queries, keys and values, before and after the convolution
  float* delta_z = nullptr;      // the gate behind the heads' norm
  float* delta_gates = nullptr;  // decays of all heads, then what they learn of a value
  float* fused_gates = nullptr;  // the same, as one matrix gives them
  Rows delta_out;                // all heads

  // Mamba-2.
  float* space_in = nullptr;     // the gate behind the heads, what is convolved, steps of all heads
  float* space_gates = nullptr;  // decays of all heads, then what they learn of a value
  Rows space_out;                // all heads

  // Layers that are convolutions.
  float* conv_in = nullptr;  // the gate before it, the gate behind it, what is convolved
  Rows conv_out;

  // Latent attention.
  Rows q_low;                 // compressed queries
  float* kv_row = nullptr;    // compressed row and its rotary part
  float* q_latent = nullptr;  // queries in the space of the rows, all heads
  Rows latent;                // what was attended there: a row a token and head
  Rows q_plain;               // view of q: a row a token and head

  // Feed-forward. Assignments are the (token, slot) pairs, ordered by expert.
  Rows hidden;        // dense layers
  Rows router_input;  // where router and dense part have norms of their own
  Rows dense_input;
  Rows shared_hidden;
  float* shared_out = nullptr;
  float* shared_gate = nullptr;  // one number a token
  float* router = nullptr;       // logits, then scores
  ExpertChoice* chosen = nullptr;
  float* gate_said = nullptr;  // a copy of the logits of the tokens that forecasts are made of
  Rows forecast_input;        // their stream as the next layers' gates would see it, layer by layer
  float* forecast = nullptr;  // what those gates say of it
  Rows expert_hidden;         // a row an assignment
  float* expert_out = nullptr;                // a row an assignment
  std::span<std::uint32_t> assigned_token;    // token of each assignment
  std::span<std::uint32_t> assignment_of;     // assignment of token t's slot s, at t * top_k + s
  std::span<std::uint32_t> first_assignment;  // of each expert, and the end
  std::span<ExpertDemand> demands;            // room for every expert of a layer

  std::span<float> attention_scratch;
  std::span<float> attention_partials;
  std::span<std::uint32_t> head_rows;  // for head h: rows h, heads + h, ... of q_plain and latent
  // Of an encoder-decoder: what is added to scores by distance (position_bias.h), for all that the
  // rows of a pass, or the positions of a context, can be apart. Filled by the first pass.
  std::span<float> encoder_bias, decoder_bias;
  bool has_position_bias = false;
  PositionBias PositionBiasOf(const ModelConfig& config, std::uint32_t layer) const;
  // One, and another one where layers with a window rotate otherwise.
  std::vector<RopeTable> rope;
  std::span<std::int32_t> positions;  // of each row in its sequence
  std::span<std::uint32_t> group_of_row;
  std::span<std::uint32_t> forecast_rows;

 private:
  class Bump;
  Workspace() = default;
  void Place(const ModelConfig& config, const WorkspaceShape& shape, Bump& bump);
  void PlaceAttention(const ModelConfig& config, std::size_t chunk, Bump& bump);
  void PlaceDeltaNet(const DeltaNetConfig& delta, std::size_t chunk, Bump& bump);

  WorkspaceShape shape_;
  std::size_t scratch_floats_ = 0;
  AlignedBuffer buffer_;
};

}  // namespace troupe
