// Two toy machines that cut prompts between them, over a link that loses, delays, doubles and
// reorders messages on a virtual clock. Rows, and keys and values, are a chain of hashes of the
// tokens before, so that what is wrong, missing or out of place is found. For tests only.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/rng.h"
#include "split/cut_run.h"
#include "split/split_answer.h"
#include "text/tokenizer.h"

namespace troupe {

inline constexpr Nanos kToyTick = 1'000'000;
inline constexpr std::uint32_t kToyWidth = 4, kToyLayers = 6, kToyCut = 2;

// The answer of the toy model alone.
Answer ToyAnswer(const Tokenizer& tokenizer, const Clock& clock, const Request& request);

class CutToy final : public AnswerWorld, public CutWorld {
 public:
  CutToy(const Tokenizer& tokenizer, std::uint64_t seed, bool faults);
  ~CutToy() override;

  // Both
  Nanos Now() const override { return clock_.Now(); }

  // AnswerWorld
  TokenSource& SourceIn(Side place) override;
  bool CloudIsUsable() const override { return usable_; }
  PlaceChoice Choose(const AnswerTask& task) override;
  Look LookAgain(const AnswerTask&, const SoFar&) override {
    return {.choice = {.place = Side::kCloud, .why = "again"}, .next_token_in = kToyTick};
  }
  bool CloudHasRoom() const override { return true; }
  std::size_t UsualTokens() const override { return 10; }
  FlowLimits limits() const override;
  std::optional<std::uint64_t> NameForDrafts() override { return std::nullopt; }
  std::shared_ptr<AnswerDraft> Draft(Request, std::uint64_t, const DraftVerdict&) override {
    return nullptr;
  }
  TokenSource::Stop StartCut(const RunAsk& ask, bool exact, const CutPlan& plan,
                             RunEvents events) override;
  void OnWrongCloud() override { ADD_FAILURE() << "both say the same"; }
  void OnStall() override { ++stalls_; }
  void Explain(const std::string&) override {}
  void OnOver(const AnswerFlow& flow, const Predicted&) override { flow_ = flow.counts(); }

  // CutWorld
  std::uint32_t layers() const override { return kToyLayers; }
  double RoundTripSeconds() const override { return 2e-9 * static_cast<double>(half_trip_); }
  Result<RunLower> OpenLower(std::uint32_t layer, std::size_t tokens, bool keys) override;
  Result<StateEncoder> EncoderFor(const CutPlan& plan, bool exact) override;
  void OnEncoded(const CutPlan&, const EncodedRows& encoded) override { encoded_ += encoded.rows; }
  std::uint64_t BasisOf(std::uint32_t layer, const StateCode& code) const override;
  TokenSource::Stop StartFar(const RunAsk& ask, RunEvents events) override;
  TokenSource::Stop SendStates(std::uint64_t name, std::span<const std::byte> message,
                               OnReceipt wanted) override;
  CutMeter& meter() override { return meter_; }
  CutCounts& counts() override { return counts_; }
  void OnCutOver(const Status& status) override { ++(status.ok() ? cut_ok_ : cut_not_); }
  void Report(const std::string& line) override { report_ = line; }

  // A millisecond passes.
  void Step();

  const Clock& clock() const { return clock_; }
  const std::string& report() const { return report_; }
  std::uint64_t cut_ok() const { return cut_ok_; }
  std::uint64_t cut_not() const { return cut_not_; }
  std::uint64_t stalls() const { return stalls_; }
  Nanos far_began() const { return far_began_; }
  std::uint64_t stopped() const { return stopped_; }
  const FlowCounts& flow() const { return flow_; }
  // Messages that came until the one that was refused as the first came again.
  std::size_t overtook() const { return overtook_; }

  bool far_at_once_ = true;
  std::size_t chunk_ = 8;
  Nanos no_room_until_ = 0;          // in the cloud, for messages
  std::uint64_t refused_ = 0;        // of these
  bool refuses_first_ = false;       // of all messages, once
  std::size_t most_positions_ = 64;  // of a message with keys and values
  Status end_fails_;                 // by what its layers fail; OK: they do not
  Nanos chunk_takes_ = 3 * kToyTick, on_link_ = kToyTick, cloud_takes_ = 2 * kToyTick,
        half_trip_ = 2 * kToyTick, least_stall_ = 60'000 * kToyTick;

 private:
  enum class Link { kUp, kHangs, kCut };
  struct Far {
    RunAsk ask;
    RunEvents events;
    std::vector<TokenId> tokens;  // that are cut
    StateDecoder decoder;
    std::map<std::size_t, std::vector<float>> rows = {};                     // by position
    std::map<std::pair<std::uint32_t, std::size_t>, std::string> keys = {};  // by layer, position
    bool chooses = false;
    bool over = false;
  };
  class WholeSource;

  void At(Nanos when, std::function<void()> call) { events_.emplace_back(when, std::move(call)); }
  void After(Nanos time, std::function<void()> call) { At(Now() + time, std::move(call)); }
  template <typename Call>
  void Tell(Far& far, Call call) {
    if (!far.over && link_ == Link::kUp) call();
  }
  bool RefusesAsFirst(const std::vector<std::byte>& bytes);
  void Arrive(std::uint64_t name, const std::vector<std::byte>& bytes, const OnReceipt& on_receipt);
  std::size_t Store(Far& far, const std::vector<std::byte>& bytes);
  void MaybeChoose(const std::shared_ptr<Far>& far);
  struct Told {  // token by token
    std::vector<TokenId> tokens;
    FinishReason reason = FinishReason::kLength;
    RunEvents events;
    std::shared_ptr<bool> over;
    bool is_far = false;
    std::size_t next = 0;
  };
  void TellNext(const std::shared_ptr<Told>& told);
  // One token every two milliseconds, as long as the run is not over.
  void Say(const RunAsk& ask, const RunEvents& events, std::shared_ptr<bool> over, bool is_far);

  const Tokenizer& tokenizer_;
  Rng rng_;
  const bool faults_;
  ManualClock clock_;
  Link link_ = Link::kUp;
  bool usable_ = true;
  std::vector<std::pair<Nanos, std::function<void()>>> events_;
  std::map<std::uint64_t, std::shared_ptr<Far>> fars_;
  Nanos end_free_ = 0, link_free_ = 0, cloud_free_ = 0;
  std::uint64_t name_ = 0;
  std::vector<std::weak_ptr<CutRun>> runs_;
  Nanos far_began_ = 0;
  std::uint64_t stopped_ = 0;     // messages
  std::vector<std::byte> first_;  // that was refused as the first; empty: none yet
  bool first_came_ = false;       // again
  std::size_t overtook_ = 0;
  FlowCounts flow_;
  CutMeter meter_;
  CutCounts counts_;
  std::uint64_t cut_ok_ = 0, cut_not_ = 0, stalls_ = 0, encoded_ = 0;
  std::string report_;
  std::unique_ptr<WholeSource> own_, cloud_;
};

class CutToyTest : public testing::Test {
 protected:
  CutToyTest();
  ~CutToyTest() override;

  // For an answer of `tokens` tokens, behind a random prompt.
  Request Asked(Rng& rng, std::size_t tokens, std::size_t most_prompt = 60) const;
  // Over links with faults, for answers of that many tokens at most: all are the toy model's alone.
  struct Schedules {
    std::uint64_t cut = 0, went_on = 0, otherwise = 0;  // prompts
  };
  Schedules RunSchedules(int schedules, std::size_t most_tokens, std::size_t most_prompt);
  // The answer, and how long it took.
  std::pair<Answer, Nanos> Run(CutToy& world, const Request& request) const;

  std::unique_ptr<Tokenizer> tokenizer_;
};

}  // namespace troupe
