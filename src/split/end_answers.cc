#include "split/end_answers.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "api/model_access.h"
#include "base/mutex.h"
#include "server/http/http_client.h"
#include "split/draft_desk.h"
#include "split/end_device.h"
#include "split/end_engine.h"
#include "split/end_lanes.h"
#include "split/flow/forecast_factor.h"
#include "split/growing_pause.h"
#include "split/new_answer.h"
#include "split/run_left.h"
#include "split/split_answer.h"
#include "split/watched_source.h"

namespace troupe {
namespace {

constexpr std::chrono::milliseconds kTickOfAnswers{25}, kTickAlone{250};
// Open to the cloud beside those of answers: for hellos, and for the offers of drafts.
constexpr std::size_t kKeptConnections = 8;
constexpr double kFirstUsual = 128;
constexpr double kRetrySeconds = 1;

}  // namespace

class EndAnswers::Impl final : public AnswerWorld {
 public:
  Impl(Model& model, EndOptions options, std::unique_ptr<PlaceRule> rule)
      : model_(model),
        options_(std::move(options)),
        rule_(std::move(rule)),
        answers_lose_(rule_->Name() == "end" && !ModelAccess::EngineOf(model).exact()),
        watch_(options_.pauses),
        device_(options_.device),
        client_(
            {.any_certificate = options_.any_certificate, .kept_connections = kKeptConnections}),
        engine_(
            model, clock_, [this](std::function<void()> call) { client_.Post(std::move(call)); },
            /*exact=*/!answers_lose_),
        cloud_(
            client_, clock_,
            {.cloud = options_.cloud, .proof = options_.proof, .most_runs = options_.most_in_cloud},
            [this](const Status& why) { OnTrouble(why); }, [this] { watch_.OnLoad(Now()); }),
        drafts_(clock_, watched_own_, cloud_,
                {.most = std::max<std::size_t>(model.plan().sequences / 2, 1),
                 .always = rule_->Name() == "drafts"}) {}

  Status Run() {
    try {
      thread_ = std::thread([this] {
        Tick(tick_);
        client_.RunUntilStopped();
      });
    } catch (const std::system_error& error) {
      return Error(Code::kResourceExhausted, "no thread for the cloud: {}", error.what());
    }
    return OkStatus();
  }

  ~Impl() override {
    if (!thread_.joinable()) return;
    Close();
    client_.Stop();
    thread_.join();
  }

  // Before Run. Where there can be none the end serves without, and says so.
  void OpenCuts(CutOptions cuts) {
    Result<std::unique_ptr<CutDesk>> desk = CutDesk::Create(
        model_, clock_, cloud_,
        [this](std::function<void()> call) { client_.Post(std::move(call)); }, std::move(cuts),
        options_.say, options_.explain ? options_.say : CutDesk::Say());
    if (desk.ok()) {
      cuts_ = *std::move(desk);
      cuts_->TellOfWork([this] { CountLanes(); });
    } else if (options_.say) {
      options_.say(fmt::format("no prompts are cut by layers: {}", desk.status().message()));
    }
  }

  // Before Run.
  void OpenMemory(MemoryWatchOptions options) {
    device_.Follow(MemoryWatch::Open(
        ModelAccess::EngineOf(model_),
        [this](std::function<void()> errand) { ModelAccess::Between(model_, std::move(errand)); },
        std::move(options), options_.say));
  }

  Result<Generation> Start(Request request, Callbacks callbacks) {
    const bool keeps_to_limit =
        !request.most_loss || (cuts_ != nullptr && cuts_->KeepsTo(*request.most_loss));
    const bool crosses_exactly = request.exact || !keeps_to_limit;
    request.exact = request.exact || !answers_lose_;
    if (request.embed || callbacks.on_logits || callbacks.on_prompt) {
      client_.Post([this] { engine_.Yield(); });
      return model_.Start(std::move(request), std::move(callbacks));
    }
    std::shared_ptr<CallbackGate> gate;
    if (callbacks.on_piece || callbacks.on_end || callbacks.on_read) {
      gate = std::make_shared<CallbackGate>(std::move(callbacks));
    }
    TROUPE_ASSIGN_OR_RETURN(SplitAnswer::Parts parts,
                            PartsOfAnswer(model_, std::move(request), gate, clock_,
                                          {.id = ++last_id_, .thread = thread_.get_id()}));
    parts.crosses_exactly = crosses_exactly;
    const std::shared_ptr<Ticket> ticket = parts.ticket;
    {
      const MutexLock lock(mu_);
      if (closed_) return Error(Code::kFailedPrecondition, "the engine was closed");
      if (state_.under_way >= options_.most_answers) {
        return Error(Code::kUnavailable, "{} requests are under way, no more can wait",
                     state_.under_way)
            .WithRetryAfter(kRetrySeconds);
      }
      ++state_.under_way;
    }
    auto answer = std::make_shared<SplitAnswer>(*this, std::move(parts));
    client_.Post([this, answer = std::move(answer)] { Begin(answer); });
    return ModelAccess::Handle(ticket, std::move(gate));
  }

  void Close() {
    {
      const MutexLock lock(mu_);
      if (std::exchange(closed_, true)) return;
    }
    client_.Post([this] {
      for (const auto& answer : std::vector(answers_)) {
        answer->Fail(Status(Code::kCancelled, "the engine was closed"));
      }
      engine_.Close();
      Settle();
      const MutexLock lock(mu_);
      emptied_ = true;
      changed_.NotifyAll();
    });
    const MutexLock lock(mu_);
    while (!emptied_) changed_.Wait(mu_);
  }

  EndState State() const {
    const MutexLock lock(mu_);
    return state_;
  }
  bool cuts_lose() const { return cuts_ != nullptr && cuts_->loses(); }

  // AnswerWorld, on the loop's thread.
  Nanos Now() const override { return clock_.Now(); }
  TokenSource& SourceIn(Side place) override {
    if (place == Side::kCloud) return cloud_;
    return watched_own_;
  }
  bool CloudIsUsable() const override {
    return watch_.usable() && !answers_lose_ && !stall_pause_.IsPausedAt(Now());
  }
  std::size_t CloudContext() const override { return hello_.context; }
  KnownPrefixes* KnownIn(Side place) override { return engine_.KnownIn(place, cloud_.known()); }
  bool CloudHasRoom() const override { return cloud_.has_room(); }
  PlaceChoice Choose(const AnswerTask& task) override { return ChooseFor(task, std::nullopt); }
  Look LookAgain(const AnswerTask& task, const SoFar& so_far) override {
    UnderWay now{.place = so_far.place};
    std::optional<Nanos> next_token_in;
    if (so_far.place == Side::kCloud) {
      now = InTheCloud(so_far.left, task.In(Side::kCloud).read, Now());
      if (const auto costs = cloud_.Costs()) {
        // It has not stalled as long as it may have lost what it had kept.
        next_token_in = NextTokenIn(InTheCloud(so_far.left, task.read, Now()), *costs);
      }
    } else if (const std::optional<PlaceCosts> own = OwnCosts(task.In(Side::kEnd).read)) {
      now = engine_.Of(so_far.left, own->read_seconds);
    }
    now.token_seconds = so_far.token_seconds;
    now.drafts = so_far.drafts;
    return {.choice = ChooseFor(task, now), .waits = now.waits, .next_token_in = next_token_in};
  }
  std::size_t UsualTokens() const override { return static_cast<std::size_t>(usual_tokens_); }
  FlowLimits limits() const override { return options_.limits; }
  std::optional<std::uint64_t> NameForDrafts() override { return drafts_.NewName(); }
  std::shared_ptr<AnswerDraft> Draft(Request rest, std::uint64_t name,
                                     const DraftVerdict& told) override {
    return drafts_.Draft(std::move(rest), name, told);
  }
  TokenSource::Stop StartCut(const RunAsk& ask, bool exact, const CutPlan& plan,
                             RunEvents events) override {
    engine_.Yield();
    return cuts_->Start(ask, exact, plan, std::move(events));
  }
  void OnWrongCloud() override {
    distrusted_ = true;
    watch_.OnRefused(DataLoss("the cloud has said what this model does not say"), Now());
  }

  // Its hellos go on, and none of them says that its engine stands still.
  void OnStall() override {
    (void)stall_pause_.OnOver(Error(Code::kUnavailable, "no token in time"), Now());
  }

  void Explain(const std::string& line) override {
    if (options_.explain && options_.say) options_.say(line);
  }

  // Before its user has the answer: what is asked of the figures then holds it.
  void OnOver(const AnswerFlow& flow, const Predicted& predicted) override {
    CountLanes();
    constexpr double kNewest = 0.1;
    usual_tokens_ += kNewest * (static_cast<double>(flow.tokens().size()) - usual_tokens_);
    const FlowCounts& counts = flow.counts();
    if (counts.tokens[static_cast<std::size_t>(Side::kCloud)] > 0 && counts.stalls == 0) {
      (void)stall_pause_.OnOver(OkStatus(), Now());
    }
    const MutexLock lock(mu_);
    state_.flow += counts;
    if (predicted.expected_seconds > 0) {
      if (predicted.cut) {
        cut_factor_.OnAnswer(predicted.expected_seconds, predicted.factor, predicted.seconds,
                             Now());
      }
      CountPredicted(predicted, state_);
    }
    TellTraffic();
    --state_.under_way;
  }

 private:
  void Begin(const std::shared_ptr<SplitAnswer>& answer) {
    bool is_closed = false;
    {
      const MutexLock lock(mu_);
      is_closed = closed_;
    }
    answers_.push_back(answer);
    if (is_closed) {
      answer->Fail(Status(Code::kCancelled, "the engine was closed"));
    } else {
      engine_.Look();
      const PlaceChoice choice = answer->Begin();
      Explain(fmt::format("an answer begins at the {}{}: {}", Name(choice.place),
                          choice.drafts ? " with drafts of the end"
                          : choice.cut  ? " behind layers of the end"
                                        : "",
                          choice.why));
      const MutexLock lock(mu_);
      ++state_.begun[static_cast<std::size_t>(choice.place)];
    }
    Settle();
    CountLanes();
    if (answers_.size() == 1) Tick(++tick_);  // as often as answers want from now on
  }

  PlaceChoice ChooseFor(const AnswerTask& task, const std::optional<UnderWay>& now) {
    const std::optional<PlaceCosts> own = OwnCosts(task.In(Side::kEnd).read);
    const std::optional<PlaceCosts> cloud = cloud_.Costs();
    PlaceFacts facts{.end = own,
                     .cloud = cloud,
                     .drafts = DraftCosts(own, cloud),
                     .drafts_are_new = drafts_.is_new(),
                     .cut_factor = cut_factor_.At(Now())};
    if (cuts_ != nullptr && own) facts.end->wait_seconds += cuts_->LeftSeconds();
    if (cuts_ != nullptr && !now) {
      TellCuts(OwnCosts(task.read), cloud);  // they read it all
      facts.cut = cuts_->Plan(task);
      facts.cuts_are_new = cuts_->is_new();
    }
    return rule_->Choose(task, facts, now);
  }

  // Lets go of what is over, and tells what is known.
  void Settle() {
    std::erase_if(answers_, [](const auto& answer) { return answer->over(); });
    const std::optional<PlaceCosts> own = OwnCosts(1), cloud = cloud_.Costs();
    const std::optional<PlaceCosts> with_drafts = DraftCosts(own, cloud);
    const MutexLock lock(mu_);
    state_.cloud = watch_.state();
    TellTraffic();
    state_.round_trip_seconds = round_trip_seconds_;
    state_.end = MeasuredCosts();
    state_.cloud_costs = cloud;
    state_.with_drafts = with_drafts;
    state_.drafts = drafts_.counts();
    state_.pace = drafts_.Pace();
    state_.draft_odds = drafts_.odds();
    state_.draft_taken = drafts_.taken();
    state_.draft_factor = drafts_.factor();
    state_.memory = device_.memory();
    state_.device = device_.report();
  }

  void TellTraffic() TROUPE_REQUIRES(mu_) {
    state_.bytes_sent = cloud_.bytes_sent();
    state_.bytes_received = cloud_.bytes_received();
    if (cuts_ != nullptr) state_.cuts = cuts_->State();
  }

  void TellCuts(const std::optional<PlaceCosts>& own, const std::optional<PlaceCosts>& cloud) {
    cuts_->SetFacts(
        {.own_read_seconds = own ? own->read_seconds : 0,
         .cloud_read_seconds = cloud ? cloud->read_seconds : hello_.load.read_seconds,
         .own_reads_seconds =
             own ? own->read_seconds * static_cast<double>(engine_.own().tokens_to_read()) : 0,
         .cloud_wait_seconds = cloud ? cloud->wait_seconds : 0,
         .cloud_reads_seconds = cloud_.ReadsSeconds(),
         .round_trip_seconds = round_trip_seconds_,
         .cloud_tokens = hello_.cut_tokens,
         .cloud_goes_on = hello_.goes_on_behind_cuts});
  }

  void CountLanes() {
    const bool end_works = engine_.is_at_work() || (cuts_ != nullptr && cuts_->computes());
    lanes_.Look(!answers_.empty(), LanesOf(answers_, end_works), Now());
    const MutexLock lock(mu_);
    state_.busy_seconds = lanes_.busy_seconds();
    state_.idle_seconds = lanes_.idle_seconds();
  }

  void Tick(std::uint64_t tick) {
    if (tick != tick_) return;  // a faster one goes on
    CountLanes();
    engine_.Look();
    for (const auto& answer : std::vector(answers_)) answer->OnTime();
    cloud_.OnTime();
    if (cuts_ != nullptr) cuts_->OnTime();
    device_.OnTime(Now());
    if (watch_.TakeAsk(Now(), /*wants_load=*/!answers_.empty())) AskCloud();
    TellNews();
    Settle();
    client_.After(UntilNextTick(), [this, tick] { Tick(tick); });
  }

  // Also alone an end looks often while memory falls.
  std::chrono::milliseconds UntilNextTick() const {
    if (!answers_.empty()) return kTickOfAnswers;
    const std::chrono::nanoseconds due(device_.DueIn(Now(), Nanos(kTickAlone.count()) * 1'000'000));
    return std::max(kTickOfAnswers, std::chrono::ceil<std::chrono::milliseconds>(due));
  }

  void TellNews() {
    std::optional<std::string> news = watch_.TakeNews();
    if (!news || !options_.say) return;
    if (!watch_.usable()) {
      const std::string cost = CostOfBeingAlone(MeasuredCosts(), cloud_.Costs());
      if (!cost.empty()) *news += "; " + cost;
    }
    options_.say(*news);
  }

  void AskCloud() {
    cloud_.AskHello([this, asked = Stopwatch()](const Result<CloudHello>& hello) {
      round_trip_seconds_ = asked.Seconds();
      OnHello(hello);
    });
  }

  void OnHello(const Result<CloudHello>& hello) {
    Status status = hello.status();
    if (status.ok()) status = CheckFits(options_.proof, hello->proof, "the cloud");
    if (status.ok()) {
      hello_ = *hello;
      cloud_.OnHello(*hello, round_trip_seconds_);
    }
    if (distrusted_) {
      OnWrongCloud();
    } else if (status.ok()) {
      if (!watch_.usable()) cloud_.known().Forget();  // it may be another process
      watch_.OnThere(Now());
      MeasureSelf();
    } else if (status.code() == Code::kFailedPrecondition) {
      watch_.OnRefused(status, Now());
    } else {
      watch_.OnSilent(status, Now());  // also one that is full, or opens its model still
    }
  }

  // Where places are compared: an end whose cloud is always there would never learn that it is the
  // faster one.
  void MeasureSelf() {
    const bool compares =
        rule_->Name() != "cloud" && rule_->Name() != "end" && rule_->Name() != "drafts";
    if (compares) engine_.MeasureIfIdle(cuts_ != nullptr && cuts_->LeftSeconds() > 0);
  }

  // Of an answer.
  void OnTrouble(const Status& why) {
    if (why.code() == Code::kFailedPrecondition) {
      watch_.OnRefused(why, Now());
    } else if (why.code() != Code::kResourceExhausted) {  // full here, and no trouble of the cloud
      watch_.OnSilent(why, Now());
    }
  }

  // Where power is short they count for more: by these places are chosen, and nothing is told.
  std::optional<PlaceCosts> OwnCosts(std::size_t read) const {
    return engine_.Costs(read, device_.power());
  }
  std::optional<PlaceCosts> MeasuredCosts() const { return engine_.Costs(/*read=*/1, /*power=*/1); }

  std::optional<PlaceCosts> DraftCosts(const std::optional<PlaceCosts>& own,
                                       const std::optional<PlaceCosts>& cloud) {
    drafts_.SetFacts({.own_token_seconds = own ? own->token_seconds : 0,
                      .cloud_token_seconds = cloud ? cloud->token_seconds : 0,
                      .round_trip_seconds = round_trip_seconds_,
                      .cloud_checks = hello_.checks_drafts});
    return drafts_.Costs(cloud);
  }

  Model& model_;
  const EndOptions options_;
  const std::unique_ptr<PlaceRule> rule_;
  const bool answers_lose_;  // quality, as the model was opened: the cloud would contradict them
  const MonotonicClock clock_;
  std::atomic<RequestId> last_id_{0};

  // The loop's thread's.
  CloudWatch watch_;
  GrowingPause stall_pause_;
  EndDevice device_;
  LaneTimes lanes_;
  double usual_tokens_ = kFirstUsual;
  CloudHello hello_;  // the last one
  ForecastFactor cut_factor_;
  double round_trip_seconds_ = 0;
  bool distrusted_ = false;  // for good: it has said a wrong token
  std::uint64_t tick_ = 0;

  mutable Mutex mu_;
  CondVar changed_;
  EndState state_ TROUPE_GUARDED_BY(mu_);
  bool closed_ TROUPE_GUARDED_BY(mu_) = false;
  bool emptied_ TROUPE_GUARDED_BY(mu_) = false;

  HttpClient client_;
  EndEngine engine_;
  WatchedSource watched_own_{engine_.own(), [this] { engine_.Yield(); }, [this] { CountLanes(); }};
  CloudSource cloud_;
  DraftDesk drafts_;
  std::unique_ptr<CutDesk> cuts_;                      // null: no prompt is cut
  std::vector<std::shared_ptr<SplitAnswer>> answers_;  // the loop's thread's
  std::thread thread_;
};

EndAnswers::EndAnswers(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
EndAnswers::~EndAnswers() = default;

Result<std::unique_ptr<EndAnswers>> EndAnswers::Open(Model& model, EndOptions options) {
  TROUPE_ASSIGN_OR_RETURN(std::unique_ptr<PlaceRule> rule,
                          MakePlaceRule(options.rule, options.route_aware));
  CutOptions cuts = std::exchange(options.cuts, {});
  std::optional<MemoryWatchOptions> memory = std::exchange(options.memory, {});
  const bool may_cut = cuts.tokens > 0 && (rule->Name() == "auto" || rule->Name() == "layers");
  auto impl = std::make_unique<Impl>(model, std::move(options), std::move(rule));
  if (memory) impl->OpenMemory(*std::move(memory));
  if (may_cut) impl->OpenCuts(std::move(cuts));
  TROUPE_RETURN_IF_ERROR(impl->Run());
  return std::unique_ptr<EndAnswers>(new EndAnswers(std::move(impl)));
}

Result<Generation> EndAnswers::Start(Request request, Callbacks callbacks) {
  return impl_->Start(std::move(request), std::move(callbacks));
}

void EndAnswers::Close() { impl_->Close(); }

EndState EndAnswers::State() const { return impl_->State(); }

bool EndAnswers::cuts_lose() const { return impl_->cuts_lose(); }

}  // namespace troupe
