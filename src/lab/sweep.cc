#include "lab/sweep.h"

#include <xxhash.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <optional>

#include "expert/prefetch/worth_prefetch.h"
#include "gguf/reader.h"
#include "runtime/reading_conditions.h"
#include "store/model_fingerprint.h"

namespace troupe {
namespace {

constexpr std::uint32_t kVersion = 4;

class Sweep {
 public:
  Sweep(const SweepOptions& options, const SweepHooks& hooks) : options_(options), hooks_(hooks) {
    evaluation_ = options.evaluation;
    if (!evaluation_.together) evaluation_.together = 1;
  }

  // Everything that can be refused is refused before anything is measured.
  Result<std::vector<SweepPoint>> Run() {
    TROUPE_RETURN_IF_ERROR(CheckText());
    TROUPE_RETURN_IF_ERROR(NameChains());
    TROUPE_ASSIGN_OR_RETURN(const Json common, Common());
    std::error_code error;
    std::filesystem::create_directories(options_.folder, error);
    if (error) return ErrnoStatus(error.value(), options_.folder);
    TROUPE_ASSIGN_OR_RETURN(SweepPoints points,
                            SweepPoints::Open(options_.folder + "/points.jsonl", common));
    if (points.points().empty()) {  // answers of who knows what: nothing was compared with them
      std::filesystem::remove(LogitsPath(), error);
    }
    std::vector<SweepPoint> all;
    for (const double resident : options_.resident) {
      for (const std::string& chain : chains_) {
        const SweepPoint* known = points.Find(resident, chain);
        const bool measured_now = known == nullptr;
        if (measured_now) {
          TROUPE_ASSIGN_OR_RETURN(const SweepPoint point, Measure(resident, chain));
          TROUPE_RETURN_IF_ERROR(points.Add(point));
          known = &points.points().back();
        }
        all.push_back(*known);
        ++done_;
        if (hooks_.on_point) hooks_.on_point(*known, measured_now);
      }
    }
    return all;
  }

 private:
  std::string LogitsPath() const { return options_.folder + "/exact.logits"; }

  std::span<const TokenId> Scored() const {
    return std::span(options_.text).subspan(options_.settle);
  }

  Status CheckText() const {
    if (options_.text.size() >= options_.settle + 2) return OkStatus();
    return InvalidArgument("{}: {} tokens, expected more than the {} that only fill the cache",
                           options_.text_name, options_.text.size(), options_.settle);
  }

  // What every point is compared with.
  EngineOptions ExactEngine() const {
    EngineOptions options = options_.engine;
    options.offload.lossiness = Exact{};
    options.offload.low_copies = {};
    options.offload.gate = {};
    return options;
  }

  EngineOptions EngineFor(double resident, const std::string& chain) const {
    EngineOptions options = options_.engine;
    options.offload.lossiness = Chain{chain};
    // Where a layer needs more than its slots, the same give way on every run.
    options.offload.in_order = true;
    options.offload.substitution_tokens = static_cast<std::uint32_t>(*evaluation_.together);
    options.offload.slots = SlotsOf(resident);
    return options;
  }

  std::uint32_t SlotsOf(double resident) const {
    return std::max<std::uint32_t>(1, static_cast<std::uint32_t>(std::lround(resident * experts_)));
  }

  // Under the names that they print themselves by, each once.
  Status NameChains() {
    TROUPE_ASSIGN_OR_RETURN(const PlannedModel plain, PlanModel(options_.model, ExactEngine()));
    experts_ = plain.plan.needs.AllExperts();
    if (experts_ == 0) return InvalidArgument("{}: has no experts", options_.model);
    TROUPE_ASSIGN_OR_RETURN(const ModelFingerprint fingerprint, FingerprintModel(plain.file));
    fingerprint_ = ToString(fingerprint);
    TROUPE_ASSIGN_OR_RETURN(container_, HashOfContainer(plain.container));
    chains_ = {"exact"};
    for (const std::string& chain : options_.chains) {
      TROUPE_ASSIGN_OR_RETURN(
          const PlannedModel planned,
          PlanModel(options_.model, EngineFor(options_.resident.front(), chain)));
      const std::string name = ToString(planned.substitution);
      if (std::ranges::find(chains_, name) == chains_.end()) chains_.push_back(name);
    }
    return OkStatus();
  }

  Result<Json> Common() const {
    const OffloadOptions& offload = options_.engine.offload;
    TROUPE_ASSIGN_OR_RETURN(const std::string profile,
                            HashOfProfile(options_.model, offload.profile));
    TROUPE_ASSIGN_OR_RETURN(const std::string buddies,
                            HashOfBuddies(options_.model, offload.buddies));
    Json common = {
        {"format", "troupe sweep"},
        {"version", kVersion},
        {"model", std::filesystem::path(options_.model).filename().string()},
        {"fingerprint", fingerprint_},
        {"text", std::filesystem::path(options_.text_name).filename().string()},
        {"text_tokens", options_.text.size()},
        {"text_hash", fmt::format("{:016x}", XXH3_64bits(options_.text.data(),
                                                         options_.text.size() * sizeof(TokenId)))},
        {"window", evaluation_.window},
        {"warm_up", evaluation_.warm_up},
        {"begin", evaluation_.begin.value_or(-1)},
        {"settle", options_.settle},
        {"together", *evaluation_.together},
        {"kv_type", options_.engine.kv_type == KvType::kQ8_0 ? "q8_0" : "f16"},
        {"chunk", options_.engine.chunk},
        {"cache", offload.policy},
        {"cache_share", offload.sharing == CacheSharing::kGlobal ? "global" : "layer"},
        {"shallow", offload.shallow_layers ? Json(*offload.shallow_layers) : Json()},
        {"predict", offload.predictor},
        {"governed", offload.prefetch.governed},
        {"fill", offload.fill != FillCache::kNo},
        {"container", container_},
        {"profile", profile},
        {"buddies", buddies},
        {"low_copy", ToString(offload.low_copies)},
        {"link", ToString(offload.link)}};
    if (WorthPrefetch::IsMeant(offload.predictor)) {
      TROUPE_ASSIGN_OR_RETURN(common["scores"],
                              HashOfScoreTables(options_.model, offload.score_tables));
    }
    return common;
  }

  std::function<void(std::size_t, std::size_t)> Progress(const std::string& what) const {
    if (!hooks_.progress) return {};
    return [this, what](std::size_t done, std::size_t all) {
      hooks_.progress(
          static_cast<double>(done_) + static_cast<double>(done) / static_cast<double>(all),
          options_.resident.size() * chains_.size(), what);
    };
  }

  // What every point is compared with; made once and kept beside the points.
  Status MakeReference(const std::string& path) {
    TROUPE_ASSIGN_OR_RETURN(const std::unique_ptr<Engine> engine,
                            Engine::Open(options_.model, ExactEngine()));
    TROUPE_ASSIGN_OR_RETURN(LogitsWriter writer,
                            LogitsWriter::Create(path, engine->config().vocabulary));
    TROUPE_ASSIGN_OR_RETURN(Session session, Session::Create(*engine));
    EvaluationOptions at_once = evaluation_;
    at_once.together.reset();  // the same bytes, sooner
    EvaluationHooks hooks;
    hooks.save = &writer;
    TROUPE_RETURN_IF_ERROR(Evaluate(session, Scored(), at_once, hooks).status());
    return writer.Finish();
  }

  Result<SweepPoint> Measure(double resident, const std::string& chain) {
    const std::string path = LogitsPath();
    if (!reference_) {
      if (!std::filesystem::exists(path)) TROUPE_RETURN_IF_ERROR(MakeReference(path));
      TROUPE_ASSIGN_OR_RETURN(LogitsReader opened, LogitsReader::Open(path));
      reference_.emplace(std::move(opened));
    }
    TROUPE_ASSIGN_OR_RETURN(const std::unique_ptr<Engine> engine,
                            Engine::Open(options_.model, EngineFor(resident, chain)));
    if (engine->plan().memory.slots < SlotsOf(resident) && !engine->plan().memory.all_resident) {
      return Error(Code::kResourceExhausted,
                   "{}: {} experts fit into memory, expected {} for {:g} % of them", options_.model,
                   engine->plan().memory.slots, SlotsOf(resident), 100 * resident);
    }
    TROUPE_ASSIGN_OR_RETURN(Session session, Session::Create(*engine));
    TROUPE_RETURN_IF_ERROR(Settle(session));
    const ExpertUsage before = engine->expert_usage();
    EvaluationHooks hooks;
    hooks.reference = &*reference_;
    hooks.progress = Progress(fmt::format("{:g} %, {}", 100 * resident, chain));
    TROUPE_ASSIGN_OR_RETURN(const Evaluation found,
                            Evaluate(session, Scored(), evaluation_, hooks));
    return PointOf(resident, chain, *engine, found, engine->expert_usage().Since(before));
  }

  Status Settle(Session& session) const {
    const std::span<const TokenId> prompt = std::span(options_.text).first(options_.settle);
    for (std::size_t at = 0; at < prompt.size();) {
      session.Truncate(0);
      const std::size_t count = std::min(session.room(), prompt.size() - at);
      TROUPE_RETURN_IF_ERROR(session.FeedPrompt(prompt.subspan(at, count)));
      at += count;
    }
    return OkStatus();
  }

  SweepPoint PointOf(double resident, const std::string& chain, const Engine& engine,
                     const Evaluation& found, const ExpertUsage& usage) const {
    const ModelConfig& config = engine.config();
    std::uint64_t layers = 0;
    for (std::uint32_t layer = 0; layer < config.layers; ++layer)
      layers += config.IsMoeLayer(layer);
    const auto fed = static_cast<double>(found.fed);
    const double slots = fed * static_cast<double>(layers * config.moe.routing.top_k);
    return {.resident = resident,
            .slots = SlotsOf(resident),
            .chain = chain,
            .tokens = found.tokens,
            .perplexity = found.Perplexity(),
            .perplexity_ratio = found.comparison->perplexity_ratio,
            .mean_kl = found.comparison->kl,
            .top1_agreement = found.comparison->top1_agreement,
            .bytes_per_token = static_cast<double>(usage.bytes_read) / fed,
            .hit_rate = usage.HitRate(),
            .substituted = static_cast<double>(usage.substituted) / slots,
            .dropped = static_cast<double>(usage.dropped) / slots,
            .low = static_cast<double>(usage.low_assignments) / slots,
            .stall_s_per_token = usage.stall_seconds / fed,
            .deciding_s_per_token = usage.deciding_seconds / fed,
            .tokens_per_s = fed / std::max(found.pass_seconds, 1e-9)};
  }

  const SweepOptions& options_;
  const SweepHooks& hooks_;
  EvaluationOptions evaluation_;
  std::uint32_t experts_ = 0;
  std::string fingerprint_, container_;
  std::vector<std::string> chains_;
  std::size_t done_ = 0;
  std::optional<LogitsReader> reference_;
};

}  // namespace

Result<std::vector<SweepPoint>> RunSweep(const SweepOptions& options, const SweepHooks& hooks) {
  TROUPE_CHECK(!options.resident.empty());
  return Sweep(options, hooks).Run();
}

}  // namespace troupe
