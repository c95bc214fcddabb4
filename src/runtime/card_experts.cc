#include "runtime/card_experts.h"

#include <algorithm>
#include <utility>

#include "base/log.h"

namespace troupe {
namespace {

// Of the time of passes: copies that nobody waits for take no more of the processor's.
constexpr double kMostCopying = 0.1;
// Before that share means anything.
constexpr double kFirstCopies = 0.5;

double SpanInSeconds(Nanos start, Nanos end) { return static_cast<double>(end - start) * 1e-9; }

std::vector<CardLayout> LayoutsOf(const ExpertLayouts& layouts, bool biases) {
  std::vector<CardLayout> of_card;
  for (const ExpertLayout& layout : layouts) {
    of_card.push_back(layout.empty() ? CardLayout() : CardLayout(layout, biases));
  }
  return of_card;
}

}  // namespace

CardExperts::CardExperts(std::unique_ptr<ExpertSource> other, std::unique_ptr<GpuWorker> worker,
                         const ExpertLayouts& layouts, Options options, const Clock& clock)
    : other_(std::move(other)),
      worker_(std::move(worker)),
      layouts_(LayoutsOf(layouts, options.biases)),
      options_(std::move(options)),
      clock_(clock),
      slots_(options_.grid, worker_->slots()),
      on_the_way_(worker_->slots()) {}

void CardExperts::Fail(const Status& why) {
  if (!std::exchange(works_, false)) return;
  ++failures_;
  LogWarning("{}: {}; the processor goes on alone, with the same answers", worker_->name(),
             why.message());
  for (std::uint32_t layer = 0; layer < options_.grid.layers; ++layer) {
    for (std::uint32_t expert = 0; expert < options_.grid.experts; ++expert) {
      if (slots_.SlotOf({layer, expert})) Tell({layer, expert}, false);
    }
  }
}

// REQUIRES: there is room for it.
std::uint32_t CardExperts::TakeSlot(ExpertId id) {
  const CardSlots::Room room = *slots_.MakeRoom(id, id.layer);
  if (room.leaves) Tell(*room.leaves, false);
  ++copies_;
  return room.slot;
}

void CardExperts::OnCopied(ExpertId id, bool well) {
  slots_.OnCopied(id, well);
  if (well && works_) Tell(id, true);
}

void CardExperts::TakeCopied() {
  for (const GpuWorker::Copied& copied : worker_->TakeCopied()) {
    OnCopied(*std::exchange(on_the_way_[copied.slot], std::nullopt), true);
    lanes_.speeds().NoteCopy(staging_seconds_ + copied.seconds);
  }
  if (const Status status = worker_->status(); !status.ok()) Fail(status);
}

// A pass that ended early has left some: their rows are about to be written again.
void CardExperts::Forget() {
  for (const Pending& pending : pending_) {
    const Status ended = worker_->Wait(pending.job);
    if (pending.copied && works_) {
      OnCopied({batch_->layer, pending.asks.front().expert}, ended.ok());
    }
    if (!ended.ok()) Fail(ended);
  }
  pending_.clear();
  failed_.clear();
  to_copy_.clear();
  left_of_other_ = 0;
  batch_.reset();
}

void CardExperts::OnPassBegins(const PassFacts& pass) {
  Forget();
  if (!ledger_.is_settled()) SettleUsage();
  ledger_.OnPassBegins(pass);
  uses_.assign(pass.groups.size(), {});
  drafts_ = pass.drafts;
  if (!drafts_) slots_.OnPassBegins();
  other_->OnPassBegins(pass);
}

// What the card does is shared by rows, as nobody knows whose rows an expert will be answered for.
void CardExperts::OnRouted(std::uint32_t layer, std::span<const float> scores,
                           std::span<ExpertChoice> chosen) {
  const PassFacts& pass = ledger_.pass();
  for (std::size_t g = 0; g < uses_.size(); ++g) uses_[g].hits += pass.groups[g].rows;
  other_->OnRouted(layer, scores, chosen);
}

void CardExperts::Ask(const ExpertBatch& batch) {
  Forget();
  given_experts_ = 0;
  batch_ = batch;
  rows_set_ = false;
  next_answer_ = 0;
  shared_runs_ = true;
  TakeCopied();
  of_other_.assign(batch.demands.begin(), batch.demands.end());
  const bool fits = batch.input.tokens <= worker_->shape().experts.rows;
  if (works_ && !drafts_ && !rests_ && fits) Divide(batch);
  left_of_other_ = of_other_.size();
  ExpertBatch rest = batch;
  rest.demands = of_other_;
  other_->Ask(rest);
}

void CardExperts::Divide(const ExpertBatch& batch) {
  if (first_ask_ == 0) first_ask_ = clock_.Now();
  std::vector<CardAsk> asks;
  for (const ExpertDemand& demand : batch.demands) {
    const ExpertId id{batch.layer, demand.expert};
    slots_.OnAsked(id);
    const double away = options_.seconds_away ? options_.seconds_away(id) : 0;
    asks.push_back({.rows = demand.tokens,
                    .in_card = slots_.SlotOf(id).has_value(),
                    .may_copy = away == 0 && !slots_.Has(id),
                    .away_seconds = away});
  }
  const CardSplit split = lanes_.Split(asks);
  std::vector<ExpertDemand> of_card;
  of_other_.clear();
  for (std::size_t i = 0; i < asks.size(); ++i) {
    const ExpertDemand& demand = batch.demands[i];
    const bool all_it_holds = options_.duty != CardDuty::kByCosts;
    if (split.answers[i] == Answerer::kCard || (all_it_holds && asks[i].in_card)) {
      of_card.push_back(demand);
      continue;
    }
    of_other_.push_back(demand);
    const bool all_it_can = options_.duty == CardDuty::kAllItCan && asks[i].may_copy;
    if (split.answers[i] == Answerer::kCopied || all_it_can) to_copy_.push_back(demand.expert);
  }
  if (!of_card.empty()) BeginOnCard(std::move(of_card));
}

void CardExperts::SetRows() {
  if (std::exchange(rows_set_, true)) return;
  const Activations& input = batch_->input;
  const std::span<float> to = worker_->SetRows(static_cast<std::uint32_t>(input.tokens));
  for (std::size_t row = 0; row < input.tokens; ++row) {
    std::copy_n(input.values + row * input.stride, options_.width,
                to.begin() + static_cast<std::ptrdiff_t>(row * options_.width));
  }
}

GpuWorker::Ask CardExperts::AskOf(const ExpertDemand& demand, std::uint32_t slot) {
  const std::span<const std::uint32_t> rows = batch_->RowsOf(demand.expert);
  const CardLayout& layout = layouts_[batch_->layer];
  return {.slot = slot,
          .expert = layout.At(options_.form),
          .has_biases = layout.has_biases(),
          .rows = {rows.begin(), rows.end()},
          .first_answer = std::exchange(next_answer_, next_answer_ + rows.size())};
}

void CardExperts::BeginOnCard(std::vector<ExpertDemand> asks) {
  SetRows();
  Pending pending{.asks = std::move(asks)};
  std::vector<GpuWorker::Ask> of_worker;
  for (const ExpertDemand& demand : pending.asks) {
    pending.first_answers.push_back(next_answer_);
    of_worker.push_back(AskOf(demand, *slots_.SlotOf({batch_->layer, demand.expert})));
    pending.rows += static_cast<std::uint32_t>(of_worker.back().rows.size());
  }
  pending.job = worker_->Begin(std::move(of_worker));
  pending_.push_back(std::move(pending));
}

std::optional<Bytes> CardExperts::StageCopy(ExpertId id, const Mlp& weights) {
  // A copy of lower precision is not what the card shall have.
  const CardLayout& layout = layouts_[id.layer];
  if (!works_ || !slots_.WouldMakeRoom(id, id.layer) || !layout.Fits(weights)) return std::nullopt;
  const std::span<std::byte> staging = worker_->Stage();
  if (staging.empty()) return std::nullopt;
  const Nanos start = clock_.Now();
  const Bytes bytes = layout.Fill(weights, staging);
  staging_seconds_ = SpanInSeconds(start, clock_.Now());
  copying_seconds_ += staging_seconds_;
  return bytes;
}

bool CardExperts::CopyAndAnswer(const ExpertDemand& demand, const Mlp& weights) {
  const ExpertId id{batch_->layer, demand.expert};
  const std::optional<Bytes> bytes = StageCopy(id, weights);
  if (!bytes) return false;
  const std::uint32_t slot = TakeSlot(id);
  SetRows();
  Pending pending{.asks = {demand}, .first_answers = {next_answer_}, .copied = true};
  GpuWorker::Ask ask = AskOf(demand, slot);
  pending.rows = static_cast<std::uint32_t>(ask.rows.size());
  pending.job = worker_->BeginWithCopy(std::move(ask), *bytes);
  pending_.push_back(std::move(pending));
  return true;
}

void CardExperts::CopyBehind(std::uint32_t expert, const Mlp& weights) {
  const ExpertId id{batch_->layer, expert};
  const double most = kFirstCopies + kMostCopying * SpanInSeconds(first_ask_, clock_.Now());
  if (copying_seconds_ > most) return;
  if (options_.duty == CardDuty::kByCosts &&
      !lanes_.IsWorthCopies(static_cast<std::uint32_t>(batch_->demands.size()))) {
    return;
  }
  const std::optional<Bytes> bytes = StageCopy(id, weights);
  if (!bytes) return;
  const std::uint32_t slot = TakeSlot(id);
  on_the_way_[slot] = id;
  worker_->BeginCopy(slot, *bytes);
}

void CardExperts::GiveFromCard(bool wait) {
  const std::size_t width = options_.width;
  std::erase_if(pending_, [&](const Pending& pending) {
    std::optional<Status> ended = worker_->Ended(pending.job);
    if (!ended && !wait) return false;
    if (!ended) ended = worker_->Wait(pending.job);
    wait = false;
    if (pending.copied && (ended->ok() || works_)) {
      OnCopied({batch_->layer, pending.asks.front().expert}, ended->ok());
    }
    if (!ended->ok()) {
      Fail(*ended);
      failed_.insert(failed_.end(), pending.asks.begin(), pending.asks.end());
      return true;
    }
    const auto experts = static_cast<std::uint32_t>(pending.asks.size());
    // With a copy in it, it says nothing of what an answer takes.
    if (!pending.copied) {
      lanes_.speeds().NoteCard(experts, pending.rows, worker_->SecondsOf(pending.job));
    }
    hits_ += pending.copied ? 0 : experts;
    rows_ += pending.rows;
    for (std::size_t i = 0; i < pending.asks.size(); ++i) {
      const std::uint32_t expert = pending.asks[i].expert;
      ready_.push_back(
          {.expert = expert,
           .answer = ReadyRows{worker_->answers().subspan(pending.first_answers[i] * width,
                                                          batch_->RowsOf(expert).size() * width)}});
    }
    return true;
  });
}

void CardExperts::AskOtherForFailed() {
  of_other_ = std::exchange(failed_, {});
  left_of_other_ = of_other_.size();
  to_copy_.clear();
  ExpertBatch rest = *batch_;
  rest.demands = of_other_;
  other_->Ask(rest);
}

Status CardExperts::GiveFromOther(bool wait) {
  TROUPE_ASSIGN_OR_RETURN(const std::span<const ReadyExpert> given, other_->Take(wait));
  left_of_other_ -= given.size();
  const ReadyExpert* best = nullptr;
  double most = 0;
  for (const ReadyExpert& expert : given) {
    const auto* const weights = std::get_if<Mlp>(&expert.answer);
    const auto demand = std::ranges::find(of_other_, expert.expert, &ExpertDemand::expert);
    if (weights != nullptr && works_ && std::ranges::count(to_copy_, expert.expert) > 0 &&
        CopyAndAnswer(*demand, *weights)) {
      continue;
    }
    ready_.push_back(expert);
    if (weights == nullptr) continue;
    ++given_experts_;
    given_rows_ += demand->tokens;
    const double popularity = slots_.Popularity({batch_->layer, expert.expert});
    if (slots_.Has({batch_->layer, expert.expert}) || (best != nullptr && popularity <= most)) {
      continue;
    }
    best = &expert;
    most = popularity;
  }
  if (best != nullptr && works_ && !drafts_ && !rests_) {
    CopyBehind(best->expert, std::get<Mlp>(best->answer));
  }
  return OkStatus();
}

Result<std::span<const ReadyExpert>> CardExperts::Take(bool wait) {
  ready_.clear();
  given_experts_ = given_rows_ = 0;
  TakeCopied();
  GiveFromCard(/*wait=*/false);
  bool more = true;
  while (more) {
    if (left_of_other_ == 0 && pending_.empty() && !failed_.empty()) AskOtherForFailed();
    const bool nothing = ready_.empty();
    const std::size_t left = left_of_other_;
    if (left > 0) {
      if (Status given = GiveFromOther(wait && nothing); !given.ok()) {
        Forget();
        return given;
      }
    } else if (wait && nothing) {
      GiveFromCard(/*wait=*/true);
    }
    // What the card took over is no answer yet. Without room for any the other source gives none.
    const bool waits_for_room = left > 0 && left == left_of_other_;
    more = wait && ready_.empty() && !waits_for_room &&
           (left_of_other_ > 0 || !pending_.empty() || !failed_.empty());
  }
  given_at_ = clock_.Now();
  return std::span<const ReadyExpert>(ready_);
}

void CardExperts::Advance() {
  NoteProcessor();
  other_->Advance();
}

// The processor has just multiplied two of three matrices of what it was given, and of the shared
// expert where the layer had just begun.
void CardExperts::NoteProcessor() {
  const double shared = std::exchange(shared_runs_, false) ? options_.shared_experts : 0;
  if (given_experts_ == 0) return;
  const double halves = 1.5 * SpanInSeconds(given_at_, clock_.Now());
  const double share = given_experts_ / (given_experts_ + shared);
  lanes_.speeds().NoteProcessor(given_experts_, given_rows_, halves * share);
  given_experts_ = 0;
}

ExpertUsage CardExperts::OwnUsage() const {
  ExpertUsage usage;
  usage.card_hits = hits_;
  usage.card_rows = rows_;
  usage.card_copies = copies_;
  usage.card_failures = failures_;
  return usage;
}

ExpertUsage CardExperts::usage() const {
  ExpertUsage usage = other_->usage();
  usage += OwnUsage();
  return usage;
}

void CardExperts::SettleUsage() {
  ledger_.Settle(OwnUsage(), uses_);
  uses_.assign(uses_.size(), {});
  other_->SettleUsage();
}

ExpertUsage CardExperts::TakeUsage(RequestId request) {
  ExpertUsage usage = other_->TakeUsage(request);
  usage += ledger_.Take(request);
  return usage;
}

ExpertUsage CardExperts::EndRequest(RequestId request) {
  if (!ledger_.is_settled()) SettleUsage();
  ExpertUsage usage = other_->EndRequest(request);
  usage += ledger_.End(request);
  return usage;
}

CardReport CardExperts::report() const {
  const CardSpeeds& speeds = lanes_.speeds();
  return {
      .name = worker_->name(),
      .memory = GpuWorker::DeviceBytes(worker_->shape()) + worker_->slots() * worker_->shape().slot,
      .slots = worker_->slots(),
      .held = slots_.held(),
      .on_the_way = worker_->copies_under_way(),
      .evictions = slots_.evictions(),
      .trials = lanes_.trials(),
      .card_seconds = speeds.CardSeconds(1),
      .processor_seconds = speeds.ProcessorSeconds(1),
      .copy_seconds = speeds.CopySeconds().value_or(0),
      .status = worker_->status()};
}

}  // namespace troupe
