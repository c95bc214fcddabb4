// What the GGUF file of a shape holds: its metadata but for the tokenizer (synth_tokenizer.h), and
// its tensors with the distribution their weights are drawn from. Names and keys are those that
// llama.cpp's converters write, so that llama.cpp loads the file.
#pragma once

#include <optional>
#include <vector>

#include "forge/synth_shape.h"
#include "forge/tensor_mix.h"
#include "forge/upload_mix.h"
#include "gguf/metadata.h"
#include "gguf/tensor_info.h"

namespace troupe {

struct SynthTensor {
  TensorSpec spec;
  double mean = 0;
  double deviation = 0;
};

struct SynthLayout {
  TensorMix mix = {};
  std::optional<UploadMix> upload = std::nullopt;  // in place of `mix`
  bool combined_kv = false;  // MLA as in old files: attn_kv_b in place of attn_k_b and attn_v_b
};

// Deviations keep activations at about 1 through any number of layers: a matrix of n inputs has
// 1/sqrt(n), times a gain by role that makes scores, gates and logits spread as trained ones do.
std::vector<SynthTensor> TensorsOf(const ModelShape& shape, const SynthLayout& layout);

Metadata MetadataOf(const ModelShape& shape, const SynthLayout& layout);

}  // namespace troupe
