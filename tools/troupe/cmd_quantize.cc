// `troupe quantize`: a model file in another type.
#include <string>

#include "base/available_cpus.h"
#include "forge/requantize.h"
#include "gguf/reader.h"
#include "troupe/commands.h"
#include "troupe/counted.h"
#include "troupe/json_record.h"
#include "troupe/options.h"
#include "troupe/progress.h"
#include "troupe/rounding_option.h"

namespace troupe {
namespace {

class QuantizeCommand final : public Command {
 public:
  void AddOptions(Options& options) override;
  Status Run() override;

 private:
  std::string in_, out_, json_;
  RequantizeOptions options_{.threads = AvailableCpus()};
};

void QuantizeCommand::AddOptions(Options& options) {
  AddModelOption(options, "IN", in_, "Model to read (any part of a split model)").Required();
  AddOutputOption(options, "OUT", out_, "File to write").Required();
  AddTypeOption(options, "TYPE", options_.mix.type, "Type of the weights").Required();
  AddTypeOption(options, "--embedding-type", options_.mix.embedding,
                "Type of the token embedding, if different");
  AddTypeOption(options, "--output-type", options_.mix.output, "Type of the output, if different");
  AddRoundingOption(options, options_.rounding);
  AddThreadsOption(options, options_.threads);
  AddJsonOption(options, json_);
}

Status QuantizeCommand::Run() {
  TROUPE_ASSIGN_OR_RETURN(const GgufModel model, GgufModel::Open(in_));
  ProgressBar bar("quantizing");
  options_.progress = bar.Callback();
  const Stopwatch watch;
  TROUPE_ASSIGN_OR_RETURN(const RequantizeReport report, Requantize(model, options_, out_));
  bar.Clear();
  if (!json_.empty()) {
    return WriteJson({{"input", in_},
                      {"output", out_},
                      {"type", Name(options_.mix.type)},
                      {"rounding", options_.rounding == Rounding::kPlain ? "plain" : "best"},
                      {"input_bytes", model.file_bytes().count()},
                      {"output_bytes", report.bytes.count()},
                      {"tensors_converted", report.converted},
                      {"tensors_kept", report.kept},
                      {"tensors_in_fallback_types", report.fallbacks},
                      {"seconds", watch.Seconds()}},
                     json_);
  }
  fmt::print("{} has {} in {}, instead of {} in {}: {} converted, {} kept, {:.1f} s\n", out_,
             ToString(report.bytes), Name(options_.mix.type), ToString(model.file_bytes()), in_,
             Counted(report.converted, "tensor"), report.kept, watch.Seconds());
  if (report.fallbacks > 0) {
    fmt::print("{} tensors are in another type, as their rows do not fit blocks of {} elements\n",
               report.fallbacks, Info(options_.mix.type).block_elems);
  }
  return OkStatus();
}

}  // namespace

std::unique_ptr<Command> MakeQuantizeCommand() { return std::make_unique<QuantizeCommand>(); }

}  // namespace troupe
