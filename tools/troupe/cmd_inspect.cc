// `troupe inspect`: what a model file holds and what running it takes.
#include <algorithm>
#include <string>
#include <utility>

#include "base/available_cpus.h"
#include "base/printable.h"
#include "gguf/reader.h"
#include "model/inspect.h"
#include "runtime/container_path.h"
#include "troupe/commands.h"
#include "troupe/json_record.h"
#include "troupe/options.h"
#include "troupe/verify_model.h"

namespace troupe {
namespace {

constexpr std::uint64_t kContextUnit = 1024;

class InspectCommand final : public Command {
 public:
  void AddOptions(Options& options) override;
  Status Run() override;

 private:
  Status Verify(const GgufModel& model, Json record) const;

  std::string model_, container_, json_;
  bool tensors_ = false, verify_ = false;
};

void InspectCommand::AddOptions(Options& options) {
  AddModelOption(options, "MODEL", model_, "Model file (any part of a split model) or name")
      .Required();
  options.AddFlag("--tensors", tensors_, "List every tensor with its shape, type, size and offset");
  options.AddFlag("--verify", verify_,
                  "Read all of the model and its packed experts, and compare every byte with the "
                  "checksums that `troupe pack` and `troupe pull` have recorded");
  options.Add("--experts", container_, "Packed experts to compare (MODEL.experts if it exists)")
      .Needs("--verify")
      .Type("FILE");
  AddJsonOption(options, json_);
}

Status InspectCommand::Verify(const GgufModel& model, Json record) const {
  const std::string container = container_.empty() ? ContainerPathFor(model_) : container_;
  TROUPE_ASSIGN_OR_RETURN(const VerifyReport report,
                          VerifyModel(model, container, AvailableCpus()));
  if (json_ != "-") Print(report);
  if (!json_.empty()) {
    record["verify"] = ToJson(report);
    TROUPE_RETURN_IF_ERROR(WriteJson(record, json_));
  }
  return OutcomeOf(report);
}

void PrintLayers(const ModelFacts& facts) {
  fmt::print("\n{:<10} {:>12} {:>12} {:>12} {:>12} {:>12}\n", "layers", "attention", "dense",
             "router", "experts", "total");
  // Layers of the same sizes share a line.
  for (std::size_t first = 0; first < facts.layers.size();) {
    const LayerBytes& layer = facts.layers[first];
    std::size_t end = first + 1;
    while (end < facts.layers.size() && facts.layers[end] == layer) ++end;
    const std::string range =
        end == first + 1 ? fmt::format("{}", first) : fmt::format("{}-{}", first, end - 1);
    fmt::print("{:<10} {:>12} {:>12} {:>12} {:>12} {:>12}\n", range, ToString(layer.attention),
               ToString(layer.dense), ToString(layer.router), ToString(layer.experts),
               ToString(layer.Total()));
    first = end;
  }
}

void PrintSizes(const ModelFacts& facts) {
  const auto line = [](std::string_view what, Bytes bytes, std::string_view remark = "") {
    fmt::print("{:<16} {:>12}  {}\n", what, ToString(bytes), remark);
  };
  fmt::print("\n");
  line("embedding", facts.embedding, facts.tied_output ? "is the output, too" : "");
  line("output", facts.output);
  line("dense", facts.Dense(), "everything but routed experts");
  if (facts.config.moe.routing.experts > 0) {
    line("experts", facts.Experts());
    line("one expert", facts.LargestExpert());
  }
  if (facts.left_out > Bytes()) line("left out", facts.left_out, "guesses further tokens");
  line("read per token", facts.TouchedPerToken(), "weights");
  fmt::print("\nMemory: {} of weights, and for every {} tokens of context {} (f16) or {} (q8_0)\n",
             ToString(facts.Dense() + facts.Experts()), kContextUnit,
             ToString(facts.KvPerToken(KvType::kF16) * kContextUnit),
             ToString(facts.KvPerToken(KvType::kQ8_0) * kContextUnit));
  if (facts.StatePerSequence() > Bytes()) {
    fmt::print("A sequence has a state of {} besides, however long it is\n",
               ToString(facts.StatePerSequence()));
  }
}

void PrintTensors(const GgufModel& model) {
  fmt::print("\n{:<36} {:<8} {:<24} {:>12}  {}\n", "tensor", "type", "shape", "bytes", "at");
  for (const TensorInfo& tensor : model.tensors()) {
    const std::string file =
        model.files().size() > 1 ? fmt::format("part {} ", tensor.file + 1) : "";
    fmt::print("{:<36} {:<8} {:<24} {:>12}  {}{}\n", Printable(tensor.name), Name(tensor.type),
               DescribeShape(tensor), tensor.bytes.count(), file, tensor.offset);
  }
}

Json TensorsAsJson(const GgufModel& model) {
  Json list = Json::Array();
  for (const TensorInfo& tensor : model.tensors()) {
    list.push_back({{"name", tensor.name},
                    {"type", Name(tensor.type)},
                    {"shape", std::vector(tensor.dims.begin(), tensor.dims.begin() + tensor.rank)},
                    {"bytes", tensor.bytes.count()},
                    {"file", tensor.file},
                    {"offset", tensor.offset}});
  }
  return list;
}

Json FactsAsJson(const ModelFacts& facts) {
  const ModelConfig& config = facts.config;
  Json types, layers = Json::Array();
  for (const TypeShare& share : facts.types) {
    types[std::string(Name(share.type))] = {{"tensors", share.tensors},
                                            {"bytes", share.bytes.count()}};
  }
  for (const LayerBytes& layer : facts.layers) {
    layers.push_back({{"attention_bytes", layer.attention.count()},
                      {"dense_bytes", layer.dense.count()},
                      {"router_bytes", layer.router.count()},
                      {"expert_bytes", layer.experts.count()},
                      {"norm_bytes", layer.norms.count()}});
  }
  return {{"architecture", Name(config.architecture)},
          {"name", config.name},
          {"layers", config.layers},
          {"width", config.width},
          {"vocabulary", config.vocabulary},
          {"trained_context", config.trained_context},
          {"experts", config.moe.routing.experts},
          {"experts_per_token", config.moe.routing.top_k},
          {"weights", facts.weights},
          {"file_bytes", facts.file.count()},
          {"dense_bytes", facts.Dense().count()},
          {"expert_bytes", facts.Experts().count()},
          {"one_expert_bytes", facts.LargestExpert().count()},
          {"bytes_per_token", facts.TouchedPerToken().count()},
          {"kv_bytes_per_token_f16", facts.KvPerToken(KvType::kF16).count()},
          {"kv_bytes_per_token_q8_0", facts.KvPerToken(KvType::kQ8_0).count()},
          {"state_bytes_per_sequence", facts.StatePerSequence().count()},
          {"left_out_bytes", facts.left_out.count()},
          {"types", std::move(types)},
          {"layer_bytes", std::move(layers)}};
}

std::string InWords(std::uint64_t weights) {
  const auto number = static_cast<double>(weights);
  return number < 0.1e9 ? fmt::format("{:.3g} million", number * 1e-6)
                        : fmt::format("{:.3g} billion", number * 1e-9);
}

Status InspectCommand::Run() {
  TROUPE_ASSIGN_OR_RETURN(const GgufModel model, GgufModel::Open(model_));
  TROUPE_ASSIGN_OR_RETURN(const ModelFacts facts, InspectModel(model));
  Json record = {{"model", model_}};
  record.Update(FactsAsJson(facts));
  if (tensors_) record["tensors"] = TensorsAsJson(model);
  if (verify_) return Verify(model, std::move(record));
  if (!json_.empty()) {
    TROUPE_RETURN_IF_ERROR(WriteJson(record, json_));
    if (json_ == "-") return OkStatus();
  }
  fmt::print("{}: {} weights in {}, of which a token uses {}\n\n", Printable(model_),
             InWords(facts.weights), ToString(facts.file), ToString(facts.TouchedPerToken()));
  for (const std::string& line : Describe(facts.config)) fmt::print("{}\n", line);
  fmt::print("file          {} in {} file{}, {:.4g} G weights\n", ToString(facts.file),
             model.files().size(), model.files().size() == 1 ? "" : "s",
             static_cast<double>(facts.weights) * 1e-9);
  for (const TypeShare& share : facts.types) {
    fmt::print("type          {:<5} {:>12} in {} tensors\n", Name(share.type),
               ToString(share.bytes), share.tensors);
  }
  PrintLayers(facts);
  PrintSizes(facts);
  if (tensors_) PrintTensors(model);
  return OkStatus();
}

}  // namespace

std::unique_ptr<Command> MakeInspectCommand() { return std::make_unique<InspectCommand>(); }

}  // namespace troupe
