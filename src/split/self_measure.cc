#include "split/self_measure.h"

#include <utility>

#include "api/model_access.h"
#include "expert/flow/row_speed.h"
#include "split/own_costs.h"

namespace troupe {
namespace {

// Of such a pass in what is known of its size. Most, as the rest may be of other minutes; not all,
// as a pass may have met something that is over.
constexpr double kMeasuredShare = 0.6;

}  // namespace

SelfMeasure::SelfMeasure(Model& model, const Clock& clock, OwnSource& own, bool exact)
    : model_(model),
      clock_(clock),
      own_(own),
      exact_(exact),
      prompts_(PromptsToMeasureBy(model.plan())) {}

void SelfMeasure::OnIdle(bool is_known) {
  const Nanos now = clock_.Now();
  if (is_closed_ || is_under_way() || pause_.IsPausedAt(now)) return;
  // A part of a measurement is none: a line through zero is drawn by the texts that were read.
  if (is_known && !known_at_ && rounds_ == 0) known_at_ = now;
  if (known_at_ && now - *known_at_ < kGoodFor) return;
  if (rounds_ == 0 || now - round_at_ >= kGoodFor) {
    ++rounds_;
    round_at_ = now;
  }
  done_ = 0;
  Next();
}

void SelfMeasure::Yield() {
  if (!is_under_way()) return;
  std::exchange(stop_, nullptr)();
  (void)pause_.OnOver(Error(Code::kUnavailable, "somebody wants the engine"), clock_.Now());
  Rest();
}

void SelfMeasure::Next() {
  ModelAccess::WeighPasses(model_, done_ == 0 ? 0 : kMeasuredShare);
  const std::size_t vocabulary = ModelAccess::EngineOf(model_).tokenizer().size();
  const std::uint64_t text = (rounds_ - 1) * prompts_.size() + done_ + 1;
  Request request = RequestToMeasureBy(vocabulary, prompts_[done_], text);
  request.exact = exact_;
  stop_ = own_.Start({.request = std::move(request)},
                     {.on_heard = [] {},
                      .on_read = [](std::size_t, std::size_t) {},
                      .on_tokens = [](std::span<const TokenId>) {},
                      .on_end = [this](FinishReason, const Usage&) { OnOver(OkStatus()); },
                      .on_failure = [this](const Status& why) { OnOver(why); }});
}

void SelfMeasure::OnOver(const Status& status) {
  stop_ = nullptr;
  const bool is_all = status.ok() && ++done_ == prompts_.size();
  if (status.ok() && !is_all) return Next();
  (void)pause_.OnOver(status, clock_.Now());
  if (is_all) known_at_ = clock_.Now();
  Rest();
}

void SelfMeasure::Rest() { ModelAccess::WeighPasses(model_, kUsualPassShare); }

}  // namespace troupe
