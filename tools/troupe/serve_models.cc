#include "troupe/serve_models.h"

#include <algorithm>
#include <ctime>
#include <filesystem>
#include <iterator>
#include <utility>

#include "api/model_access.h"
#include "base/available_cpus.h"
#include "cluster/face/certificate_expiry.h"
#include "gguf/reader.h"
#include "machine/process_memory.h"
#include "runtime/answer_digest.h"
#include "runtime/machine_costs.h"
#include "runtime/model_work.h"
#include "runtime/plan_model.h"
#include "server/cut_host.h"
#include "store/model_fingerprint.h"
#include "troupe/cluster_metrics.h"
#include "troupe/cluster_record.h"
#include "troupe/fitted_cuts.h"
#include "troupe/node_opener.h"
#include "troupe/remark.h"
#include "troupe/run_record.h"
#include "troupe/split_metrics.h"
#include "troupe/split_record.h"

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
    Remark("prefixes: {} pages{} from {}, {} left out\n", report->pages,
           report->states > 0 ? fmt::format(" and {} states", report->states) : "", report->path,
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
                                                std::function<void(const Status&)> fail,
                                                std::function<std::string()> log_trouble,
                                                std::string remark) {
  if (!flags.cluster().any()) return std::unique_ptr<RunningNode>();
  TROUPE_ASSIGN_OR_RETURN(ClusterOptions options, flags.cluster().Read());
  if (options.address.empty()) {
    TROUPE_RETURN_IF_ERROR(options.etcd ? ListenTowardsEtcd(options)
                                        : ListenAsOneOfTheList(options));
  }
  TROUPE_RETURN_IF_ERROR(ListenForOtherMachines(options));
  options.say = [](const std::string& line) { Remark("cluster: {}\n", line); };
  options.fail = std::move(fail);
  options.log_trouble = std::move(log_trouble);
  options.remark = std::move(remark);
  TROUPE_CHECK(NodeOpener() != nullptr);  // another program has gone over to one that has it
  return NodeOpener()(engine, std::move(options));
}

// The cloud's answers are exact, and any answer may go on there. So of what is chosen here drafts
// alone may lose quality, which the cloud checks.
void LetDraftsAloneLose(const SplitFlags& split, EngineFlags& engine) {
  if (!split.may_ask_cloud()) return;
  if (!engine.options().offload.exact()) {
    Remark(
        "note: answers are exact, as the cloud's are: {}; with --place end this machine's own "
        "answers lose the quality that these options allow\n",
        split.may_draft() ? "only guesses for the cloud lose quality" : "nothing loses quality");
    if (!split.may_draft()) engine.LoseNothing();
  }
  if (split.may_draft()) engine.LoseForDraftsAlone();
}

// Its peers go on with the model of now: with another one this node would be none of them, and end.
Status CheckIsThatOfTheCluster(const std::string& path, const ModelFingerprint& now, bool by_etcd) {
  TROUPE_ASSIGN_OR_RETURN(const GgufModel file, GgufModel::Open(path));
  TROUPE_ASSIGN_OR_RETURN(const ModelFingerprint next, FingerprintModel(file));
  if (next.words == now.words) return OkStatus();
  return Error(Code::kFailedPrecondition,
               "model: {} is another model than the cluster's, which all of its nodes change by "
               "stopping{}",
               path, by_etcd ? " (--new-model)" : "");
}

// With one that has expired the node would end once it is opened anew.
Status CheckCertificate(const ClusterOptions& options) {
  const std::string& certificate = options.transport.tls.certificate;
  if (certificate.empty()) return OkStatus();
  TROUPE_ASSIGN_OR_RETURN(const std::int64_t expires, ExpiryOfCertificate(certificate));
  return RemarkOnExpiry(certificate, expires, std::time(nullptr)).status();
}

// By which an end and its cloud know that they would say the same.
Result<ModelProof> ProofOf(Engine& engine) {
  TROUPE_CHECK(engine.fingerprint().has_value());  // ServeFlags::EngineWith asks for it
  ModelProof proof{.model = engine.fingerprint()->words};
  TROUPE_ASSIGN_OR_RETURN(proof.arithmetic, AnswerDigest(engine));
  return proof;
}

// Null: none of its prompts may be cut.
std::shared_ptr<CutHost> OpenCutsFor(Model& model, const ServeFlags& flags) {
  const std::size_t tokens = flags.split().cut_tokens_of_cloud();
  Engine& engine = ModelAccess::EngineOf(model);
  if (tokens == 0) return nullptr;
  Result<std::shared_ptr<CutHost>> host =
      CutHost::Create(engine, ModelAccess::GapsOf(model), tokens,
                      BasesOf(FittedCuts(flags.model(), *engine.fingerprint())));
  if (host.ok()) return *std::move(host);
  Remark("no prompts are cut by layers: {}\n", host.status().message());
  return nullptr;
}

// Absent: the cache of experts stays as it is planned. What is locked cannot be given back, and
// what is held for a cluster has been promised to others. To be asked before the engine's flags are
// fitted to the device.
std::optional<MemoryWatchOptions> FollowsMemory(const ServeFlags& flags,
                                                const EngineFlags& engine) {
  if (engine.locks() || flags.cluster().any()) return std::nullopt;
  return MemoryWatchOptions{.named = engine.says_memory(), .explain = flags.explain()};
}

// As they were measured here before; else they are measured now, if that may be.
ExpertNeeds NeedsHere(const PlannedModel& model, bool may_measure) {
  const std::uint32_t threads = model.plan.threads;
  const auto by = [&model](const CostModel& costs) {
    return NeedsOf(*model.config, model.measure.experts, costs);
  };
  ExpertNeeds needs = by(RememberedCosts(threads, /*disk_file=*/""));
  if (needs.experts == 0 || needs.seconds > 0 || !may_measure) return needs;
  CostModelFile file = CostModelFile::Load(ThisMachine());
  const Result<MachineCosts> costs =
      AskCosts({.threads = threads,
                .shapes = DistinctShapes(model.file, model.measure.experts),
                .memory = ProbeMemoryWithin(model.plan.memory.budget)},
               file);
  ReturnFreeMemory();  // the plan that follows would miss it
  if (!costs.ok()) {
    Remark("speed sets no limit to experts: {}\n", costs.status().message());
    return needs;
  }
  needs = by(costs->model);
  Remark("an expert takes {:.1f} us for a token here, measured now\n", needs.seconds * 1e6);
  return needs;
}

// Each may be null.
std::vector<ExtraMetric> MetricsBeside(const RunningNode* node, const EndAnswers* end,
                                       const CutHost* cuts) {
  std::vector<ExtraMetric> all;
  if (node != nullptr) all = MetricsOf(node->State());
  if (end != nullptr) std::ranges::move(MetricsOf(end->State()), std::back_inserter(all));
  if (cuts != nullptr)
    std::ranges::move(MetricsOf(cuts->counters(), cuts->went_on()), std::back_inserter(all));
  return all;
}

}  // namespace

ServeModels::ServeModels(std::function<bool()> go_on, std::function<void(const Status&)> fail,
                         std::function<std::string()> log_trouble)
    : go_on_(std::move(go_on)),
      fail_(std::move(fail)),
      log_trouble_(std::move(log_trouble)),
      at_start_(ResidentMemory()) {}

Status ServeModels::Check(const ServeFlags& flags) const {
  bool by_etcd = false;
  if (flags.cluster().any()) {
    TROUPE_ASSIGN_OR_RETURN(const ClusterOptions options, flags.cluster().Read());
    TROUPE_RETURN_IF_ERROR(CheckCertificate(options));
    by_etcd = options.etcd.has_value();
  }
  if (node_ != nullptr && opened_.fingerprint) {
    TROUPE_RETURN_IF_ERROR(CheckIsThatOfTheCluster(flags.model(), *opened_.fingerprint, by_etcd));
  }
  const Status status =
      PlanModel(flags.model(), flags.EngineWith(held_).options(), PlanFor::kReplacement).status();
  ReturnFreeMemory();
  return status;
}

Result<ServedModel> ServeModels::Open(const ServeFlags& flags) {
  TROUPE_ASSIGN_OR_RETURN(ServiceOptions options, flags.Service());
  ReturnFreeMemory();  // what one that could not be opened has left
  const Bytes now = ResidentMemory();
  held_ = now - std::min(now, at_start_);
  EngineFlags engine_flags = flags.EngineWith(held_);
  // A cluster's plan says what is held; and while models are changed, requests wait.
  if (opened_.path.empty() && !flags.cluster().any()) engine_flags.FillsCache();
  DeviceWatch::Options device;
  const std::optional<MemoryWatchOptions> memory = FollowsMemory(flags, engine_flags);
  if (flags.split().has_cloud()) {
    TROUPE_ASSIGN_OR_RETURN(device, FitToDevice(flags, engine_flags));
  }
  LetDraftsAloneLose(flags.split(), engine_flags);
  opened_ = {.path = flags.model(),
             .offload = engine_flags.options().offload,
             .files = LookAtModelFiles(flags.model(), engine_flags.options().offload),
             .prefix_file = flags.prefix_file(),
             .fingerprint = std::nullopt};
  TROUPE_ASSIGN_OR_RETURN(std::unique_ptr<Engine> engine,
                          engine_flags.Open(/*least_context=*/0, /*trace=*/std::nullopt, go_on_));
  if (flags.cluster().any()) opened_.fingerprint = engine->fingerprint();
  if (flags.explain()) {
    TROUPE_ASSIGN_OR_RETURN(const Sampling sampling, flags.sampler().Sampler());
    PrintPlan(*engine, sampling);
  }
  ModelProof proof;
  if (flags.split().any()) {
    TROUPE_ASSIGN_OR_RETURN(proof, ProofOf(*engine));
  }
  std::unique_ptr<Model> model;  // before the node, which ends first wherever this returns
  TROUPE_ASSIGN_OR_RETURN(std::unique_ptr<RunningNode> node,
                          OpenNodeOf(*engine, flags, fail_, log_trouble_, prefixes_lost_));
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
  if (flags.split().for_ends()) {
    served.for_ends = proof;
    served.cuts = OpenCutsFor(*served.model, flags);
  }
  if (flags.split().has_cloud()) {
    if (const Status opened = OpenEnd(flags, proof, std::move(device), memory, served);
        !opened.ok()) {
      node.reset();  // its threads use the engine
      return opened;
    }
  }
  if (node != nullptr || end_ != nullptr || served.cuts != nullptr) {
    served.more = [node = node.get(), end = end_.get(), cuts = served.cuts.get()] {
      return MetricsBeside(node, end, cuts);
    };
  }
  if (node != nullptr) {
    served.cluster = [node = node.get()] { return RecordOf(node->State()); };
    served.cluster_plan = [node = node.get()] { return RecordOf(node->Holdings()); };
    served.cluster_orders["drain"] = [node = node.get()] { return node->Drain(); };
    served.cluster_orders["readmit"] = [node = node.get()]() -> Result<std::string> {
      TROUPE_RETURN_IF_ERROR(node->Readmit());
      return std::string("they are peers again when they come next");
    };
    served.cluster_orders["place"] = [node = node.get()] { return node->PlanNow(); };
  }
  node_ = std::move(node);
  return served;
}

Result<DeviceWatch::Options> ServeModels::FitToDevice(const ServeFlags& flags,
                                                      EngineFlags& engine) const {
  TROUPE_ASSIGN_OR_RETURN(const PlannedModel model,
                          PlanModel(flags.model(), engine.options(), PlanFor::kLook));
  const bool is_told = engine.says_memory();
  DeviceWatch::Options device{.cpus = static_cast<std::uint32_t>(AvailableCpus()),
                              .for_experts = MemoryForExperts(model.plan.memory),
                              .needs = NeedsHere(model, /*may_measure=*/!is_told),
                              .limits = {.most = flags.split().most_experts()}};
  if (is_told || device.needs.experts == 0) return device;
  // One look, which knows no load: what others compute right now says nothing of the hours to come.
  TROUPE_ASSIGN_OR_RETURN(const DeviceReport report, DeviceWatch(device).Look(/*now=*/0));
  const std::uint32_t slots = std::max(report.capability.experts, kLeastSlots);
  Remark("this device may run {} of {} experts, by {}\n", slots, device.needs.experts,
         report.capability.limit);
  engine.LimitSlots(slots);
  return device;
}

Status ServeModels::OpenEnd(const ServeFlags& flags, const ModelProof& proof,
                            DeviceWatch::Options device, std::optional<MemoryWatchOptions> memory,
                            ServedModel& served) {
  TROUPE_ASSIGN_OR_RETURN(EndOptions options, flags.split().Read());
  options.proof = proof;
  options.explain |= flags.explain();
  if (flags.split().reads_bases()) {
    std::vector<PricedCut> cuts =
        FittedCuts(flags.model(), *ModelAccess::EngineOf(*served.model).fingerprint());
    if (const std::optional<double> most = flags.split().cut_loss()) {
      options.cuts.by_link = CodesWithin(cuts, *most);
      options.cuts.most_loss = most;
      if (options.cuts.by_link.empty()) {
        Remark(
            "note: rows of cut prompts cross exactly: `troupe calibrate --cut` has measured no "
            "code that loses at most {:g} %\n",
            100 * *most);
      }
    }
    options.cuts.bases = BasesOf(std::move(cuts));
  }
  options.device = std::move(device);
  options.memory = std::move(memory);
  const ServedModel::Quality behind_cuts = QualityBehind(options.cuts);
  options.most_in_cloud = flags.most_in_cloud();
  options.most_answers = flags.most_requests();
  options.say = [](const std::string& line) { Remark("{}\n", line); };
  TROUPE_ASSIGN_OR_RETURN(end_, EndAnswers::Open(*served.model, std::move(options)));
  if (flags.split().may_ask_cloud()) {
    served.quality = end_->cuts_lose() ? behind_cuts : ServedModel::Quality();
  }
  served.start = [end = end_.get()](Request request, Callbacks callbacks) {
    return end->Start(std::move(request), std::move(callbacks));
  };
  served.close = [end = end_.get()] { end->Close(); };
  served.places = [end = end_.get()] { return RecordOf(end->State()); };
  return OkStatus();
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
  served.Close();
  end_.reset();
  if (!opened_.prefix_file.empty()) {
    const Status saved =
        ModelAccess::SavePrefixes(*served.model, opened_.prefix_file, CancelledUnless(go_on));
    prefixes_lost_ = saved.ok() ? "" : "prefixes are not kept: " + saved.message();
    if (!saved.ok()) Remark("{}\n", prefixes_lost_);
  }
  node_.reset();
  RememberRun(ModelAccess::EngineOf(*served.model), TokensSeen());
  served = {};
  ReturnFreeMemory();  // what the allocator keeps would be missing in the next plan
}

std::size_t BodyBytes(const ServedModel& served, std::optional<Bytes> said) {
  constexpr std::size_t kLeast = 1 << 20, kEscaped = 6;
  if (said) return said->count();
  const Engine& engine = ModelAccess::EngineOf(*served.model);
  return std::clamp(engine.plan().context() * engine.tokenizer().longest_token() * kEscaped, kLeast,
                    std::size_t{kUsualBody.count()});
}

}  // namespace troupe
