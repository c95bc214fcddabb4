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
  void AddOptions(CLI::App& app) override;
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

void SynthCommand::AddOptions(CLI::App& app) {
  const auto add_count = [&](const char* name, std::optional<std::uint32_t>& count,
                             const char* help) {
    app.add_option(name, count, help)->check(Between(1u, 1u << 30))->type_name("N");
  };
  app.add_option("OUT", out_, "The file to write")->required()->type_name("FILE");
  CLI::Option* shape =
      app.add_option("--shape", shape_,
                     fmt::format("One of {}; or a config.json from Hugging Face", KnownShapes()))
          ->type_name("NAME|FILE");
  AddTypeOption(app, "--type", options_.layout.mix.type, "Type of the weights (Q4_0)");
  AddTypeOption(app, "--embedding-type", options_.layout.mix.embedding,
                "Type of the token embedding, if another");
  AddTypeOption(app, "--output-type", options_.layout.mix.output, "Type of the output, if another");
  app.add_option("--seed", options_.seed, "The same seed gives the same bytes (1)")->type_name("N");
  add_count("--layers", layers_, "Layers, in place of the shape's");
  add_count("--vocab", vocabulary_, "Vocabulary, in place of the shape's");
  add_count("--context", context_, "Context, in place of the shape's");
  app.add_option("--tokenizer", tokenizer_,
                 "A GGUF file whose vocabulary to use (a small generated one)")
      ->type_name("FILE");
  app.add_flag("--combined-kv", options_.layout.combined_kv,
               "deepseek2: attn_kv_b in one piece, as old files have it");
  AddBytesOption(app, "--split", options_.split_bytes, "Write parts of at most this size");
  CLI::Option* widen =
      app.add_option("--widen", widen_,
                     "Do not invent weights: widen this model's experts by neurons that are zero "
                     "(same outputs and routing, more bytes)")
          ->type_name("FILE")
          ->excludes(shape);
  app.add_option("--factor", factor_, "With --widen: how many times as wide")
      ->check(Between(2u, 4096u))
      ->type_name("N")
      ->needs(widen);
  app.add_flag("--stream", stream_,
               "With --widen: widen the residual stream in place of the experts, so that rows fit "
               "blocks of 256 (4, 16 or 64 times; qwen2moe)")
      ->needs(widen);
  AddThreadsOption(app, options_.threads);
  AddJsonOption(app, json_);
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
