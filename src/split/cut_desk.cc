#include "split/cut_desk.h"

#include <fmt/format.h>

#include <algorithm>
#include <random>
#include <utility>

#include "api/model_access.h"
#include "base/mutex.h"
#include "runtime/part_keys.h"
#include "split/codec/keys_frame.h"

namespace troupe {
namespace {

// Of a message: a server may take no more than a MiB.
constexpr std::size_t kMostMessage = 768 << 10;
constexpr std::size_t kFirstChunks = 4, kLeastFirstChunk = 16;
// Keys and values that wait for the link are more bytes than the rows. So few prompts are cut with
// them at a time, and a chunk has no more of them than this, unless it is one tile.
constexpr std::size_t kMostWithKeys = 4;
constexpr Bytes kMostKeysOfChunk = 4_MiB;
// Prompts that are cut at a time. Those that find no room for keys and values wait for it.
constexpr std::size_t kMostUnderWay = 64;
// A pass of whole answers there has hardly more.
constexpr double kRowsOfOthers = 512;
// The cloud is asked for its part at once where the end's begins within that time.
constexpr double kSoonSeconds = 2;

const Clock& LaneClock() {
  static const MonotonicClock kClock;  // the lane may end after the desk
  return kClock;
}

std::vector<std::uint32_t> CutsOf(std::uint32_t layers, const CutOptions& options) {
  if (options.layer) return {*options.layer};
  return options.before.empty() ? UsualCuts(layers) : options.before;
}

std::vector<std::vector<std::byte>> MessagesOf(const std::vector<KeysPart>& parts, KvType type) {
  std::vector<std::vector<std::byte>> messages;
  for (const KeysPart& part : parts) {
    const KeysRange& range = part.range;
    messages.push_back(EncodeKeys({.type = type,
                                   .first_layer = range.layers.first,
                                   .layers = range.layers.size(),
                                   .first = static_cast<std::uint32_t>(range.first),
                                   .positions = static_cast<std::uint32_t>(range.positions)},
                                  part.bytes));
  }
  return messages;
}

CutOptions WithoutBases(const CutOptions& options) {
  CutOptions others = {.tokens = options.tokens,
                       .layer = options.layer,
                       .chunk = options.chunk,
                       .code = options.code,
                       .by_link = options.by_link,
                       .most_loss = options.most_loss,
                       .bases = {},
                       .before = options.before};
  return others;
}

}  // namespace

std::vector<std::uint32_t> UsualCuts(std::uint32_t layers) {
  std::vector<std::uint32_t> cuts;
  for (std::uint32_t quarter = 1; quarter < 4; ++quarter) {
    const std::uint32_t layer = layers * quarter / 4;
    if (layer >= 1 && layer < layers && (cuts.empty() || cuts.back() != layer)) {
      cuts.push_back(layer);
    }
  }
  return cuts;
}

PartShape EndPartOf(std::uint32_t layers, const CutOptions& options) {
  const std::vector<std::uint32_t> cuts = CutsOf(layers, options);
  const std::uint32_t last = cuts.empty() ? 0 : *std::ranges::max_element(cuts);
  return {.layers = {0, std::min(last, layers)}, .positions = options.tokens};
}

Bytes CutBytesOfEnd(const ModelConfig& config, const CutOptions& options, KvType type,
                    std::uint32_t context) {
  if (options.tokens == 0 || config.layers < 2 || !config.KeysTellAll()) return Bytes();
  const PartShape shape = EndPartOf(config.layers, options);
  // No more than the pool holds.
  const auto keys_of = [&](std::size_t tokens) {
    return KvPool::BytesFor(
        config, shape.layers,
        {.type = type, .context = static_cast<std::uint32_t>(tokens), .sequences = 1});
  };
  const Bytes chunks = kMostWithKeys * CutRun::kMostAheadWithKeys *
                       std::max(kMostKeysOfChunk, keys_of(KvLayout::kTile));
  const Bytes rows(options.tokens * config.width * sizeof(float));
  return PartRunner::BytesFor(config, shape, type, context) + 2 * rows +
         2 * std::min(chunks, keys_of(options.tokens));
}

class CutDesk::Door {
 public:
  explicit Door(PostToLoop post) : post_(std::move(post)) {}

  void Post(std::function<void()> call) {
    const MutexLock lock(mu_);
    if (post_) post_(std::move(call));
  }
  void Close() {
    const MutexLock lock(mu_);
    post_ = nullptr;
  }

 private:
  Mutex mu_;
  PostToLoop post_ TROUPE_GUARDED_BY(mu_);
};

CutDesk::CutDesk(const Clock& clock, CloudSource& cloud, std::shared_ptr<Door> door,
                 CutOptions options, std::uint32_t layers, std::uint32_t width,
                 std::size_t most_rows)
    : clock_(clock),
      cloud_(cloud),
      door_(std::move(door)),
      options_(WithoutBases(options)),
      layers_(layers),
      width_(width),
      most_rows_(most_rows),
      before_(CutsOf(layers, options_)) {
  for (CutBasis& basis : options.bases) {
    const std::uint32_t layer = basis.layer;
    if (basis.width != width) continue;
    fitted_[layer] = std::make_shared<const CutBasis>(std::move(basis));
  }
  constexpr int kHalf = 32;
  std::random_device draw;
  last_name_ = (std::uint64_t{draw()} << kHalf) | draw();
  process_ = (std::uint64_t{draw()} << kHalf) | draw();
}

CutDesk::~CutDesk() {
  door_->Close();
  work_->tell = [] {};
}

TokenSource::Stop CutDesk::StartFar(const RunAsk& ask, RunEvents events) {
  RunAsk own = ask;
  if (own.cut) own.cut->process = process_;
  return cloud_.Start(own, std::move(events));
}

Result<std::unique_ptr<CutDesk>> CutDesk::Create(Model& model, const Clock& clock,
                                                 CloudSource& cloud, PostToLoop post,
                                                 CutOptions options, Say say, Say explain) {
  Engine& engine = ModelAccess::EngineOf(model);
  const std::uint32_t layers = engine.config().layers;
  const auto width = static_cast<std::uint32_t>(engine.config().width);
  for (const std::uint32_t layer : CutsOf(layers, options)) {
    TROUPE_RETURN_IF_ERROR(CheckPromptCut(engine.config(), layer));
  }
  const PartShape shape = EndPartOf(layers, options);
  if (shape.layers.size() == 0) return InvalidArgument("a model of one layer has no cut");
  TROUPE_ASSIGN_OR_RETURN(PartRunner runner, PartRunner::Create(engine, shape));
  std::unique_ptr<CutDesk> desk(new CutDesk(clock, cloud, std::make_shared<Door>(std::move(post)),
                                            std::move(options), layers, width,
                                            engine.plan().memory.chunk));
  for (const std::uint32_t layer : desk->before_) {
    const CutBasis& basis = *desk->Basis(layer, /*exact=*/false);
    TROUPE_RETURN_IF_ERROR(CheckCode(desk->options_.code, basis));
    for (const TriedCode& tried : desk->CodesByLink(layer)) {
      TROUPE_RETURN_IF_ERROR(CheckCode(tried.code, basis));
    }
  }
  TROUPE_RETURN_IF_ERROR(desk->MeasureCodes());
  const bool by_link = !desk->options_.by_link.empty();
  desk->loses_ = by_link ? !desk->ShorterNow().empty() : !desk->options_.code.exact();
  if (say && by_link && !desk->loses_) {
    say("rows of cut prompts cross exactly: no code was measured of the layers they are cut "
        "before");
  }
  desk->say_ = std::move(say);
  desk->explain_ = std::move(explain);
  desk->lane_ =
      std::make_unique<PartLane>(std::move(runner), ModelAccess::GapsOf(model), LaneClock());
  return desk;
}

std::optional<CutPlan> CutDesk::Plan(const AnswerTask& task) const {
  const std::size_t tokens = task.read;
  const bool one_token = task.one_token;
  // The cloud reads the others itself, and has the logits of the last one by that.
  const std::size_t prefix = one_token ? 0 : WholeTilesBefore(tokens);
  const std::size_t cut = one_token ? tokens : prefix;
  SayIfTooLong(cut);
  if (cut < 2 || cut > facts_.cloud_tokens || cut > lane_->most_positions() ||
      (!one_token && !MaySendKeys()) || pause_.IsPausedAt(clock_.Now()) ||
      under_way_ >= kMostUnderWay) {
    return std::nullopt;
  }
  // Rows of an answer that goes on behind keys and values cross exactly, too.
  const bool by_link = one_token && !task.exact && !options_.by_link.empty();
  CutFacts facts = FactsNow(task.exact || !one_token || by_link ? StateCode() : options_.code);
  if (!one_token) {
    facts.cloud_wait_seconds = facts_.cloud_wait_seconds;  // a sequence goes on behind it
    std::size_t all = 0, most = 0;                         // of a row: in all layers, and in one
    for (const KvLayout& layout : lane_->pool().layouts()) {
      all += KeysBytes(layout);
      most = std::max(most, KeysBytes(layout));
    }
    facts.unit = KvLayout::kTile;
    facts.most_rows = std::min({facts.most_rows, kMostMessage / most,
                                static_cast<std::size_t>(kMostKeysOfChunk.count()) / all});
    facts.bytes_a_row_and_layer =
        static_cast<double>(all) / static_cast<double>(lane_->pool().layouts().size());
  }
  std::optional<std::size_t> chunk = options_.chunk;
  if (!chunk && !meter_.measured()) {
    chunk = std::max(kLeastFirstChunk, (cut + kFirstChunks - 1) / kFirstChunks);
  }
  std::optional<CutPlan> plan =
      by_link ? PlanCutByLink(facts, ShorterNow(), cut, chunk) : PlanCut(facts, cut, chunk);
  if (plan && !one_token) {
    plan->prefix = prefix;
    plan->seconds += facts_.cloud_read_seconds * static_cast<double>(tokens - prefix);
  }
  return plan;
}

void CutDesk::SayIfTooLong(std::size_t tokens) const {
  const std::size_t most = std::min(facts_.cloud_tokens, lane_->most_positions());
  if (!options_.layer || said_too_long_ || !cloud_.is_known() || tokens <= most) return;
  said_too_long_ = true;
  if (!say_) return;
  say_(most == 0 ? "no prompts are cut by layers: the cloud takes none (its --cut-tokens)"
                 : fmt::format("prompts of more than {} tokens are not cut by layers (--cut-tokens "
                               "here and of the cloud): one of {} is read whole",
                               most, tokens));
}

bool CutDesk::MaySendKeys() const {
  const auto sends_keys = [](const std::weak_ptr<CutRun>& weak) {
    const std::shared_ptr<CutRun> run = weak.lock();
    return run != nullptr && run->sends_keys();
  };
  const auto now = std::ranges::count_if(runs_, sends_keys);
  return facts_.cloud_goes_on && cloud_.has_room() && static_cast<std::size_t>(now) < kMostWithKeys;
}

CutFacts CutDesk::FactsNow(const StateCode& code) const {
  CutFacts facts{.layers = layers_, .before = before_};
  // Exact rows are the longest.
  const std::size_t row_bytes = width_ * sizeof(float);
  facts.most_rows = std::clamp<std::size_t>(kMostMessage / row_bytes, 1, most_rows_);
  facts.end_layer_seconds = [this](std::size_t rows) {
    return meter_.EndLayerSeconds(rows, facts_.own_read_seconds, layers_);
  };
  facts.cloud_layer_seconds = [this](std::size_t rows) {
    return meter_.CloudLayerSeconds(rows, facts_.cloud_read_seconds, layers_);
  };
  facts.end_wait_seconds = LeftSeconds() + facts_.own_reads_seconds;
  facts.cloud_wait_seconds = facts_.cloud_reads_seconds;
  // While others are read there, each chunk waits for the end of a pass of theirs.
  const double pass = kRowsOfOthers * facts_.cloud_read_seconds;
  facts.chunk_wait_seconds =
      std::max(meter_.ChunkWaitSeconds(clock_.Now()), std::min(facts_.cloud_reads_seconds, pass));
  facts.round_trip_seconds = facts_.round_trip_seconds;
  facts.bytes_a_row = RowBytesBefore(before_.front(), code);
  facts.bytes_a_second = meter_.bytes_a_second();
  return facts;
}

double CutDesk::RowBytesBefore(std::uint32_t layer, const StateCode& code) const {
  if (code.rans && code == options_.code && row_bytes_ > 0) return row_bytes_;
  const std::size_t kept = code.exact() ? 0 : Basis(layer, /*exact=*/false)->kept.size();
  return static_cast<double>(StateRowBytes(code, width_, kept));
}

std::vector<ShorterRows> CutDesk::ShorterNow() const {
  // Nobody tells how soon the cloud reads a row: as much sooner than this machine as it computes.
  constexpr std::size_t kRows = 16;
  const double here = meter_.EndLayerSeconds(kRows, facts_.own_read_seconds, layers_);
  const double there = meter_.CloudLayerSeconds(kRows, facts_.cloud_read_seconds, layers_);
  const double faster = here > 0 && there > 0 ? there / here : 1;
  std::vector<ShorterRows> shorter;
  for (const std::uint32_t layer : before_) {
    const std::span<const TriedCode> codes = CodesByLink(layer);
    for (std::uint32_t i = 0; i < codes.size(); ++i) {
      if (codes[i].code.exact()) continue;
      const Known& known = known_.at({layer, i});
      shorter.push_back({.layer = layer,
                         .bytes_a_row = known.row_bytes,
                         .code = i,
                         .encode_seconds = known.cost.encode_seconds,
                         .decode_seconds = faster * known.cost.decode_seconds});
    }
  }
  return shorter;
}

std::span<const TriedCode> CutDesk::CodesByLink(std::uint32_t layer) const {
  const auto found = options_.by_link.find(layer);
  if (found == options_.by_link.end()) return {};
  return found->second;
}

// Before anybody waits for an answer.
Status CutDesk::MeasureCodes() {
  for (const std::uint32_t layer : before_) {
    const std::span<const TriedCode> codes = CodesByLink(layer);
    for (std::uint32_t i = 0; i < codes.size(); ++i) {
      if (codes[i].code.exact()) continue;
      TROUPE_ASSIGN_OR_RETURN(const CodeCost cost,
                              MeasureCode(Basis(layer, /*exact=*/false), codes[i].code, clock_));
      known_[{layer, i}] = {.cost = cost,
                            .row_bytes = codes[i].code.rans ? codes[i].row_bytes
                                                            : RowBytesBefore(layer, codes[i].code)};
    }
  }
  return OkStatus();
}

// On a machine that computes beside it, it takes longer; an entropy coder makes of each message
// what it can.
void CutDesk::OnEncoded(const CutPlan& plan, const EncodedRows& encoded) {
  counts_.encode_seconds += encoded.seconds;
  if (encoded.rows == 0) return;
  constexpr double kNewest = 0.25;
  const auto rows = static_cast<double>(encoded.rows);
  const double row_bytes = static_cast<double>(encoded.bytes) / rows;
  // A short message is mostly its table, and says little of a whole one.
  const double newest = kNewest * std::min(1.0, rows / static_cast<double>(plan.chunk));
  if (!plan.lossy) {
    if (!encoded.rans) return;
    row_bytes_ += (row_bytes_ == 0 ? 1 : newest) * (row_bytes - row_bytes_);
    return;
  }
  const auto found = known_.find({plan.layer, plan.code});
  if (found == known_.end()) return;
  double& seconds = found->second.cost.encode_seconds;
  seconds += kNewest * (encoded.seconds / rows - seconds);
  if (encoded.rans) found->second.row_bytes += newest * (row_bytes - found->second.row_bytes);
}

double CutDesk::LeftSeconds() const {
  double seconds = 0;
  for (const auto& weak : runs_) {
    const std::shared_ptr<CutRun> run = weak.lock();
    if (run == nullptr || run->rows_left() == 0) continue;
    seconds +=
        run->layer() * meter_.EndLayerSeconds(run->rows_left(), facts_.own_read_seconds, layers_);
  }
  return seconds;
}

TokenSource::Stop CutDesk::Start(const RunAsk& ask, bool exact, const CutPlan& plan,
                                 RunEvents events) {
  const auto failed = std::make_shared<std::function<void(const Status&)>>(events.on_failure);
  const double first_rows =
      LeftSeconds() +
      plan.layer * meter_.EndLayerSeconds(plan.chunk, facts_.own_read_seconds, layers_);
  const bool crosses_exactly =
      exact || plan.prefix > 0 || (!options_.by_link.empty() && !plan.lossy);
  if (under_way_++ == 0) any_since_ = clock_.Now();
  Result<std::shared_ptr<CutRun>> run = CutRun::Start(*this,
                                                      {.request = ask.request,
                                                       .exact = crosses_exactly,
                                                       .plan = plan,
                                                       .name = ++last_name_,
                                                       .drafts = ask.drafts,
                                                       .far_at_once = first_rows < kSoonSeconds},
                                                      std::move(events));
  if (run.ok()) {
    std::erase_if(runs_, [](const auto& one) { return one.expired(); });
    runs_.push_back(*run);
    return [run = *run] { run->Stop(); };
  }
  OnCutOver(run.status());
  door_->Post([failed, why = CutRun::OfTheEnd(run.status())] {
    if (*failed) (*failed)(why);
  });
  return [failed] { *failed = nullptr; };
}

Result<CutWorld::RunLower> CutDesk::OpenLower(std::uint32_t layer, std::size_t tokens, bool keys) {
  TROUPE_ASSIGN_OR_RETURN(std::shared_ptr<PartLane::Prompt> prompt,
                          lane_->Open({0, layer}, tokens));
  return RunLower(
      [this, prompt = std::move(prompt), keys](std::vector<TokenId> some, OnLower on_lower) {
        ++work_->pieces;
        work_->tell();
        lane_->Run(prompt,
                   {.tokens = std::move(some),
                    .wanted = PartLane::Wanted::kRows,
                    .most_keys_bytes = keys ? kMostMessage - kKeysFrameBytes : 0},
                   [type = lane_->pool().type(), door = door_, work = work_,
                    on_lower = std::move(on_lower)](const PartLane::Outcome& outcome) {
                     door->Post([on_lower, work,
                                 lower = Lower{.status = outcome.status,
                                               .rows = outcome.rows,
                                               .keys = MessagesOf(outcome.keys, type),
                                               .seconds = outcome.seconds,
                                               .ended = outcome.ended}] {
                       on_lower(lower);
                       --work->pieces;
                       work->tell();
                     });
                   });
      });
}

const std::shared_ptr<const CutBasis>& CutDesk::Basis(std::uint32_t layer, bool exact) const {
  auto& kept = exact ? plain_ : fitted_;
  std::shared_ptr<const CutBasis>& basis = kept[layer];
  if (basis == nullptr) basis = std::make_shared<const CutBasis>(PlainBasis(layer, width_));
  return basis;
}

Result<StateEncoder> CutDesk::EncoderFor(const CutPlan& plan, bool exact) {
  const std::uint32_t layer = plan.layer;
  StateCode code;
  if (!exact) code = plan.lossy ? CodesByLink(layer)[plan.code].code : options_.code;
  const std::pair key(layer, code);
  const auto found = encoders_.find(key);
  if (found != encoders_.end()) return found->second;
  TROUPE_ASSIGN_OR_RETURN(StateEncoder encoder,
                          StateEncoder::Create(Basis(layer, code.exact()), code));
  return encoders_.emplace(key, std::move(encoder)).first->second;
}

std::uint64_t CutDesk::BasisOf(std::uint32_t layer, const StateCode& code) const {
  return DigestOf(*Basis(layer, code.exact()), code);
}

// Where one failed none is cut for a while. The end's user is told once.
void CutDesk::OnCutOver(const Status& status) {
  if (--under_way_ == 0) seconds_ += static_cast<double>(clock_.Now() - any_since_) * 1e-9;
  if (!pause_.OnOver(status, clock_.Now())) return;
  std::string line = fmt::format("no prompts are cut for now: {}", status.message());
  if (say_ && line != told_) say_(line);
  told_ = std::move(line);
}

void CutDesk::OnTime() {
  for (const auto& weak : std::vector(runs_)) {
    if (const std::shared_ptr<CutRun> run = weak.lock()) run->OnTime();
  }
}

CutState CutDesk::State() const {
  CutState state{.counts = counts_,
                 .seconds = seconds_,
                 .under_way = under_way_,
                 .bytes_a_second = meter_.bytes_a_second(),
                 .lane = lane_->counters()};
  if (under_way_ > 0) state.seconds += static_cast<double>(clock_.Now() - any_since_) * 1e-9;
  return state;
}

}  // namespace troupe
