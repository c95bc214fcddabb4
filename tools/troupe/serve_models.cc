#include "troupe/serve_models.h"

#include <malloc.h>

#include <algorithm>
#include <utility>

#include "api/model_access.h"
#include "machine/process_memory.h"
#include "runtime/machine_costs.h"
#include "runtime/plan_model.h"
#include "troupe/cluster_metrics.h"
#include "troupe/cluster_record.h"
#include "troupe/node_opener.h"
#include "troupe/remark.h"

namespace troupe {
namespace {

MayGoOn CancelledUnless(const std::function<bool()>& go_on) {
  return [&go_on]() -> Status {
    if (!go_on || go_on()) return OkStatus();
    return Error(Code::kCancelled, "the server is to end at once");
  };
}

// A cache: without it the server is slower at first, and nothing else. An error: it is to end.
Status LoadPrefixes(Model& model, const std::string& path, const std::function<bool()>& go_on) {
  const Result<PrefixFileReport> report =
      ModelAccess::LoadPrefixes(model, path, CancelledUnless(go_on));
  if (report.ok()) {
    Remark("prefixes: {} pages from {}, {} left out\n", report->pages, report->path,
           report->left_out);
  } else if (report.status().code() == Code::kCancelled) {
    return report.status();
  } else if (report.status().code() != Code::kNotFound) {
    Remark("beginning without prefixes: {}\n", report.status().message());
  }
  return OkStatus();
}

// Null: it is of no cluster.
Result<std::unique_ptr<RunningNode>> OpenNodeOf(Engine& engine, const ServeFlags& flags,
                                                std::function<void(const Status&)> fail) {
  if (!flags.cluster().any()) return std::unique_ptr<RunningNode>();
  TROUPE_ASSIGN_OR_RETURN(ClusterOptions options, flags.cluster().Read());
  if (options.address.empty()) TROUPE_RETURN_IF_ERROR(ListenTowardsEtcd(options));
  options.say = [](const std::string& line) { Remark("cluster: {}\n", line); };
  options.fail = std::move(fail);
  TROUPE_CHECK(NodeOpener() != nullptr);  // another program has gone over to one that has it
  return NodeOpener()(engine, std::move(options));
}

}  // namespace

ServeModels::ServeModels(std::function<bool()> go_on, std::function<void(const Status&)> fail)
    : go_on_(std::move(go_on)), fail_(std::move(fail)), at_start_(ResidentMemory()) {}

Status ServeModels::Check(const ServeFlags& flags) const {
  const Status status =
      PlanModel(flags.model(), flags.EngineWith(held_).options(), PlanFor::kReplacement).status();
  malloc_trim(0);
  return status;
}

Result<ServedModel> ServeModels::Open(const ServeFlags& flags) {
  TROUPE_ASSIGN_OR_RETURN(ServiceOptions options, flags.Service());
  malloc_trim(0);  // what one that could not be opened has left
  const Bytes now = ResidentMemory();
  held_ = now - std::min(now, at_start_);
  const EngineFlags engine_flags = flags.EngineWith(held_);
  opened_ = {.path = flags.model(),
             .offload = engine_flags.options().offload,
             .files = LookAtModelFiles(flags.model(), engine_flags.options().offload),
             .prefix_file = flags.prefix_file()};
  TROUPE_ASSIGN_OR_RETURN(std::unique_ptr<Engine> engine,
                          engine_flags.Open(/*least_context=*/0, /*trace=*/std::nullopt, go_on_));
  std::unique_ptr<Model> model;  // before the node, which ends first wherever this returns
  TROUPE_ASSIGN_OR_RETURN(std::unique_ptr<RunningNode> node, OpenNodeOf(*engine, flags, fail_));
  TROUPE_ASSIGN_OR_RETURN(model, ModelAccess::Of(std::move(engine), flags.ForRequests()));
  if (!opened_.prefix_file.empty()) {
    TROUPE_RETURN_IF_ERROR(LoadPrefixes(*model, opened_.prefix_file, go_on_));
  }
  if (node != nullptr) {
    TROUPE_RETURN_IF_ERROR(node->Begin([model = model.get()](std::function<void()> errand) {
      ModelAccess::Between(*model, std::move(errand));
    }));
  }
  ServedModel served{.model = std::move(model), .options = std::move(options)};
  if (node != nullptr) {
    served.more = [node = node.get()] { return MetricsOf(node->State()); };
    served.cluster = [node = node.get()] { return RecordOf(node->State()); };
    served.cluster_plan = [node = node.get()] { return RecordOf(node->Holdings()); };
    served.cluster_orders["drain"] = [node = node.get()] {
      node->Drain();
      return OkStatus();
    };
    served.cluster_orders["place"] = [node = node.get()] { return node->PlanNow(); };
  }
  node_ = std::move(node);
  return served;
}

std::vector<std::string> ServeModels::ChangedFiles() const {
  const std::vector<ModelFile> now = LookAtModelFiles(opened_.path, opened_.offload);
  TROUPE_CHECK(now.size() == opened_.files.size());
  std::vector<std::string> changed;
  for (std::size_t i = 0; i < now.size(); ++i) {
    if (now[i] != opened_.files[i]) changed.push_back(now[i].path);
  }
  return changed;
}

void ServeModels::Close(ServedModel& served, const std::function<bool()>& go_on) {
  served.model->Close();
  if (!opened_.prefix_file.empty()) {
    const Status saved =
        ModelAccess::SavePrefixes(*served.model, opened_.prefix_file, CancelledUnless(go_on));
    if (!saved.ok()) Remark("prefixes are not kept: {}\n", saved.message());
  }
  node_.reset();
  RememberRun(ModelAccess::EngineOf(*served.model), TokensSeen());
  served = {};
  malloc_trim(0);  // what the allocator keeps would be missing in the next plan
}

std::size_t BodyBytes(const ServedModel& served) {
  constexpr std::size_t kLeast = 1 << 20, kMost = 8 << 20, kEscaped = 6;
  const Engine& engine = ModelAccess::EngineOf(*served.model);
  return std::clamp(engine.plan().context() * engine.tokenizer().longest_token() * kEscaped, kLeast,
                    kMost);
}

}  // namespace troupe
