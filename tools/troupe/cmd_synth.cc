// `troupe synth`: a model file with random weights, or a trained one with wider experts.
#include <fmt/format.h>

#include <filesystem>
#include <string>

#include "base/available_cpus.h"
#include "forge/hf_config.h"
#include "forge/synth.h"
#include "forge/widen.h"
#include "forge/widen_stream.h"
#include "gguf/reader.h"
#include "troupe/commands.h"
#include "troupe/json_record.h"
#include "troupe/options.h"
#include "troupe/progress.h"

namespace troupe {
namespace {

std::vector<std::string> SuggestedShapes() {
  const std::vector<std::string_view> names = ShapeNames();
  return {names.begin(), names.end()};
}

std::string KnownShapes() { return fmt::format("{}", fmt::join(ShapeNames(), ", ")); }

// A name from the table, or else a file.
Result<ModelShape> LoadShape(const std::string& text) {
  if (const ModelShape* shape = FindShape(text)) return *shape;
  if (!std::filesystem::exists(text)) {
    return Error(Code::kNotFound, "'{}' is neither a file nor a shape; there are {}", text,
                 KnownShapes());
  }
  return ReadHfConfig(text);
}

class SynthCommand final : public Command {
 public:
  void AddOptions(Options& options) override;
  Status CheckUsage() const override;
  Status Run() override { return widen_.empty() ? RunSynth() : RunWiden(); }

 private:
  Status RunSynth();
  Status RunWiden();

  std::string out_, shape_, tokenizer_, widen_, json_;
  SynthOptions options_{.layout = {.mix = {.type = TensorType::kQ4_0}}, .threads = AvailableCpus()};
  std::optional<std::uint32_t> layers_, vocabulary_, context_;
  std::uint32_t factor_ = 0;
  bool stream_ = false;
};

void SynthCommand::AddOptions(Options& options) {
  const auto add_count = [&](const char* name, std::optional<std::uint32_t>& count,
                             const char* help) {
    options.Add(name, count, help).Between(1u, 1u << 30).Type("N");
  };
  AddOutputOption(options, "OUT", out_, "File to write").Required();
  options
      .Add("--shape", shape_,
           fmt::format("One of {}; or a config.json from Hugging Face", KnownShapes()))
      .Suggest(SuggestedShapes())
      .Type("NAME|FILE");
  AddTypeOption(options, "--type", options_.layout.mix.type, "Type of the weights (Q4_0)");
  AddTypeOption(options, "--embedding-type", options_.layout.mix.embedding,
                "Type of the token embedding, if different");
  AddTypeOption(options, "--output-type", options_.layout.mix.output,
                "Type of the output, if different");
  options
      .AddParsed(
          "--mix",
          [this](const std::string& name) {
            options_.layout.upload = FindUploadMix(name);
            return OkStatus();
          },
          "Types as a file has them that is uploaded under this name")
      .OneOf(UploadMixNames())
      .Excludes("--type")
      .Excludes("--embedding-type")
      .Excludes("--output-type")
      .Type("NAME");
  options.Add("--seed", options_.seed, "The same seed gives the same bytes (1)").Type("N");
  add_count("--layers", layers_, "Number of layers, in place of the shape's");
  add_count("--vocab", vocabulary_, "Vocabulary size, in place of the shape's");
  add_count("--context", context_, "Context length, in place of the shape's");
  AddModelOption(options, "--tokenizer", tokenizer_,
                 "GGUF file whose vocabulary to use (a small generated vocabulary)");
  options.AddFlag("--combined-kv", options_.layout.combined_kv,
                  "deepseek2: store attn_kv_b as one tensor, as in old files");
  options.Add("--split", options_.split_bytes, "Write parts of at most this size")
      .Check(CheckSizeHasUnit)
      .Type("SIZE");
  AddModelOption(
      options, "--widen", widen_,
      "Widen this model's experts by neurons that are zero (same outputs and routing, more "
      "bytes) in place of random weights")
      .Excludes("--shape");
  options.Add("--factor", factor_, "With --widen: how many times as wide")
      .Between(2u, 4096u)
      .Needs("--widen")
      .Type("N");
  options
      .AddFlag("--stream", stream_,
               "With --widen: widen the residual stream in place of the experts, so that rows fit "
               "blocks of 256 (4, 16 or 64 times; qwen2moe)")
      .Needs("--widen");
  AddThreadsOption(options, options_.threads);
  AddJsonOption(options, json_);
}

Status SynthCommand::CheckUsage() const {
  if (!widen_.empty()) {
    return factor_ > 0 ? OkStatus() : InvalidArgument("--widen needs --factor");
  }
  if (shape_.empty()) {
    return InvalidArgument("--shape is required; one of {}, or a config.json", KnownShapes());
  }
  return OkStatus();
}

Status SynthCommand::RunSynth() {
  TROUPE_ASSIGN_OR_RETURN(ModelShape shape, LoadShape(shape_));
  shape.layers = layers_.value_or(shape.layers);
  shape.vocabulary = vocabulary_.value_or(shape.vocabulary);
  shape.context = context_.value_or(shape.context);
  if (!tokenizer_.empty()) {
    TROUPE_ASSIGN_OR_RETURN(const GgufModel model, GgufModel::Open(tokenizer_));
    options_.tokenizer = model.metadata();
  }
  ProgressBar bar("writing");
  options_.progress = bar.Callback();
  const Stopwatch watch;
  TROUPE_ASSIGN_OR_RETURN(const SynthReport report, Synthesize(shape, options_, out_));
  bar.Clear();
  if (!json_.empty()) {
    return WriteJson({{"files", report.files},
                      {"shape", shape.name},
                      {"bytes", report.bytes.count()},
                      {"drawn_from_pool", report.drawn_from_pool},
                      {"seconds", watch.Seconds()}},
                     json_);
  }
  const std::size_t more = report.files.size() - 1;
  fmt::print("{}{}: {}, {} in {:.1f} s\n", report.files.front(),
             more > 0 ? fmt::format(" and {} more parts", more) : "", shape.name,
             ToString(report.bytes), watch.Seconds());
  return OkStatus();
}

Status SynthCommand::RunWiden() {
  TROUPE_ASSIGN_OR_RETURN(const GgufModel model, GgufModel::Open(widen_));
  ProgressBar bar("widening");
  TROUPE_ASSIGN_OR_RETURN(const Bytes bytes,
                          stream_ ? WidenStream(model, factor_, out_, bar.Callback())
                                  : WidenExperts(model, factor_, out_, bar.Callback()));
  bar.Clear();
  if (!json_.empty()) {
    return WriteJson(
        {{"files", Json::Array({out_})}, {"bytes", bytes.count()}, {"factor", factor_}}, json_);
  }
  fmt::print("{}: {}, {} {} times as wide as in {}\n", out_, ToString(bytes),
             stream_ ? "stream" : "experts", factor_, widen_);
  return OkStatus();
}

}  // namespace

std::unique_ptr<Command> MakeSynthCommand() { return std::make_unique<SynthCommand>(); }

}  // namespace troupe
