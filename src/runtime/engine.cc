#include "runtime/engine.h"

#include "base/log.h"
#include "expert/cache/first_experts.h"
#include "expert/cache/quotas.h"
#include "expert/forecast/activation_path.h"
#include "machine/process_memory.h"
#include "model/resident_experts.h"
#include "runtime/draft_plan.h"
#include "runtime/head_draft.h"
#include "runtime/plan_model.h"

namespace troupe {
namespace {

// How many shallow layers are kept fully, where layers have shares of their own.
std::uint32_t ShallowLayers(const EnginePlan& plan, const OffloadOptions& options,
                            const std::optional<ModelProfile>& profile) {
  if (options.shallow_layers || !profile) return options.shallow_layers.value_or(0);
  return profile->ShallowLayersFor(static_cast<double>(plan.memory.slots) /
                                   plan.needs.AllExperts());
}

CacheShape ShapeOf(const ModelConfig& config, const EnginePlan& plan, CacheSharing sharing) {
  CacheShape shape{.grid = {.layers = config.layers, .experts = config.moe.routing.experts},
                   .slots = plan.memory.slots,
                   .quotas = {},
                   .sequences = plan.memory.sequences};
  if (sharing == CacheSharing::kPerLayer) {
    shape.quotas = ShallowQuotas(shape.grid, config.moe.leading_dense, shape.slots,
                                 plan.spare_slots, plan.shallow_layers, config.moe.dense_layers);
  }
  return shape;
}

Result<std::vector<std::vector<std::uint32_t>>> FirstExpertsBy(
    FillCache fill, const std::optional<ModelProfile>& profile, const CacheShape& cache) {
  std::vector<std::vector<std::uint32_t>> first;
  if (fill == FillCache::kNo) return first;
  if (profile && !profile->paths.empty()) {
    return FirstExperts(cache, UsesIn(profile->paths, cache.grid));
  }
  if (fill == FillCache::kIfKnown) return first;
  return InvalidArgument(
      "the cache cannot be filled: no profile says which experts are used most (troupe calibrate "
      "makes one)");
}

std::unique_ptr<HeldExperts> HoldAll(const ModelWeights& weights, std::uint32_t experts) {
  const auto layers = static_cast<std::uint32_t>(weights.layers.size());
  auto held = std::make_unique<HeldExperts>(ExpertGrid{.layers = layers, .experts = experts});
  for (std::uint32_t layer = 0; layer < layers; ++layer) {
    const std::vector<Mlp>& of_layer = weights.layers[layer].moe.experts;
    for (std::uint32_t expert = 0; expert < of_layer.size(); ++expert) {
      held->Add({layer, expert}, of_layer[expert]);
    }
  }
  return held;
}

std::vector<ExpertExtras> ExtrasOf(const ModelWeights& weights) {
  std::vector<ExpertExtras> extras;
  for (const LayerWeights& layer : weights.layers) extras.push_back(layer.moe.extras);
  return extras;
}

}  // namespace

struct Engine::Opened {
  std::string path;
  std::unique_ptr<const ModelConfig> config;
  EnginePlan plan;
  PlannedMemory::Share planned;
  WeightStore weights;
  std::unique_ptr<Tokenizer> tokenizer;
  Result<ChatPrompts> chat;
  std::shared_ptr<ThreadPool> pool;
  Bytes bytes_touched;
};

Engine::Engine(Opened opened)
    : path_(std::move(opened.path)),
      config_(std::move(opened.config)),
      plan_(std::move(opened.plan)),
      planned_(std::move(opened.planned)),
      weights_(std::move(opened.weights)),
      tokenizer_(std::move(opened.tokenizer)),
      chat_(std::move(opened.chat)),
      pool_(std::move(opened.pool)),
      slots_(plan_.memory.sequences),
      sampler_scratch_(config_->vocabulary),
      logits_(plan_.memory.sequences, config_->vocabulary),
      bytes_touched_(opened.bytes_touched) {}

Status Engine::OpenExperts(const ExpertLayouts& layouts, std::unique_ptr<ExpertStore> store,
                           LowExperts low, SubstitutionChain substitution,
                           const OffloadOptions& options, std::optional<ModelProfile> profile,
                           std::optional<ScoreTables> score_tables, const ByteProgress& progress) {
  if (plan_.memory.all_resident) {
    if (store != nullptr) {
      plan_.notes.push_back(
          fmt::format("{} is not read: every expert is in memory", store->files().front().path()));
    }
    experts_ = std::make_unique<ResidentExperts>(weights_.weights(), weights_.verified_experts());
    return OkStatus();
  }
  plan_.shallow_layers = ShallowLayers(plan_, options, profile);
  OffloadedExperts::Options offload{.cache = ShapeOf(*config_, plan_, options.sharing),
                                    .policy = nullptr,
                                    .prefetch = options.prefetch,
                                    .experts_per_token = config_->moe.routing.top_k,
                                    .normalised_weights = config_->moe.routing.normalise,
                                    .loader = plan_.loader,
                                    .costs = plan_.costs,
                                    .extras = ExtrasOf(weights_.weights()),
                                    .low = std::move(low),
                                    .low_copies = {},
                                    .in_order = options.in_order || plan_.trace.has_value(),
                                    .drafts = plan_.drafters.resident};
  if (options.low_copies.any()) offload.low_copies = options.low_copies;
  if (options.make_policy) {
    offload.policy = options.make_policy(offload.cache.grid);
  } else {
    TROUPE_ASSIGN_OR_RETURN(offload.policy, MakeEvictionPolicy(options.policy, offload.cache));
  }
  if (options.make_predictor) {
    offload.predictor = options.make_predictor(offload.cache.grid);
  } else {
    const bool sigmoid = config_->moe.routing.score == GateScore::kSigmoid;
    PredictorMaterial material{
        .rows = sigmoid ? ForecastRows::kScores : ForecastRows::kLogits,
        .alpha = substitution.BorderShare(),
        .most_tokens = std::max(options.substitution_tokens, plan_.memory.sequences)};
    if (profile) material.learned = profile->learned, material.paths = profile->paths;
    offload.by_worth = WorthPrefetch::IsMeant(options.predictor);
    offload.score_tables = std::move(score_tables);
    TROUPE_ASSIGN_OR_RETURN(
        offload.predictor,
        MakePredictor(offload.by_worth ? WorthPrefetch::kForPrompts : options.predictor,
                      offload.cache.grid, config_->moe.routing.top_k, material));
  }
  TROUPE_ASSIGN_OR_RETURN(const auto first, FirstExpertsBy(options.fill, profile, offload.cache));
  // Its tables are the predictor's by now, and the budget counts them once. With what reading them
  // took they go back to the system before the slots are taken, which have been given the rest.
  profile.reset();
  ReturnFreeMemory();
  std::string why;
  TROUPE_ASSIGN_OR_RETURN(std::unique_ptr<AsyncReader> reader, MakeReader(options.reader, &why));
  plan_.notes.push_back(fmt::format("experts are read by {} from {} ({})", reader->name(),
                                    store->files().front().path(), store->name()));
  if (!why.empty()) plan_.notes.push_back(why);
  if (!store->files().front().direct()) {
    plan_.notes.push_back("the file system refuses direct reads: they go through the page cache");
  }
  if (options.link.bytes_per_second > 0 || options.link.latency_seconds > 0) {
    reader = MakeThrottledReader(std::move(reader), options.link, clock_);
  }
  if (options.wrap_reader) reader = options.wrap_reader(std::move(reader));
  TROUPE_ASSIGN_OR_RETURN(std::unique_ptr<OffloadedExperts> experts,
                          OffloadedExperts::Create(layouts, std::move(store), std::move(reader),
                                                   *pool_, clock_, std::move(offload)));
  if (const Status filled = experts->Fill(first, progress); !filled.ok()) {
    // Nobody asked for these experts yet: who does is told what is wrong with one.
    if (options.fill == FillCache::kYes || filled.code() == Code::kCancelled) return filled;
    LogWarning("the cache begins with fewer experts: {}", filled.message());
  }
  exact_ =
      substitution.exact() && !options.low_copies.any() && options.peer_answers == RowForm::kFloat;
  experts->set_substitution(std::move(substitution));
  offloaded_ = experts.get();
  experts_ = std::move(experts);
  return OkStatus();
}

Status Engine::OpenCard(TestedGpu gpu, const CardOptions& options) {
  const GpuWorkerShape shape = ShapeFor(*plan_.card, *config_, plan_.memory.chunk);
  Result<std::unique_ptr<GpuWorker>> worker = StartCard(std::move(gpu), shape, options);
  if (!worker.ok()) {
    if (options.by_name()) return Status(worker.status()).WithContext("--gpu " + options.choice);
    plan_.notes.push_back("no card: " + worker.status().message());
    plan_.card.reset();
    return OkStatus();
  }
  if ((*worker)->slots() < shape.slots) {
    plan_.notes.push_back(fmt::format("the card has room for {} experts of {}: others use it",
                                      (*worker)->slots(), shape.slots));
    plan_.card->shape.slots = (*worker)->slots();
  }
  const MoeConfig& moe = config_->moe;
  CardExperts::Options card{
      .grid = {.layers = config_->layers, .experts = moe.routing.experts},
      .form = config_->form,
      .biases = moe.biases,
      .width = config_->width,
      .shared_experts = moe.expert_ff == 0 ? 0 : static_cast<double>(moe.shared_ff) / moe.expert_ff,
      .duty = options.duty,
      .seconds_away = nullptr,
      .tell = nullptr};
  if (offloaded_ != nullptr) {
    card.seconds_away = [this](ExpertId id) { return offloaded_->SecondsAway(id); };
    card.tell = [this](ExpertId id, bool covered) { offloaded_->set_covered(id, covered); };
  }
  auto experts = std::make_unique<CardExperts>(std::move(experts_), *std::move(worker),
                                               expert_layouts_, std::move(card), clock_);
  card_ = experts.get();
  experts_ = std::move(experts);
  return OkStatus();
}

std::optional<CardReport> Engine::card_report() const {
  if (card_ == nullptr) return std::nullopt;
  return card_->report();
}

Status Engine::OpenGate(const LoadedGate& gate) {
  TROUPE_ASSIGN_OR_RETURN(group_router_, GroupRouter::Create(*config_, weights(), gate.file.gate,
                                                             {.choice = gate.choice,
                                                              .layers = plan_.layers,
                                                              .chunk = plan_.memory.chunk}));
  return OkStatus();
}

void Engine::RouteByGroups(bool by_groups) {
  by_groups_ = by_groups;
  transformer_->set_groups(routes_by_groups() ? &*group_router_ : nullptr);
}

ExpertUsage Engine::expert_usage() const {
  ExpertUsage usage = experts_->usage();
  if (group_router_) {
    usage.grouped = group_router_->done().decisions * config_->moe.routing.top_k;
  }
  return usage;
}

std::optional<OffloadReport> Engine::offload_report() const {
  if (offloaded_ == nullptr) return std::nullopt;
  return offloaded_->report();
}

std::vector<ExpertPlace> Engine::ExpertPlaces() {
  if (offloaded_ != nullptr) return offloaded_->Places();
  const std::size_t experts = std::size_t{config_->layers} * config_->moe.routing.experts;
  return std::vector<ExpertPlace>(experts, ExpertPlace::kInMemory);
}

void Engine::AnswerBy(SubstitutionChain chain, const LowCopyOptions& low_copies) {
  if (offloaded_ == nullptr) return;
  exact_ = chain.exact() && !low_copies.any() && offload_options_.peer_answers == RowForm::kFloat;
  if (card_ != nullptr) card_->set_rests(!chain.exact() || low_copies.any());
  offloaded_->set_low_copies(low_copies);
  offloaded_->set_substitution(std::move(chain));
}

HeldExperts& Engine::held() {
  if (offloaded_ != nullptr) return offloaded_->held();
  if (all_held_ == nullptr) {
    all_held_ = HoldAll(weights_.weights(), config_->moe.routing.experts);
  }
  return *all_held_;
}

Status Engine::HoldExperts(std::uint32_t layer, std::span<const std::uint32_t> experts,
                           const FetchedExperts& fetched) {
  if (offloaded_ != nullptr) return offloaded_->Hold(layer, experts, fetched);
  for (const std::uint32_t expert : experts) {
    const ExpertId id{layer, expert};
    if (held().Holds(id)) continue;
    all_held_->Add(id, weights_.weights().layers[layer].moe.experts[expert]);
  }
  return OkStatus();
}

void Engine::BeginHoldingExperts(std::uint32_t layer, std::span<const std::uint32_t> experts) {
  TROUPE_CHECK(offloaded_ != nullptr);
  offloaded_->BeginHolding(layer, experts);
}

std::optional<Status> Engine::GoOnHoldingExperts() {
  TROUPE_CHECK(offloaded_ != nullptr);
  return offloaded_->GoOnHolding();
}

SlotUse Engine::UseExpertSlots(std::uint32_t slots) {
  return offloaded_ == nullptr ? SlotUse() : offloaded_->UseSlots(slots);
}

std::optional<std::uint64_t> Engine::ChecksumOf(ExpertId id) const {
  if (offloaded_ == nullptr) return std::nullopt;
  return offloaded_->loads().store().ChecksumOf(id);
}

bool Engine::ReleaseExpert(ExpertId id) {
  if (offloaded_ != nullptr) return offloaded_->Release(id);
  if (held().Holds(id)) all_held_->Remove(id);
  return all_held_->IsFree(id);  // it can be held again
}

Status Engine::WithExpert(ExpertId id, const std::function<void(const Mlp&)>& use) {
  if (offloaded_ != nullptr) return offloaded_->WithExpert(id, use);
  return Error(Code::kNotFound, "{} is not read from the disk", ToString(id));
}

void Engine::set_peers(ExpertPeers& peers) {
  if (offloaded_ != nullptr) offloaded_->set_peers(peers, offload_options_.peer_answers);
}

void Engine::ObserveMisses(OffloadedExperts::MissObserver observer) {
  if (offloaded_ != nullptr) offloaded_->set_miss_observer(std::move(observer));
}

void Engine::WatchTime(PassTimes* times) {
  if (offloaded_ != nullptr) offloaded_->set_times(times);
}

Status Engine::OpenSequences(bool saves_states) {
  const MemoryPlan& memory = plan_.memory;
  const auto contexts = static_cast<std::uint32_t>(memory.kv_positions / memory.context);
  TROUPE_ASSIGN_OR_RETURN(
      kv_, KvPool::Create(*config_, plan_.layers,
                          {.type = plan_.kv_type,
                           .context = memory.context,
                           .sequences = contexts,
                           .states = StatePoolShape{.sequences = memory.sequences,
                                                    .saved = saves_states ? memory.sequences : 0,
                                                    .inputs = plan_.kept_inputs}}));
  RopeParams rope = config_->rope;
  rope.freq_factors = weights().rope_freq_factors;
  TROUPE_ASSIGN_OR_RETURN(workspace_, Workspace::Create(*config_,
                                                        {.chunk = memory.chunk,
                                                         .threads = plan_.threads,
                                                         .kv = kv_->layouts(),
                                                         .context = memory.context,
                                                         .layers = plan_.layers},
                                                        std::move(rope)));
  return OkStatus();
}

Status Engine::OpenHead(const GgufModel& file, const WeightChecks* checks) {
  TROUPE_ASSIGN_OR_RETURN(
      head_, NextTokenHead::Open(file, *config_, weights(), *pool_, HeadShapeOf(plan_), checks));
  tails_.assign(plan_.memory.sequences, StreamTail(config_->width));
  return OkStatus();
}

std::unique_ptr<DraftSequence> Engine::DraftByHead(const Session& session) {
  if (head_ == nullptr || !ChecksDrafts()) return nullptr;
  KvSequence cache = head_->NewSequence();
  if (!cache.Reserve(session.tokens().size() + session.room()).ok()) return nullptr;
  StreamTail& tail = tails_[session.id()];
  tail.Clear();
  return std::make_unique<HeadDraft>(*head_, session, tail, std::move(cache));
}

Result<std::unique_ptr<Engine>> Engine::Open(const std::string& path, const EngineOptions& options,
                                             const ByteProgress& progress) {
  const Stopwatch watch;
  TROUPE_ASSIGN_OR_RETURN(PlannedModel model, PlanModel(path, options, PlanFor::kOpening));
  if (options.on_plan) options.on_plan(model.plan.memory);
  auto pool = std::make_shared<ThreadPool>(model.plan.threads);
  std::unique_ptr<Engine> draft;
  if (model.draft != nullptr) {
    TROUPE_ASSIGN_OR_RETURN(draft, OpenPlanned(options.draft, std::move(*model.draft),
                                               DraftOptions(options), {}, pool));
  }
  TROUPE_ASSIGN_OR_RETURN(std::unique_ptr<Engine> engine,
                          OpenPlanned(path, std::move(model), options, progress, pool));
  engine->draft_ = std::move(draft);
  engine->load_seconds_ = watch.Seconds();
  return engine;
}

Result<std::unique_ptr<Engine>> Engine::OpenPlanned(const std::string& path, PlannedModel model,
                                                    const EngineOptions& options,
                                                    const ByteProgress& progress,
                                                    std::shared_ptr<ThreadPool> pool) {
  const RoutedExperts experts =
      model.plan.memory.all_resident ? RoutedExperts::kResident : RoutedExperts::kElsewhere;
  TROUPE_ASSIGN_OR_RETURN(WeightStore weights, [&] {
    ThreadPool loaders(model.plan.threads);
    return LoadWeights(model.file, *model.config, model.plan.layers, experts, loaders, progress,
                       model.sums.get());
  }());
  std::optional<ModelFingerprint> fingerprint;
  if (options.fingerprint) {
    TROUPE_ASSIGN_OR_RETURN(fingerprint, FingerprintModel(model.file));
  }
  if (options.serving) {
    model.tokenizer->LimitWords(MostWordBytes(model.plan.context()));
  }
  std::unique_ptr<Engine> engine(new Engine({.path = path,
                                             .config = std::move(model.config),
                                             .plan = std::move(model.plan),
                                             .planned = std::move(model.planned),
                                             .weights = std::move(weights),
                                             .tokenizer = std::move(model.tokenizer),
                                             .chat = std::move(model.chat),
                                             .pool = std::move(pool),
                                             .bytes_touched = model.facts.TouchedPerToken()}));
  engine->fingerprint_ = fingerprint;
  engine->offload_options_ = options.offload;
  engine->expert_layouts_ = model.measure.experts;
  if (model.gate) {
    TROUPE_RETURN_IF_ERROR(engine->OpenGate(*model.gate));
    model.gate.reset();  // the router has what it needs of it
  }
  TROUPE_RETURN_IF_ERROR(engine->OpenExperts(model.measure.experts, std::move(model.store),
                                             std::move(model.low), std::move(model.substitution),
                                             options.offload, std::move(model.profile),
                                             std::move(model.score_tables), progress));
  if (model.gpu && engine->plan_.card) {
    TROUPE_RETURN_IF_ERROR(engine->OpenCard(*std::move(model.gpu), options.card));
  }
  TROUPE_RETURN_IF_ERROR(engine->OpenSequences(options.saves_states));
  engine->transformer_ = std::make_unique<Transformer>(
      engine->config(), engine->weights(), *engine->experts_, *engine->pool_, engine->plan_.layers);
  engine->transformer_->set_rows_done(&engine->rows_done_);
  engine->RouteByGroups(true);
  if (engine->plan_.drafters.heads) {
    const Status opened = engine->OpenHead(model.file, model.sums.get());
    if (!opened.ok()) {
      if (options.drafters == DraftChoice{.heads = true}) return opened;  // it was asked for
      engine->plan_.drafters.heads = false;
      LogWarning("the model's own head does not guess: {}", opened.message());
    }
  }
  model.sums.reset();  // a store that reads experts in place has them still
  return engine;
}

}  // namespace troupe
