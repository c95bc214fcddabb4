#include "lab/resident_draft.h"

#include <algorithm>
#include <set>

#include "base/clock.h"
#include "kernels/elementwise.h"

namespace troupe {
namespace {

TokenId Likeliest(std::span<const float> logits) {
  return static_cast<TokenId>(ArgMax(logits.data(), logits.size()));
}

// What the routers choose in a draft's passes.
class Named final : public RouteObserver {
 public:
  void PassBegins(const PassFacts&) override {}
  void Routed(std::uint32_t layer, std::span<const ExpertChoice> chosen,
              std::span<const float>) override {
    if (!listening) return;
    for (const ExpertChoice& choice : chosen) experts.insert({layer, choice.expert});
  }
  void PassEnded() override {}

  bool listening = false;
  std::set<ExpertId> experts;
};

// One answer after the other, first plainly and then by drafts.
class Measurement {
 public:
  Measurement(Session& session, Engine& engine, LossySwitch& experts,
              const ResidentDraftOptions& options)
      : session_(session), engine_(engine), experts_(experts), options_(options) {
    found_.tried.resize(options.length);
    found_.right.resize(options.length);
    engine_.transformer().set_route_observer(&named_);
    engine_.ObserveMisses([this](const MissEvent& miss) {
      if (checking_ && named_.experts.contains(miss.id)) ++found_.named;
    });
  }
  ~Measurement() {
    engine_.transformer().set_route_observer(nullptr);
    engine_.ObserveMisses({});
    experts_.SetExact(true);
  }
  Measurement(const Measurement&) = delete;
  Measurement& operator=(const Measurement&) = delete;

  Status Measure(std::span<const TokenId> prompt) {
    TROUPE_ASSIGN_OR_RETURN(const std::vector<TokenId> plain, Plain(prompt));
    TROUPE_ASSIGN_OR_RETURN(TokenId last, Read(prompt));
    for (std::size_t at = 1; at < plain.size();) {
      const std::size_t length = std::min(options_.length, plain.size() - 1 - at);
      TROUPE_ASSIGN_OR_RETURN(std::vector<TokenId> fed, Draft(last, length));
      TROUPE_ASSIGN_OR_RETURN(const std::size_t right, Check(fed, plain, at));
      at += right + 1;
      last = plain[at - 1];
    }
    found_.tokens += plain.size() - 1;
    return OkStatus();
  }
  ResidentDrafts found() const { return found_; }

 private:
  Result<TokenId> Read(std::span<const TokenId> prompt) {
    experts_.SetExact(true);
    session_.Truncate(0);
    TROUPE_RETURN_IF_ERROR(session_.FeedPrompt(prompt));
    return Likeliest(session_.logits());
  }

  Result<std::vector<TokenId>> Plain(std::span<const TokenId> prompt) {
    TROUPE_ASSIGN_OR_RETURN(const TokenId first, Read(prompt));
    std::vector<TokenId> answer = {first};
    const ExpertUsage before = session_.expert_usage();
    const Stopwatch watch;
    while (answer.size() < options_.tokens) {
      TROUPE_RETURN_IF_ERROR(session_.Feed(std::span(answer).last(1)));
      answer.push_back(Likeliest(session_.logits()));
    }
    found_.plain_seconds += watch.Seconds();
    found_.plain += session_.expert_usage().Since(before);
    return answer;
  }

  // The last token and what follows it by residents alone. The sequence stays as it was.
  Result<std::vector<TokenId>> Draft(TokenId last, std::size_t length) {
    std::vector<TokenId> fed = {last};
    const std::size_t before = session_.tokens().size();
    experts_.SetExact(false);
    named_.experts.clear();
    named_.listening = true;
    const Stopwatch watch;
    while (fed.size() <= length) {
      TROUPE_RETURN_IF_ERROR(session_.Feed(std::span(fed).last(1)));
      fed.push_back(Likeliest(session_.logits()));
    }
    found_.draft_seconds += watch.Seconds();
    named_.listening = false;
    session_.Truncate(before);
    experts_.SetExact(true);
    return fed;
  }

  Result<std::size_t> Check(std::span<const TokenId> fed, std::span<const TokenId> plain,
                            std::size_t at) {
    const std::size_t length = fed.size() - 1;
    const ExpertUsage before = session_.expert_usage();
    const Stopwatch watch;
    checking_ = true;
    const Status run = length == 0
                           ? session_.Feed(fed)
                           : session_.FeedWithGuesses(fed, static_cast<std::uint32_t>(length));
    checking_ = false;
    TROUPE_RETURN_IF_ERROR(run);
    std::size_t right = 0;
    for (;; ++right) {
      const auto logits = length == 0 ? session_.logits() : session_.LogitsAfterGuesses(right);
      const TokenId next = Likeliest(logits);
      if (next != plain[at + right]) return Error(Code::kInternal, "a check changed the answer");
      if (right == length) break;
      ++found_.tried[right];
      if (fed[right + 1] != next) break;
      ++found_.right[right];
    }
    if (length > 0) session_.KeepGuesses(static_cast<std::uint32_t>(right));
    found_.check_seconds += watch.Seconds();
    found_.check += session_.expert_usage().Since(before);
    ++found_.checks;
    return right;
  }

  Session& session_;
  Engine& engine_;
  LossySwitch& experts_;
  const ResidentDraftOptions options_;
  Named named_;
  bool checking_ = false;
  ResidentDrafts found_;
};

}  // namespace

double ResidentDrafts::MostSpeedup() const {
  const auto misses = static_cast<double>(std::max<std::uint64_t>(check.misses, 1));
  const double hidden = check.stall_seconds * static_cast<double>(named) / misses;
  return plain_seconds / (check_seconds - hidden + std::max(draft_seconds, hidden));
}

Result<ResidentDrafts> DraftByResidents(Session& session, Engine& engine, LossySwitch& experts,
                                        const std::vector<std::vector<TokenId>>& prompts,
                                        const ResidentDraftOptions& options,
                                        const std::function<void(std::size_t done)>& progress) {
  TROUPE_CHECK(options.tokens > 0 && options.length > 0);
  Measurement measurement(session, engine, experts, options);
  std::size_t done = 0;
  for (const std::vector<TokenId>& prompt : prompts) {
    TROUPE_RETURN_IF_ERROR(measurement.Measure(prompt));
    if (progress) progress(++done);
  }
  return measurement.found();
}

}  // namespace troupe
