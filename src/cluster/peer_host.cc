#include "cluster/peer_host.h"

#include <algorithm>
#include <limits>
#include <system_error>
#include <utility>

#include "base/thread_share.h"
#include "cluster/face/node_buffers.h"
#include "cluster/wire/answer.h"

namespace troupe {
namespace {

std::uint32_t Micros(Nanos time) {
  return static_cast<std::uint32_t>(std::clamp<Nanos>(time / 1000, 0, 0xffffffff));
}

}  // namespace

Result<std::unique_ptr<PeerHost>> PeerHost::Create(CallShape shape, HeldExperts& held,
                                                   std::unique_ptr<ExpertHost> computes,
                                                   SendFrame send, const Clock& clock,
                                                   const Options& options) {
  Compute compute = [computes = std::shared_ptr<ExpertHost>(std::move(computes))](
                        ExpertId id, const Activations& input, std::span<const std::uint32_t> rows,
                        std::span<float> out) { return computes->Compute(id, input, rows, out); };
  auto host = std::make_unique<PeerHost>(std::move(shape), held, std::move(compute),
                                         std::move(send), clock, options);
  try {
    host->thread_ = std::thread([self = host.get()] { self->Main(); });
  } catch (const std::system_error& error) {
    return Error(Code::kResourceExhausted, "no thread to answer peers: {}", error.what());
  }
  return host;
}

PeerHost::PeerHost(CallShape shape, HeldExperts& held, Compute compute, SendFrame send,
                   const Clock& clock, const Options& options)
    : shape_(std::move(shape)),
      held_(held),
      compute_(std::move(compute)),
      send_(std::move(send)),
      clock_(clock),
      most_of_one_message_(options.most_of_one_message),
      lower_priority_(options.lower_priority),
      queue_(options.most_waiting, options.most_bytes) {}

PeerHost::~PeerHost() { Stop(); }

void PeerHost::Stop() {
  {
    const MutexLock lock(mu_);
    stopping_ = true;
    came_.NotifyOne();
  }
  if (thread_.joinable()) thread_.join();
}

std::optional<PeerAskRefused> PeerHost::ProblemOf(const PeerAsk& ask) const {
  using Reason = PeerAskRefused::Reason;
  const auto refused = [&](Reason reason, std::string text) {
    return PeerAskRefused{.call = ask.call, .reason = reason, .text = std::move(text)};
  };
  if (ask.layer >= shape_.grid.layers || ask.rows.width != shape_.width ||
      ask.rows.form != shape_.forms[ask.layer]) {
    return refused(Reason::kBad, fmt::format("layer {}, rows of {} {}: not this model's", ask.layer,
                                             ask.rows.width, ToString(ask.rows.form)));
  }
  if (ask.rows.count > kMostRowsAsked) {
    return refused(Reason::kBad,
                   fmt::format("{} rows, at most {} allowed", ask.rows.count, kMostRowsAsked));
  }
  for (const PeerAsk::Expert& expert : ask.experts) {
    const ExpertId id{ask.layer, expert.expert};
    if (!shape_.grid.Has(id)) {
      return refused(Reason::kBad, fmt::format("{}: there is none", ToString(id)));
    }
    if (!held_.Holds(id)) {
      return refused(Reason::kNotHeld, fmt::format("{} is not held here", ToString(id)));
    }
  }
  return std::nullopt;
}

void PeerHost::Refuse(LinkId link, PeerAskRefused refused) {
  {
    const MutexLock lock(mu_);
    using Reason = PeerAskRefused::Reason;
    ++(refused.reason == Reason::kBusy      ? counters_.busy
       : refused.reason == Reason::kNotHeld ? counters_.not_held
                                            : counters_.bad);
  }
  (void)send_(link, Encode(refused));  // who has gone need not be told
}

void PeerHost::OnAsk(LinkId link, std::vector<std::byte> frame) {
  const Result<PeerAsk> ask = DecodePeerAsk(frame);
  if (!ask.ok()) {
    const MutexLock lock(mu_);
    ++counters_.bad;
    return;
  }
  if (auto problem = ProblemOf(*ask)) return Refuse(link, std::move(*problem));
  const PeerCallId call = ask->call;
  const Nanos now = clock_.Now();
  const Nanos worth_until = ask->deadline_micros == 0 ? std::numeric_limits<Nanos>::max()
                                                      : now + Nanos{1000} * ask->deadline_micros;
  {
    const MutexLock lock(mu_);
    if (queue_.Add(link, {.link = link,
                          .call = call,
                          .came = now,
                          .worth_until = worth_until,
                          .frame = std::move(frame)})) {
      came_.NotifyOne();
      return;
    }
  }
  Refuse(
      link,
      {.call = call, .reason = PeerAskRefused::Reason::kBusy, .text = "as many calls wait as may"});
}

void PeerHost::OnCancel(LinkId link, PeerCallId call) {
  const MutexLock lock(mu_);
  const auto is_it = [call](const Call& one) { return one.call == call; };
  while (queue_.TakeOut(link, is_it)) ++counters_.cancelled;
  if (under_way_ == std::pair(link, call)) under_way_.reset();
}

void PeerHost::OnGone(LinkId link) {
  const MutexLock lock(mu_);
  queue_.Forget(link);
  if (under_way_ && under_way_->first == link) under_way_.reset();
}

std::size_t PeerHost::waiting() const {
  const MutexLock lock(mu_);
  return queue_.size();
}

HostCounters PeerHost::counters() const {
  const MutexLock lock(mu_);
  return counters_;
}

RunningLine PeerHost::computing() const {
  const MutexLock lock(mu_);
  return computing_;
}

void PeerHost::Main() {
  if (lower_priority_ > 0) LowerThreadPriority(lower_priority_);
  for (;;) {
    {
      const MutexLock lock(mu_);
      while (!stopping_ && queue_.size() == 0) came_.Wait(mu_);
      if (stopping_) return;
    }
    AnswerNext();
  }
}

bool PeerHost::AnswerNext() {
  std::optional<Call> call;
  {
    const MutexLock lock(mu_);
    call = queue_.Next();
    if (!call) return false;
    under_way_ = std::pair(call->link, call->call);
    if (clock_.Now() > call->worth_until) {  // the asker has gone elsewhere by now
      ++counters_.expired;
      return true;
    }
  }
  Answer(*std::move(call));
  return true;
}

void PeerHost::Answer(Call call) {
  const Nanos start = clock_.Now();
  const Result<PeerAsk> ask = DecodePeerAsk(call.frame);
  TROUPE_CHECK(ask.ok());  // it was when it came
  const std::size_t computed = ComputePart(call, *ask, rows_.Of(ask->rows));
  call.done += computed;
  call.worked += clock_.Now() - start;
  const bool over = computed == 0 || call.done == ask->experts.size();
  const MutexLock lock(mu_);
  const bool wanted = std::exchange(under_way_, std::nullopt).has_value();
  if (over) return;
  const LinkId link = call.link;
  wanted ? queue_.PutBack(link, std::move(call)) : void(++counters_.cancelled);
}

// One message: some of the experts that are left. Says how many; none if the rest was refused, or
// could not be sent.
std::size_t PeerHost::ComputePart(const Call& call, const PeerAsk& ask, const Activations& rows) {
  const Nanos start = clock_.Now();
  const Nanos had = ThreadProcessorTime();
  const std::size_t first = call.done;
  PeerAnswer answer{.call = ask.call,
                    .waited_micros = Micros(start - call.came - call.worked),
                    .experts = {},
                    .rows = {.form = ask.answer, .width = shape_.width, .bytes = {}}};
  std::size_t last = first;
  while (last < ask.experts.size() &&
         (last == first || answer.rows.count * answer.rows.row_bytes() < most_of_one_message_)) {
    const PeerAsk::Expert& expert = ask.experts[last++];
    answer.experts.push_back(
        {.expert = expert.expert, .rows = static_cast<std::uint16_t>(expert.rows.size())});
    answer.rows.count += expert.rows.size();
  }
  answer.last = last == ask.experts.size();
  std::vector<float> out(answer.rows.count * shape_.width);
  std::span<float> left = out;
  for (std::size_t i = first; i < last; ++i) {
    const PeerAsk::Expert& expert = ask.experts[i];
    which_.assign(expert.rows.begin(), expert.rows.end());
    const std::size_t floats = which_.size() * shape_.width;
    const ExpertId id{ask.layer, expert.expert};
    if (!compute_(id, rows, which_, left.first(floats)).ok()) {
      Refuse(call.link, {.call = ask.call,
                         .reason = PeerAskRefused::Reason::kNotHeld,
                         .text = fmt::format("{} is not held here any more", ToString(id))});
      return 0;
    }
    left = left.subspan(floats);
  }
  const Nanos computed = clock_.Now() - start;
  const Nanos held_back = std::max<Nanos>(0, computed - (ThreadProcessorTime() - had));
  answer.computed_micros = Micros(computed);
  answer.waiting = static_cast<std::uint32_t>(waiting());
  RowFrame frame = MakeFrame(answer);
  for (std::size_t row = 0; row < answer.rows.count; ++row) {
    writer_.Write(ask.answer, std::span(out).subspan(row * shape_.width, shape_.width),
                  frame.Row(row));
  }
  {
    const MutexLock lock(mu_);
    queue_.Charge(call.link, answer.rows.count);
    counters_.experts += last - first;
    counters_.rows += answer.rows.count;
    const auto experts = static_cast<double>(last - first);
    const double seconds = static_cast<double>(computed) * 1e-9;
    counters_.seconds += seconds;
    counters_.held_back_seconds += static_cast<double>(held_back) * 1e-9;
    computing_.Add(static_cast<double>(answer.rows.count) / experts, seconds / experts);
  }
  const Status sent = send_(call.link, std::move(frame).Take());
  {
    const MutexLock lock(mu_);
    counters_.calls += sent.ok() && answer.last ? 1 : 0;
    counters_.unsent += sent.ok() ? 0 : 1;
  }
  if (sent.ok()) return last - first;
  // Small enough to find room, so that the asker need not wait. Who has gone need not be told.
  (void)send_(call.link, Encode(PeerAskRefused{.call = ask.call,
                                               .reason = PeerAskRefused::Reason::kBusy,
                                               .text = "no room for the answer on the link"}));
  return 0;
}

}  // namespace troupe
