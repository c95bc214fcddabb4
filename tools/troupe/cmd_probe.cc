// `troupe probe`: how fast this machine reads memory and disk, computes experts, and reaches the
// cards it has. Shows what was measured before, measures what was not; cards are measured each
// time, and last, as a driver may hang.
#include <algorithm>
#include <cstdio>
#include <string>

#include "base/available_cpus.h"
#include "gguf/reader.h"
#include "model/config.h"
#include "model/weight_loader.h"
#include "runtime/machine_costs.h"
#include "runtime/model_store.h"
#include "runtime/model_work.h"
#include "troupe/commands.h"
#include "troupe/gpu_figures.h"
#include "troupe/json_record.h"
#include "troupe/options.h"

namespace troupe {
namespace {

std::string_view When(bool now) {
  return now ? "measured now" : "measured before (--fresh measures again)";
}

Json Figure(const RunningMean& mean) { return mean.measured() ? Json(mean.value) : Json(nullptr); }

std::string Rate(const RunningMean& mean) {
  return mean.measured() ? fmt::format("{:.1f}", mean.value / 1e6) : "-";
}

class ProbeCommand final : public Command {
 public:
  void AddOptions(Options& options) override {
    AddModelOption(options, "MODEL", model_,
                   "Model whose disk and expert shapes to measure (without a model: only memory)");
    options
        .Add("--experts", container_,
             "Packed experts to measure the disk with; none: use the model file (MODEL.experts if "
             "it exists)")
        .Suggest({"none"})
        .Type("FILE");
    options.AddFlag("--fresh", fresh_, "Measure again what was measured before");
    options
        .Add("--gpu", gpu_,
             "Cards to test and measure: auto (every card), none (loads no driver, as one may "
             "hang), or a part of a device's name or platform (auto)")
        .Suggest({"auto", "none"})
        .Type("NAME");
    AddThreadsOption(options, threads_);
    AddJsonOption(options, json_);
  }

  Status CheckUsage() const override {
    if (model_.empty() && !container_.empty()) return InvalidArgument("--experts needs a MODEL");
    return OkStatus();
  }

  Status Run() override {
    CostQuestion question{.threads = static_cast<std::uint32_t>(threads_), .fresh = fresh_};
    if (!model_.empty()) TROUPE_RETURN_IF_ERROR(AskAboutModel(question));
    TROUPE_RETURN_IF_ERROR(CheckGpuChoice(gpu_));
    const MachineId machine = ThisMachine();
    CostModelFile file = CostModelFile::Load(machine);
    TROUPE_ASSIGN_OR_RETURN(const MachineCosts costs, AskCosts(question, file));
    if (json_ != "-") Print(machine, question, costs, file.path());
    std::fflush(stdout);  // whatever a driver does now
    std::vector<GpuExpertShape> shapes;
    for (const ExpertLayout& shape : question.shapes) shapes.push_back(OnACard(shape));
    const FoundGpus cards = FiguresOfGpus(gpu_, shapes);
    if (json_ != "-") fmt::print("{}", GpuLines(cards, KeysOf(question)));
    if (json_.empty()) return OkStatus();
    return WriteJson(Record(machine, question, costs, cards, file.path()), json_);
  }

 private:
  Status AskAboutModel(CostQuestion& question) const {
    TROUPE_ASSIGN_OR_RETURN(const GgufModel model, GgufModel::Open(model_));
    TROUPE_ASSIGN_OR_RETURN(const ModelConfig config, ReadModelConfig(model.metadata()));
    TROUPE_ASSIGN_OR_RETURN(const WeightMeasure measure, MeasureWeights(model, config));
    TROUPE_ASSIGN_OR_RETURN(const std::string container, FindContainer(model, container_));
    question.shapes = DistinctShapes(model, measure.experts);
    question.disk_file = container.empty() ? model.path() : container;
    return OkStatus();
  }

  static GpuExpertShape OnACard(const ExpertLayout& shape) {
    const auto& [gate, up, down] = shape.matrices;
    return {.types = {gate.type, up.type, down.type},
            .width = static_cast<std::uint32_t>(gate.cols),
            .ff = static_cast<std::uint32_t>(gate.rows),
            .takes_up = shape.TakesUp()};
  }

  static std::vector<std::string> KeysOf(const CostQuestion& question) {
    std::vector<std::string> keys;
    for (const ExpertLayout& shape : question.shapes) keys.push_back(ShapeKey(shape));
    return keys;
  }

  static void Print(const MachineId& machine, const CostQuestion& question,
                    const MachineCosts& costs, const std::string& kept) {
    PrintFirst(question, costs);
    fmt::print("machine   {}, {} processors, {} kernels\n", machine.cpu, machine.cpus,
               machine.kernels);
    fmt::print("memory    {:.1f} GB/s read by {} threads, {}\n",
               costs.model.memory_bytes_per_second.value / 1e9, question.threads,
               When(costs.memory_measured));
    PrintDisk(question, costs);
    for (const ExpertLayout& shape : question.shapes) PrintShape(ShapeKey(shape), costs);
    if (!kept.empty()) fmt::print("kept in   {}\n", kept);
  }

  static void PrintFirst(const CostQuestion& question, const MachineCosts& costs) {
    fmt::print("this machine reads {:.1f} GB/s of memory",
               costs.model.memory_bytes_per_second.value / 1e9);
    double disk = 0;
    for (const ReadCost& read : costs.model.disk.reads) {
      if (read.bytes_per_second.measured()) disk = std::max(disk, read.bytes_per_second.value);
    }
    if (!question.disk_file.empty()) fmt::print(" and {:.2f} GB/s of its disk", disk / 1e9);
    const ExpertCost* const expert =
        question.shapes.empty() ? nullptr : costs.model.Find(ShapeKey(question.shapes.front()));
    if (expert != nullptr) {
      fmt::print(", and computes an expert in {:.0f} us", expert->first_row.value * 1e6);
    }
    fmt::print("\n");
  }

  static void PrintDisk(const CostQuestion& question, const MachineCosts& costs) {
    if (question.disk_file.empty()) {
      fmt::print("disk      needs a MODEL on it\n");
      return;
    }
    const DiskCost& disk = costs.model.disk;
    fmt::print("disk      that of {}{}, {}\n", question.disk_file,
               disk.direct ? "" : " (through the page cache: its file system has no O_DIRECT)",
               When(costs.disk_measured));
    fmt::print("  {:>10} {:>12} {:>18} {:>14}\n", "request", "alone us", "queue full MB/s",
               "in runs MB/s");
    for (const ReadCost& read : disk.reads) {
      fmt::print("  {:>10} {:>12.1f} {:>18} {:>14}\n", ToString(read.request),
                 read.lone_seconds.value * 1e6, Rate(read.bytes_per_second), Rate(read.in_runs));
    }
  }

  static bool MeasuredNow(const MachineCosts& costs, const std::string& shape) {
    return std::find(costs.shapes_measured.begin(), costs.shapes_measured.end(), shape) !=
           costs.shapes_measured.end();
  }

  static void PrintShape(const std::string& shape, const MachineCosts& costs) {
    const ExpertCost* cost = costs.model.Find(shape);
    if (cost == nullptr) return;
    fmt::print("expert    {}: {:.1f} us, a further row {:.1f} us, {}\n", shape,
               cost->first_row.value * 1e6, cost->further_row.value * 1e6,
               When(MeasuredNow(costs, shape)));
  }

  Json Record(const MachineId& machine, const CostQuestion& question, const MachineCosts& costs,
              const FoundGpus& cards, const std::string& kept) const {
    Json record;
    record["model"] = model_.empty() ? Json(nullptr) : Json(model_);
    record["cpu"] = machine.cpu;
    record["cpus"] = machine.cpus;
    record["kernels"] = machine.kernels;
    record["threads"] = question.threads;
    record["memory"] = {{"bytes_per_s", Figure(costs.model.memory_bytes_per_second)},
                        {"measured_now", costs.memory_measured}};
    record["disk"] = nullptr;
    if (!question.disk_file.empty()) {
      Json reads = Json::Array();
      for (const ReadCost& read : costs.model.disk.reads) {
        reads.push_back({{"request_bytes", read.request.count()},
                         {"lone_s", Figure(read.lone_seconds)},
                         {"full_queue_bytes_per_s", Figure(read.bytes_per_second)},
                         {"in_runs_bytes_per_s", Figure(read.in_runs)}});
      }
      record["disk"] = {{"file", question.disk_file},
                        {"direct", costs.model.disk.direct},
                        {"measured_now", costs.disk_measured},
                        {"reads", std::move(reads)}};
    }
    record["experts"] = Json::Array();
    for (const ExpertLayout& layout : question.shapes) {
      const std::string shape = ShapeKey(layout);
      const ExpertCost* cost = costs.model.Find(shape);
      if (cost == nullptr) continue;
      record["experts"].push_back({{"shape", shape},
                                   {"first_row_s", Figure(cost->first_row)},
                                   {"further_row_s", Figure(cost->further_row)},
                                   {"measured_now", MeasuredNow(costs, shape)}});
    }
    record["cards"] = Json::Array();
    for (const GpuFigures& card : cards.cards) {
      record["cards"].push_back(GpuRecord(card, KeysOf(question)));
    }
    record["cards_why"] = nullptr;
    if (!cards.why_none.ok()) record["cards_why"] = cards.why_none.message();
    if (gpu_ == "none") record["cards_why"] = "--gpu none";
    record["kept_in"] = kept;
    return record;
  }

  std::string model_, container_, json_, gpu_ = "auto";
  std::size_t threads_ = AvailableCpus();
  bool fresh_ = false;
};

}  // namespace

std::unique_ptr<Command> MakeProbeCommand() { return std::make_unique<ProbeCommand>(); }

}  // namespace troupe
