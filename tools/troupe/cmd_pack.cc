// `troupe pack`: a model's experts as a container that they are loaded from fastest.
#include <optional>
#include <string>

#include "base/available_cpus.h"
#include "base/clock.h"
#include "forge/pack_model.h"
#include "forge/pack_pair.h"
#include "gguf/reader.h"
#include "runtime/container_path.h"
#include "troupe/commands.h"
#include "troupe/counted.h"
#include "troupe/json_record.h"
#include "troupe/options.h"
#include "troupe/progress.h"
#include "troupe/rounding_option.h"
#include "troupe/verify_model.h"

namespace troupe {
namespace {

class PackCommand final : public Command {
 public:
  void AddOptions(Options& options) override;
  Status Run() override;

 private:
  struct Packed {
    PackReport container;
    std::uint32_t high_fallbacks = 0;  // matrices of the new model in another type than `high_`
  };

  Result<Packed> Pack(const GgufModel& model) const;
  Status WriteRecord(const Packed& made, double seconds) const;
  void PrintFigures(const Packed& made, double seconds) const;

  std::string in_, packed_, out_, json_;
  std::optional<TensorType> high_;
  PackOptions options_{.threads = AvailableCpus()};
};

void PackCommand::AddOptions(Options& options) {
  AddModelOption(options, "MODEL", in_, "Model file (any part of a split model) or name")
      .Required();
  AddOutputOption(
      options, "-o,--output", out_,
      "Container to write (MODEL with .experts in place of .gguf, where `troupe run` finds it)");
  AddTypeOption(options, "--low", options_.low,
                "Add a second copy of all experts in this smaller type");
  AddTypeOption(options, "--high", high_,
                "Write a new model with experts in this type, as MODEL-TYPE.gguf, and pack that "
                "one; both copies are made from MODEL (F32, F16, BF16 or Q8_0)");
  AddRoundingOption(options, options_.rounding);
  AddThreadsOption(options, options_.threads);
  AddJsonOption(options, json_);
}

Status PackCommand::Run() {
  TROUPE_ASSIGN_OR_RETURN(const GgufModel model, GgufModel::Open(in_));
  packed_ = high_ ? HighModelPathFor(in_, *high_) : in_;
  if (out_.empty()) out_ = ContainerPathFor(packed_);
  ProgressBar bar("packing");
  options_.progress = bar.Callback();
  const Stopwatch watch;
  const std::string checksums = ChecksumsPathFor(out_);
  if (!high_) TROUPE_RETURN_IF_ERROR(RefuseDamaged(model, options_.threads, checksums));
  TROUPE_ASSIGN_OR_RETURN(const Packed made, Pack(model));
  bar.Clear();
  TROUPE_ASSIGN_OR_RETURN(const GgufModel packed, GgufModel::Open(packed_));
  TROUPE_RETURN_IF_ERROR(WriteChecksums(packed, options_.threads, checksums));
  if (!json_.empty()) return WriteRecord(made, watch.Seconds());
  PrintFigures(made, watch.Seconds());
  return OkStatus();
}

Result<PackCommand::Packed> PackCommand::Pack(const GgufModel& model) const {
  if (!high_) {
    TROUPE_ASSIGN_OR_RETURN(const PackReport container, PackModel(model, options_, out_));
    return Packed{.container = container};
  }
  TROUPE_ASSIGN_OR_RETURN(const PackPairReport pair,
                          PackPair(model, *high_, options_, packed_, out_));
  return Packed{.container = pair.container, .high_fallbacks = pair.model.fallbacks};
}

Status PackCommand::WriteRecord(const Packed& made, double seconds) const {
  const PackReport& report = made.container;
  return WriteJson({{"model", packed_},
                    {"made_from", in_},
                    {"output", out_},
                    {"output_bytes", report.bytes.count()},
                    {"layers", report.layers},
                    {"experts_per_layer", report.experts},
                    {"expert_bytes", report.full.count()},
                    {"high_type", high_ ? Json(Name(*high_)) : Json(nullptr)},
                    {"low_type", options_.low ? Json(Name(*options_.low)) : Json(nullptr)},
                    {"low_expert_bytes", report.low.count()},
                    {"matrices_in_fallback_types", made.high_fallbacks + report.fallbacks},
                    {"high_matrices_in_fallback_types", made.high_fallbacks},
                    {"seconds", seconds}},
                   json_);
}

void PackCommand::PrintFigures(const Packed& made, double seconds) const {
  const PackReport& report = made.container;
  const std::uint64_t experts = std::uint64_t{report.layers} * report.experts;
  fmt::print("packed {} into {}: {}, {} layers of {} experts of {}", Counted(experts, "expert"),
             out_, ToString(report.bytes), report.layers, report.experts,
             ToString(Bytes(report.full.count() / experts)));
  if (options_.low) {
    fmt::print(", once more in {} of {}", Name(*options_.low),
               ToString(Bytes(report.low.count() / experts)));
  }
  fmt::print(", {:.1f} s\n", seconds);
  if (high_) fmt::print("{}: {} with experts in {}\n", packed_, in_, Name(*high_));
  fmt::print("{}: checksums of all tensors, for `troupe inspect --verify`\n",
             ChecksumsPathFor(out_));
  if (made.high_fallbacks > 0) {
    fmt::print("{} matrices of the model are in another type than {}, which they do not fit\n",
               made.high_fallbacks, Name(*high_));
  }
  if (report.fallbacks > 0) {
    fmt::print(
        "{} matrices of the second copy are in another type than {}, which they do not fit\n",
        report.fallbacks, Name(*options_.low));
  }
}

}  // namespace

std::unique_ptr<Command> MakePackCommand() { return std::make_unique<PackCommand>(); }

}  // namespace troupe
