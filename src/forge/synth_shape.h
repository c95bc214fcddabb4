// The sizes of a model without its weights: what `troupe synth` makes a file of. Shapes come by
// name from the table of published and test models here, or from a Hugging Face config.json
// (hf_config.h). What a loader makes of the file in the end is config.h's.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/config.h"

namespace troupe {

struct YarnShape {
  double factor = 1;
  std::uint32_t original_context = 0;
  double multiplier = 0;  // mscale_all_dim: 0 if the model has none
};

struct ExpertsShape {
  std::uint32_t count = 0;
  std::uint32_t top_k = 0;
  std::uint32_t ff = 0;
  std::uint32_t shared_ff = 0;     // all shared experts as one
  std::uint32_t shared_count = 0;  // how many it stands for, where the file says so
  std::uint32_t leading_dense = 0;
  std::uint32_t groups = 1;
  std::uint32_t groups_used = 1;
  bool sigmoid = false;
  bool selection_bias = false;
  bool normalise = false;
  double scale = 1;
};

// A gated delta net in every layer but each n-th.
struct DeltaNetShape {
  std::uint32_t key_heads = 0;
  std::uint32_t value_heads = 0;
  std::uint32_t head_dim = 0;
  std::uint32_t taps = 4;
  std::uint32_t attention_every = 4;
};

// Short convolutions in all layers but these.
struct ShortConvShape {
  std::uint32_t taps = 3;
  std::vector<std::uint32_t> attention_layers = {};
};

// Mamba-2 in all layers but these, whose heads do not rotate; or as ModelShape::blocks says.
struct StateSpaceShape {
  std::uint32_t heads = 0;
  std::uint32_t head_dim = 0;
  std::uint32_t groups = 1;
  std::uint32_t key_dim = 0;
  std::uint32_t taps = 4;
  std::vector<std::uint32_t> attention_layers = {};
};

// What the family multiplies embeddings, scores and answers of blocks with, and divides logits by.
struct ScalesShape {
  double embedding = 1;
  double attention = 1;
  double residual = 1;
  double logits = 1;
};

// Heads of layers with a window, where they are other ones than those of every n-th layer, which
// sees everything.
struct WindowHeadsShape {
  std::uint32_t kv_heads = 0;
  std::uint32_t head_dim = 0;
  double rope_base = 10000;
  std::uint32_t full_every = 6;

  bool IsFull(std::uint32_t layer) const { return (layer + 1) % full_every == 0; }
};

// A layer that guesses a further token and costs less than one of the model's.
struct SmallHeadShape {
  std::uint32_t dense_ff = 0;  // of a dense block in place of experts; 0: experts
  std::uint32_t tokens = 0;    // that an output of its own is for, from all over the vocabulary; 0:
                               // the model's output
};

struct ModelShape {
  std::string name;
  Architecture architecture = Architecture::kLlama;
  std::uint32_t layers = 0;
  std::uint32_t width = 0;
  std::uint32_t heads = 0;
  std::uint32_t kv_heads = 0;
  std::uint32_t head_dim = 0;
  std::uint32_t dense_ff = 0;  // of layers without experts
  std::uint32_t vocabulary = 0;
  std::uint32_t context = 0;
  double norm_epsilon = 1e-5;
  double rope_base = 10000;
  bool tied_embedding = false;  // the output reuses the token embedding
  bool qkv_bias = false;
  bool matrix_factors = false;  // beside each matrix, as converted files of NVFP4 have them
  bool head_norms = false;      // of families in which some models have them
  std::uint32_t window = 0;     // of layers that have one
  std::optional<YarnShape> yarn = std::nullopt;
  std::optional<MlaConfig> mla = std::nullopt;
  std::optional<DeltaNetShape> delta = std::nullopt;
  std::optional<ShortConvShape> short_conv = std::nullopt;
  std::optional<StateSpaceShape> space = std::nullopt;
  // Where a layer is a block with one part, one letter a layer: M Mamba-2, * attention, E experts,
  // - a dense feed-forward. Empty: layers have a feed-forward behind one of the others.
  std::string blocks = {};
  std::optional<ScalesShape> scales = std::nullopt;
  std::optional<WindowHeadsShape> window_heads = std::nullopt;
  double logit_cap = 0;
  std::uint32_t rope_dim = 0;           // of a head; 0: all
  std::uint32_t next_token_layers = 0;  // behind the last one, to guess further tokens
  SmallHeadShape small_head = {};       // of these
  std::optional<ExpertsShape> experts = std::nullopt;
};

// Null if there is none of this name.
const ModelShape* FindShape(std::string_view name);
std::vector<std::string_view> ShapeNames();

}  // namespace troupe
