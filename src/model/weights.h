// A model's weights as the blocks use them: views of panels and floats, layer by layer, all lying
// in one buffer that WeightStore owns. weight_loader.h brings them there.
#pragma once

#include <cstdint>
#include <vector>

#include "base/bytes.h"
#include "io/aligned_buffer.h"
#include "kernels/matmul.h"
#include "quant/panel.h"

namespace troupe {

// y = W x + bias.
struct Linear {
  PanelMatrix weight;
  const float* bias = nullptr;  // null: none
};

// gate x and up x combined as `form` says, then down: an expert, a shared expert or a dense
// feed-forward. Of a form that takes one product alone, up has no rows.
struct Mlp {
  PanelMatrix gate, up, down;
  const float* gate_bias = nullptr;  // a number a row; null: none
  const float* up_bias = nullptr;
  const float* down_bias = nullptr;
  GateForm form = GateForm::kSilu;

  GateUpWeights FirstHalf() const {
    return {.gate = gate, .up = up, .gate_bias = gate_bias, .up_bias = up_bias, .form = form};
  }
};

// What the experts of a layer have beside their matrices. It is always in memory, wherever those
// are.
struct ExpertExtras {
  const float* gate_bias = nullptr;  // of all experts, one after the other; null: none
  const float* up_bias = nullptr;
  const float* down_bias = nullptr;
  const float* scale = nullptr;  // of each expert's answer; null: none
  // What products with each expert's matrices are multiplied with; null: nothing.
  const float* gate_factor = nullptr;
  const float* up_factor = nullptr;
  const float* down_factor = nullptr;
  GateForm form = GateForm::kSilu;

  // The expert whose matrices these are, with what is its own of all this.
  Mlp Complete(Mlp matrices, std::uint32_t expert) const {
    const auto own = [expert](const float* all, const PanelMatrix& matrix) {
      return all == nullptr ? nullptr : all + expert * matrix.rows;
    };
    matrices.gate_bias = own(gate_bias, matrices.gate);
    matrices.up_bias = own(up_bias, matrices.up);
    matrices.down_bias = own(down_bias, matrices.down);
    const auto set_factor = [expert](const float* all, PanelMatrix& matrix) {
      if (all != nullptr) matrix.factor = all + expert;
    };
    set_factor(gate_factor, matrices.gate);
    set_factor(up_factor, matrices.up);
    set_factor(down_factor, matrices.down);
    matrices.form = form;
    return matrices;
  }
};

struct AttentionWeights {
  const float* norm = nullptr;
  Linear q, k, out;
  Linear v;                       // without rows: values are what keys are made of
  const float* q_norm = nullptr;  // null: queries and keys are not normalised
  const float* k_norm = nullptr;
  const float* sinks = nullptr;        // a score a head; null: none
  const float* answer_norm = nullptr;  // null: the answer is added as it is
};

// Multi-head latent attention in its absorbed form: per head, k_up takes a query's plain part into
// the space of the compressed rows, v_up takes what attention found there to the head's value.
struct MlaWeights {
  const float* norm = nullptr;
  Linear q;            // the only projection of queries, or the one after q_down
  PanelMatrix q_down;  // used if the configuration has a query rank
  const float* q_down_norm = nullptr;
  PanelMatrix kv_down;  // to the compressed row and its rotary part
  const float* kv_down_norm = nullptr;
  std::vector<PanelMatrix> k_up, v_up;  // one a head
  Linear out;
};

// How a decoder's layer looks at its encoder's rows.
struct CrossWeights {
  const float* norm = nullptr;
  Linear q, k, v, out;
};

struct DeltaNetWeights {
  const float* norm = nullptr;
  PanelMatrix qkv;              // queries, keys and values, head by head
  PanelMatrix z;                // the gate behind the heads' norm
  PanelMatrix alpha, beta;      // one row a value head
  PanelMatrix gates;            // in place of both where the configuration fuses them
  const float* conv = nullptr;  // a row of channels a tap, the oldest token's first
  const float* dt = nullptr;    // a number a value head, as a is
  const float* a = nullptr;
  const float* head_norm = nullptr;
  Linear out;
};

// Of a layer of Mamba-2: `in` gives the gate behind the heads, values, keys, queries, and a step a
// head.
struct StateSpaceWeights {
  const float* norm = nullptr;
  Linear in, out;
  const float* conv = nullptr;  // a row of channels a tap, the oldest token's first
  const float* conv_bias = nullptr;
  const float* dt = nullptr;  // a number a head, as a and skip are
  const float* a = nullptr;
  const float* skip = nullptr;
  const float* group_norms = nullptr;  // of all heads of a group together; all groups
};

// Of a layer that mixes tokens by a convolution: `in` gives the gate before it, the gate behind it,
// and what it is applied to.
struct ShortConvWeights {
  const float* norm = nullptr;
  Linear in, out;
  const float* conv = nullptr;  // a row of channels a tap, the oldest token's first
};

// Norms of experts beside a dense part.
struct BesideDenseNorms {
  const float* router = nullptr;  // before the router
  const float* experts = nullptr;
  const float* expert_answer = nullptr;
  const float* dense_answer = nullptr;
};

struct MoeWeights {
  Linear router;
  BesideDenseNorms norms;                 // as the configuration says
  const float* selection_bias = nullptr;  // null: none
  Mlp shared;                             // if the configuration has a shared expert
  PanelMatrix shared_gate;                // one row; if the shared expert is gated
  ExpertExtras extras;
  std::vector<Mlp> experts;  // complete; empty where they are not kept in memory (expert_source.h)
};

struct LayerWeights {
  AttentionWeights attention;  // one of the five, or one of the last three before the first,
  MlaWeights mla;              // as the configuration says
  DeltaNetWeights delta;
  StateSpaceWeights space;
  ShortConvWeights conv;
  CrossWeights cross;  // of a decoder that has an encoder
  const float* ffn_norm = nullptr;
  const float* ffn_answer_norm = nullptr;  // null: the answer is added as it is
  Mlp dense;                               // as the configuration says
  MoeWeights moe;
  const float* output_scale = nullptr;  // one number that the stream is multiplied with; null: none

  // What the router reads the stream through.
  const float* RouterNorm() const { return moe.norms.router ? moe.norms.router : ffn_norm; }
};

// What joins the stream with the embedding of the next token, in a head that guesses the one behind
// it.
struct NextTokenWeights {
  const float* token_norm = nullptr;
  const float* stream_norm = nullptr;
  PanelMatrix join;  // of both, side by side
};

struct ModelWeights {
  PanelMatrix embedding;  // a row a token
  const float* output_norm = nullptr;
  PanelMatrix output;                    // the embedding again where a model ties them
  std::vector<float> rope_freq_factors;  // empty: none
  std::vector<LayerWeights> layers;
  NextTokenWeights next_token;  // of such a head alone
  // Of an encoder-decoder: the encoder's last norm, and rows of heads, a bucket of distances each.
  const float* encoder_norm = nullptr;
  const float* encoder_bias = nullptr;
  const float* decoder_bias = nullptr;
};

// What a memory plan wants to know of them.
struct WeightBytes {
  Bytes dense;    // everything but routed experts
  Bytes experts;  // of all layers
  Bytes total() const { return dense + experts; }
};

class WeightStore {
 public:
  WeightStore(AlignedBuffer buffer, ModelWeights weights, WeightBytes bytes,
              std::uint64_t verified_experts)
      : buffer_(std::move(buffer)),
        weights_(std::move(weights)),
        bytes_(bytes),
        verified_experts_(verified_experts) {}

  const ModelWeights& weights() const { return weights_; }
  const WeightBytes& bytes() const { return bytes_; }
  // Routed experts in it whose bytes were found to be those that were recorded of them.
  std::uint64_t verified_experts() const { return verified_experts_; }

 private:
  AlignedBuffer buffer_;
  ModelWeights weights_;
  WeightBytes bytes_;
  std::uint64_t verified_experts_;
};

}  // namespace troupe
