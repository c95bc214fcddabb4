#include "forge/hf_config.h"

#include <filesystem>
#include <utility>

#include "base/check.h"
#include "base/json.h"
#include "io/file.h"

namespace troupe {
namespace {

// Far above any config.json, far below what would hurt to read.
constexpr std::uint64_t kMaxConfigBytes = 1 << 20;

constexpr std::uint64_t kMaxCount = 1u << 30;

// Typed access to the fields of one object; a null field counts as absent, as in transformers.
class Fields {
 public:
  Fields(const Json& object, const std::string& origin) : object_(object), origin_(origin) {}

  const Json* Find(const char* key) const {
    const Json* found = object_.Find(key);
    return found == nullptr || found->IsNull() ? nullptr : found;
  }

  Status Bad(const char* key, std::string_view expected) const {
    const Json* value = Find(key);
    return InvalidArgument("{}: '{}' is {}, expected {}", origin_, key,
                           value ? value->Dump() : "missing", expected);
  }

  Result<std::uint32_t> Count(const char* key) const {
    const Json* value = Find(key);
    if (value == nullptr || !value->IsCount() || value->AsCount() > kMaxCount) {
      return Bad(key, fmt::format("a whole number up to {}", kMaxCount));
    }
    return static_cast<std::uint32_t>(value->AsCount());
  }
  Result<std::uint32_t> CountOr(const char* key, std::uint32_t otherwise) const {
    if (Find(key) == nullptr) return otherwise;
    return Count(key);
  }
  Result<double> NumberOr(const char* key, double otherwise) const {
    const Json* value = Find(key);
    if (value == nullptr) return otherwise;
    if (!value->IsNumber()) return Bad(key, "a number");
    return value->AsDouble();
  }
  Result<bool> FlagOr(const char* key, bool otherwise) const {
    const Json* value = Find(key);
    if (value == nullptr) return otherwise;
    if (!value->IsBool()) return Bad(key, "true or false");
    return value->AsBool();
  }
  Result<std::string> TextOr(const char* key, const char* otherwise) const {
    const Json* value = Find(key);
    if (value == nullptr) return std::string(otherwise);
    if (!value->IsString()) return Bad(key, "a string");
    return value->AsString();
  }
  Result<Fields> Object(const char* key) const {
    const Json* value = Find(key);
    if (value == nullptr || !value->IsObject()) return Bad(key, "an object");
    return Fields(*value, origin_);
  }

 private:
  const Json& object_;
  const std::string& origin_;
};

// Fails unless the field is absent or has the one value that the engine knows.
Status ExpectCount(const Fields& fields, const char* key, std::uint32_t expected) {
  TROUPE_ASSIGN_OR_RETURN(const std::uint32_t found, fields.CountOr(key, expected));
  return found == expected ? OkStatus() : fields.Bad(key, fmt::format("{}", expected));
}

Status ReadRopeScaling(const Fields& fields, ModelShape& shape) {
  if (fields.Find("rope_scaling") == nullptr) return OkStatus();
  TROUPE_ASSIGN_OR_RETURN(const Fields scaling, fields.Object("rope_scaling"));
  const char* key = scaling.Find("rope_type") != nullptr ? "rope_type" : "type";
  TROUPE_ASSIGN_OR_RETURN(const std::string type, scaling.TextOr(key, ""));
  if (type == "default") return OkStatus();
  if (type != "yarn") return scaling.Bad(key, "\"yarn\"");
  YarnShape yarn;
  TROUPE_ASSIGN_OR_RETURN(yarn.factor, scaling.NumberOr("factor", 1));
  TROUPE_ASSIGN_OR_RETURN(yarn.original_context,
                          scaling.CountOr("original_max_position_embeddings", shape.context));
  TROUPE_ASSIGN_OR_RETURN(yarn.multiplier, scaling.NumberOr("mscale_all_dim", 0));
  shape.yarn = yarn;
  return OkStatus();
}

Status ReadCommon(const Fields& fields, ModelShape& shape) {
  TROUPE_ASSIGN_OR_RETURN(shape.layers, fields.Count("num_hidden_layers"));
  TROUPE_ASSIGN_OR_RETURN(shape.width, fields.Count("hidden_size"));
  TROUPE_ASSIGN_OR_RETURN(shape.heads, fields.Count("num_attention_heads"));
  TROUPE_ASSIGN_OR_RETURN(shape.kv_heads, fields.CountOr("num_key_value_heads", shape.heads));
  if (shape.heads == 0) return fields.Bad("num_attention_heads", "at least 1");
  TROUPE_ASSIGN_OR_RETURN(shape.head_dim, fields.CountOr("head_dim", shape.width / shape.heads));
  TROUPE_ASSIGN_OR_RETURN(shape.dense_ff, fields.Count("intermediate_size"));
  TROUPE_ASSIGN_OR_RETURN(shape.vocabulary, fields.Count("vocab_size"));
  TROUPE_ASSIGN_OR_RETURN(shape.context, fields.Count("max_position_embeddings"));
  TROUPE_ASSIGN_OR_RETURN(shape.norm_epsilon, fields.NumberOr("rms_norm_eps", 1e-6));
  TROUPE_ASSIGN_OR_RETURN(shape.rope_base, fields.NumberOr("rope_theta", 10000));
  TROUPE_ASSIGN_OR_RETURN(shape.tied_embedding, fields.FlagOr("tie_word_embeddings", false));
  TROUPE_ASSIGN_OR_RETURN(shape.qkv_bias, fields.FlagOr("attention_bias", false));
  TROUPE_ASSIGN_OR_RETURN(const std::string activation, fields.TextOr("hidden_act", "silu"));
  if (activation != "silu") return fields.Bad("hidden_act", "\"silu\"");
  return ReadRopeScaling(fields, shape);
}

Status ReadDense(const Fields&, ModelShape&) { return OkStatus(); }

Status ReadMixtral(const Fields& fields, ModelShape& shape) {
  ExpertsShape experts;
  TROUPE_ASSIGN_OR_RETURN(experts.count, fields.Count("num_local_experts"));
  TROUPE_ASSIGN_OR_RETURN(experts.top_k, fields.Count("num_experts_per_tok"));
  experts.ff = std::exchange(shape.dense_ff, 0);
  experts.normalise = true;
  shape.experts = experts;
  return OkStatus();
}

Status ReadQwenExperts(const Fields& fields, const char* ff_key, ModelShape& shape) {
  ExpertsShape experts;
  TROUPE_ASSIGN_OR_RETURN(experts.count, fields.Count("num_experts"));
  TROUPE_ASSIGN_OR_RETURN(experts.top_k, fields.Count("num_experts_per_tok"));
  TROUPE_ASSIGN_OR_RETURN(experts.ff, fields.Count(ff_key));
  shape.experts = experts;
  const Json* dense_layers = fields.Find("mlp_only_layers");
  if (dense_layers != nullptr && dense_layers->size() > 0) {
    return fields.Bad("mlp_only_layers", "an empty list");
  }
  return ExpectCount(fields, "decoder_sparse_step", 1);
}

// llama.cpp's rule for the weights of the chosen experts goes by family, not by file.
Status ExpectNormalise(const Fields& fields, bool expected, ModelShape& shape) {
  TROUPE_ASSIGN_OR_RETURN(const bool found, fields.FlagOr("norm_topk_prob", expected));
  if (found != expected) return fields.Bad("norm_topk_prob", expected ? "true" : "false");
  shape.experts->normalise = expected;
  return OkStatus();
}

Status ReadQwen2Moe(const Fields& fields, ModelShape& shape) {
  TROUPE_RETURN_IF_ERROR(ReadQwenExperts(fields, "moe_intermediate_size", shape));
  TROUPE_ASSIGN_OR_RETURN(shape.experts->shared_ff,
                          fields.Count("shared_expert_intermediate_size"));
  shape.qkv_bias = true;
  return ExpectNormalise(fields, false, shape);
}

Status ReadQwen3Moe(const Fields& fields, ModelShape& shape) {
  TROUPE_RETURN_IF_ERROR(ReadQwenExperts(fields, "moe_intermediate_size", shape));
  return ExpectNormalise(fields, true, shape);
}

Status ReadOlmoe(const Fields& fields, ModelShape& shape) {
  TROUPE_RETURN_IF_ERROR(ReadQwenExperts(fields, "intermediate_size", shape));
  shape.dense_ff = 0;
  if (fields.Find("clip_qkv") != nullptr) return fields.Bad("clip_qkv", "null");
  return ExpectNormalise(fields, false, shape);
}

Status ReadDeepseek(const Fields& fields, ModelShape& shape) {
  ExpertsShape experts;
  TROUPE_ASSIGN_OR_RETURN(experts.count, fields.Count("n_routed_experts"));
  TROUPE_ASSIGN_OR_RETURN(experts.top_k, fields.Count("num_experts_per_tok"));
  TROUPE_ASSIGN_OR_RETURN(experts.ff, fields.Count("moe_intermediate_size"));
  TROUPE_ASSIGN_OR_RETURN(experts.shared_count, fields.CountOr("n_shared_experts", 0));
  experts.shared_ff = experts.shared_count * experts.ff;
  TROUPE_ASSIGN_OR_RETURN(experts.leading_dense, fields.CountOr("first_k_dense_replace", 0));
  shape.experts = experts;
  return ExpectCount(fields, "moe_layer_freq", 1);
}

Status ReadDeepseek1(const Fields& fields, ModelShape& shape) {
  TROUPE_RETURN_IF_ERROR(ReadDeepseek(fields, shape));
  return ExpectNormalise(fields, false, shape);
}

Status ReadDeepseek2(const Fields& fields, ModelShape& shape) {
  TROUPE_RETURN_IF_ERROR(ReadDeepseek(fields, shape));
  ExpertsShape& experts = *shape.experts;
  TROUPE_ASSIGN_OR_RETURN(experts.normalise, fields.FlagOr("norm_topk_prob", false));
  TROUPE_ASSIGN_OR_RETURN(experts.scale, fields.NumberOr("routed_scaling_factor", 1));
  TROUPE_ASSIGN_OR_RETURN(experts.groups, fields.CountOr("n_group", 1));
  TROUPE_ASSIGN_OR_RETURN(experts.groups_used, fields.CountOr("topk_group", experts.groups));
  TROUPE_ASSIGN_OR_RETURN(const std::string score, fields.TextOr("scoring_func", "softmax"));
  if (score != "softmax" && score != "sigmoid") {
    return fields.Bad("scoring_func", "\"softmax\" or \"sigmoid\"");
  }
  experts.sigmoid = score == "sigmoid";
  TROUPE_ASSIGN_OR_RETURN(const std::string method, fields.TextOr("topk_method", "greedy"));
  experts.selection_bias = std::string_view(method) == "noaux_tc";

  MlaConfig mla;
  TROUPE_ASSIGN_OR_RETURN(mla.q_rank, fields.CountOr("q_lora_rank", 0));
  TROUPE_ASSIGN_OR_RETURN(mla.kv_rank, fields.Count("kv_lora_rank"));
  TROUPE_ASSIGN_OR_RETURN(mla.nope_dim, fields.Count("qk_nope_head_dim"));
  TROUPE_ASSIGN_OR_RETURN(mla.rope_dim, fields.Count("qk_rope_head_dim"));
  TROUPE_ASSIGN_OR_RETURN(mla.value_dim, fields.Count("v_head_dim"));
  shape.mla = mla;
  shape.head_dim = mla.nope_dim + mla.rope_dim;
  return OkStatus();
}

Status ReadGptOss(const Fields& fields, ModelShape& shape) {
  TROUPE_RETURN_IF_ERROR(ReadMixtral(fields, shape));
  TROUPE_ASSIGN_OR_RETURN(shape.window, fields.Count("sliding_window"));
  TROUPE_ASSIGN_OR_RETURN(const double limit, fields.NumberOr("swiglu_limit", kGateLimit));
  return limit == kGateLimit ? OkStatus()
                             : fields.Bad("swiglu_limit", fmt::format("{}", kGateLimit));
}

struct Family {
  std::string_view model_type;
  Architecture architecture;
  Status (*read)(const Fields&, ModelShape&);
};

constexpr Family kFamilies[] = {
    {"llama", Architecture::kLlama, ReadDense},
    {"mistral", Architecture::kLlama, ReadDense},
    {"mixtral", Architecture::kLlama, ReadMixtral},
    {"qwen2_moe", Architecture::kQwen2Moe, ReadQwen2Moe},
    {"qwen3_moe", Architecture::kQwen3Moe, ReadQwen3Moe},
    {"olmoe", Architecture::kOlmoe, ReadOlmoe},
    {"deepseek", Architecture::kDeepseek, ReadDeepseek1},
    {"deepseek_v2", Architecture::kDeepseek2, ReadDeepseek2},
    {"deepseek_v3", Architecture::kDeepseek2, ReadDeepseek2},
    {"gpt_oss", Architecture::kGptOss, ReadGptOss},
};

std::string KnownModelTypes() {
  std::string names;
  for (const Family& family : kFamilies) {
    if (!names.empty()) names += ", ";
    names += family.model_type;
  }
  return names;
}

Result<Json> ParseConfig(std::string_view text, const std::string& origin) {
  Json::Fault fault;
  std::optional<Json> config = Json::Parse(text, &fault);
  if (config) return *std::move(config);
  return DataLoss("{}: {}", origin, fault.message);
}

// "olmoe.json" is called olmoe, "OLMoE-1B-7B/config.json" OLMoE-1B-7B.
std::string NameOf(const std::filesystem::path& path) {
  const std::filesystem::path stem = path.stem();
  return (stem == "config" && path.has_parent_path() ? path.parent_path().filename() : stem)
      .string();
}

}  // namespace

Result<ModelShape> ParseHfConfig(std::string_view text, const std::string& origin) {
  TROUPE_ASSIGN_OR_RETURN(const Json config, ParseConfig(text, origin));
  if (!config.IsObject()) return DataLoss("{}: expected a JSON object", origin);
  const Fields fields(config, origin);
  TROUPE_ASSIGN_OR_RETURN(const std::string model_type, fields.TextOr("model_type", ""));
  for (const Family& family : kFamilies) {
    if (family.model_type != model_type) continue;
    ModelShape shape;
    shape.name = NameOf(origin);
    shape.architecture = family.architecture;
    TROUPE_RETURN_IF_ERROR(ReadCommon(fields, shape));
    TROUPE_RETURN_IF_ERROR(family.read(fields, shape));
    return shape;
  }
  return Error(Code::kUnimplemented, "{}: 'model_type' is {}, expected one of {}", origin,
               model_type.empty() ? "missing" : "'" + model_type + "'", KnownModelTypes());
}

Result<ModelShape> ReadHfConfig(const std::string& path) {
  TROUPE_ASSIGN_OR_RETURN(const ReadFile file, ReadFile::Open(path));
  if (file.size() > kMaxConfigBytes) {
    return InvalidArgument("{}: {} bytes, at most {} expected of a config.json", path, file.size(),
                           kMaxConfigBytes);
  }
  std::string text(file.size(), '\0');
  TROUPE_RETURN_IF_ERROR(file.ReadAt(0, std::as_writable_bytes(std::span(text))));
  return ParseHfConfig(text, path);
}

}  // namespace troupe
