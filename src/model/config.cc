#include "model/config.h"

#include <algorithm>

#include "model/arch/keys.h"

namespace troupe {
namespace {

struct Family {
  Architecture architecture;
  std::string_view name;
  Result<ModelConfig> (*read)(const Metadata&);
};

constexpr Family kFamilies[] = {
    {Architecture::kLlama, "llama", ReadLlamaConfig},
    {Architecture::kQwen2Moe, "qwen2moe", ReadQwen2MoeConfig},
    {Architecture::kQwen3Moe, "qwen3moe", ReadQwen3MoeConfig},
    {Architecture::kOlmoe, "olmoe", ReadOlmoeConfig},
    {Architecture::kDeepseek, "deepseek", ReadDeepseekConfig},
    {Architecture::kDeepseek2, "deepseek2", ReadDeepseek2Config},
    {Architecture::kQwen3Next, "qwen3next", ReadQwen3NextConfig},
    {Architecture::kQwen35Moe, "qwen35moe", ReadQwen35MoeConfig},
    {Architecture::kGptOss, "gpt-oss", ReadGptOssConfig},
    {Architecture::kMinimaxM2, "minimax-m2", ReadMinimaxM2Config},
    {Architecture::kLfm2Moe, "lfm2moe", ReadLfm2MoeConfig},
    {Architecture::kGlm4Moe, "glm4moe", ReadGlm4MoeConfig},
    {Architecture::kGraniteMoe, "granitemoe", ReadGraniteMoeConfig},
    {Architecture::kGraniteHybrid, "granitehybrid", ReadGraniteHybridConfig},
    {Architecture::kGemma4, "gemma4", ReadGemma4Config},
    {Architecture::kQwen3VlMoe, "qwen3vlmoe", ReadQwen3VlMoeConfig},
    {Architecture::kDots1, "dots1", ReadDots1Config},
    {Architecture::kErnie45Moe, "ernie4_5-moe", ReadErnie45MoeConfig},
    {Architecture::kHunyuanMoe, "hunyuan-moe", ReadHunyuanMoeConfig},
    {Architecture::kBailingMoe2, "bailingmoe2", ReadBailingMoe2Config},
    {Architecture::kNemotronH, "nemotron_h", ReadNemotronHConfig},
    {Architecture::kNemotronHMoe, "nemotron_h_moe", ReadNemotronHMoeConfig},
    {Architecture::kSwitch, "switch", ReadSwitchConfig},
};

const Family* FindFamily(std::string_view name) {
  for (const Family& family : kFamilies) {
    if (family.name == name) return &family;
  }
  return nullptr;
}

std::string DescribeRope(const RopeParams& rope) {
  if (rope.dims == 0) return "none";
  std::string text =
      fmt::format("{} dimensions in {} pairs, base {}", rope.dims,
                  rope.pairs == RopePairs::kAdjacent ? "adjacent" : "half-way", rope.freq_base);
  if (rope.freq_scale != 1.0f) {
    text += fmt::format(", stretched {:.4g} times", 1.0f / rope.freq_scale);
    if (rope.ext_factor != 0.0f) text += fmt::format(" by YaRN beyond {}", rope.original_context);
  }
  return text;
}

std::string DescribeMoe(const MoeConfig& moe, GateForm form) {
  std::string text = fmt::format("{} of width {}, top {} by {}{}", moe.routing.experts,
                                 moe.expert_ff, moe.routing.top_k,
                                 moe.routing.score == GateScore::kSoftmax ? "softmax" : "sigmoid",
                                 moe.routing.normalise ? ", weights normalised" : "");
  if (moe.routing.scale != 1.0f) text += fmt::format(", scaled by {}", moe.routing.scale);
  if (moe.routing.groups > 1)
    text += fmt::format(", from {} of {} groups", moe.routing.groups_used, moe.routing.groups);
  if (moe.biases) text += ", with biases";
  if (form == GateForm::kClamped) text += ", clamped";
  if (form == GateForm::kGelu) text += ", by GELU";
  if (form == GateForm::kSquaredRelu) text += ", by squared ReLU without a gate";
  if (form == GateForm::kRelu) text += ", by ReLU without a gate";
  if (moe.beside_dense) text += ", beside a dense part";
  return text;
}

}  // namespace

std::uint32_t ModelConfig::RecurrentLayers() const {
  return static_cast<std::uint32_t>(std::ranges::count(recurrent, true));
}

std::uint32_t ModelConfig::AttentionLayers() const {
  std::uint32_t count = 0;
  for (std::uint32_t layer = 0; layer < layers; ++layer) count += HasAttention(layer) ? 1 : 0;
  return count;
}

std::uint32_t ModelConfig::FileBlocks() const {
  if (blocks.empty()) return layers;
  std::uint32_t count = 0;
  for (const LayerBlocks& of : blocks) {
    for (const auto& part : {of.recurrent, of.attention, of.feed_forward}) count += part ? 1 : 0;
  }
  return count;
}

std::uint32_t ModelConfig::LayerOfBlock(std::uint32_t block) const {
  if (blocks.empty()) return block;
  const auto has = [block](const LayerBlocks& of) {
    return of.recurrent == block || of.attention == block || of.feed_forward == block;
  };
  return static_cast<std::uint32_t>(std::ranges::find_if(blocks, has) - blocks.begin());
}

std::uint32_t ModelConfig::MoeLayersIn(std::uint32_t first, std::uint32_t end) const {
  std::uint32_t count = 0;
  for (std::uint32_t layer = first; layer < end; ++layer) count += IsMoeLayer(layer) ? 1 : 0;
  return count;
}

std::string_view Name(Architecture architecture) {
  for (const Family& family : kFamilies) {
    if (family.architecture == architecture) return family.name;
  }
  TROUPE_CHECK(false);
}

std::optional<Architecture> ArchitectureByName(std::string_view name) {
  const Family* family = FindFamily(name);
  return family ? std::optional(family->architecture) : std::nullopt;
}

std::string SupportedArchitectures() {
  std::string names;
  for (const Family& family : kFamilies) {
    if (!names.empty()) names += ", ";
    names += family.name;
  }
  return names;
}

Result<ModelConfig> ReadModelConfig(const Metadata& metadata) {
  TROUPE_ASSIGN_OR_RETURN(const std::string_view name, metadata.GetString("general.architecture"));
  const Family* family = FindFamily(name);
  if (family == nullptr && name == "gptoss") {  // its tensors have other names
    return Error(Code::kUnimplemented,
                 "{}: general.architecture is 'gptoss', a form of gpt-oss that ollama made for "
                 "itself; `troupe pull hf.co/ggml-org/gpt-oss-20b-GGUF` (or -120b-) gets one that "
                 "runs",
                 metadata.origin());
  }
  if (family == nullptr) {
    return Error(Code::kUnimplemented, "{}: general.architecture is '{}', expected one of {}",
                 metadata.origin(), name, SupportedArchitectures());
  }
  Result<ModelConfig> config = family->read(metadata);
  if (!config.ok() && !config.status().message().starts_with(metadata.origin())) {
    return Status(config.status()).WithContext(metadata.origin());
  }
  if (config.ok() && config->moe.routing.experts > 0) {
    const Status routing = CheckTopExpertsParams(config->moe.routing);
    if (!routing.ok()) return Status(routing).WithContext(metadata.origin());
  }
  return config;
}

std::vector<std::string> Describe(const ModelConfig& config) {
  std::vector<std::string> lines;
  const AttentionConfig& a = config.attention;
  lines.push_back(fmt::format("architecture  {}{}", Name(config.architecture),
                              config.name.empty() ? "" : " (" + config.name + ")"));
  lines.push_back(
      fmt::format("layers        {}{}, width {}, vocabulary {}, trained context {}", config.layers,
                  config.blocks.empty() ? "" : fmt::format(" of {} blocks", config.FileBlocks()),
                  config.width, config.vocabulary, config.trained_context));
  if (a.mla) {
    lines.push_back(
        fmt::format("attention     {} heads, latent rows of {} + {} rotary, queries {}", a.heads,
                    a.mla->kv_rank, a.mla->rope_dim,
                    a.mla->q_rank > 0 ? fmt::format("of rank {}", a.mla->q_rank) : "uncompressed"));
  } else {
    lines.push_back(fmt::format("attention     {} heads on {} key heads of {}{}", a.heads,
                                a.kv_heads, a.key_dim, a.gated ? ", gated" : ""));
  }
  if (config.delta) {
    const DeltaNetConfig& delta = *config.delta;
    lines.push_back(fmt::format(
        "delta net     in {} layers: {} heads on {} key heads of {}, convolution over {} tokens",
        config.RecurrentLayers(), delta.value_heads, delta.key_heads, delta.head_dim, delta.taps));
  }
  if (config.space) {
    const StateSpaceConfig& space = *config.space;
    lines.push_back(fmt::format(
        "state space   in {} layers: {} heads of {} on {} key heads of {}, convolution over {} "
        "tokens",
        config.RecurrentLayers(), space.heads, space.head_dim, space.groups, space.key_dim,
        space.taps));
  }
  if (config.short_conv_taps > 0) {
    lines.push_back(fmt::format("convolution   in {} layers, over {} tokens",
                                config.RecurrentLayers(), config.short_conv_taps));
  }
  if (config.window) {
    const WindowConfig& window = *config.window;
    lines.push_back(fmt::format("window        {} positions in {} of {} layers", window.positions,
                                std::ranges::count(window.layers, true), config.layers));
    if (window.attention) {
      lines.back() += fmt::format(", on {} key heads of {}", window.attention->kv_heads,
                                  window.attention->key_dim);
    }
    if (window.rope) lines.push_back("  rotary      " + DescribeRope(*window.rope));
  }
  if (config.encoder) {
    lines.push_back(
        fmt::format("encoder       the first {} layers; positions in {} buckets up to {}",
                    config.encoder->layers, config.encoder->buckets, config.encoder->max_distance));
  }
  if (config.embedding_scale != 1 || config.residual_scale != 1 || config.logit_scale != 1) {
    lines.push_back(
        fmt::format("scales        {:.4g} on embeddings, {:.4g} on blocks, {:.4g} on logits",
                    config.embedding_scale, config.residual_scale, config.logit_scale));
  }
  if (config.logit_cap > 0) {
    lines.push_back(fmt::format("logits        bent to stay within {:.4g}", config.logit_cap));
  }
  if (a.sinks) lines.push_back("sinks         a score a head");
  lines.push_back("rotary        " + DescribeRope(config.rope));
  if (config.moe.routing.experts > 0) {
    lines.push_back("experts       " + DescribeMoe(config.moe, config.form));
    if (config.moe.shared_ff > 0) {
      lines.push_back(fmt::format("shared expert width {}{}", config.moe.shared_ff,
                                  config.moe.shared_gate ? ", gated" : ""));
    }
  }
  std::uint32_t dense = 0;
  for (std::uint32_t layer = 0; layer < config.layers; ++layer) {
    dense += config.HasFeedForward(layer) && !config.IsMoeLayer(layer) ? 1 : 0;
  }
  if (dense > 0) {
    lines.push_back(fmt::format("dense layers  {} of width {}", dense, config.dense_ff));
  }
  if (config.next_token_layers > 0) {
    lines.push_back(
        fmt::format("left out      {} layer{} behind the last one, which guess{} further tokens",
                    config.next_token_layers, config.next_token_layers == 1 ? "" : "s",
                    config.next_token_layers == 1 ? "es" : ""));
  }
  return lines;
}

}  // namespace troupe
