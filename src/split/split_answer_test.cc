// Answers that two fake places choose, over a link that fails, hangs and comes back at random on a
// virtual clock, with drafts that are right or wrong: text, tokens and pieces are those of the
// model alone.
#include "split/split_answer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/rng.h"
#include "runtime/fake_runner_for_test.h"
#include "testing/test_seed.h"
#include "text/draft/offered_draft.h"
#include "text/tiny_vocab_for_test.h"

namespace troupe {
namespace {

using testing::HasSubstr;

constexpr Nanos kStep = 1'000'000;
constexpr std::size_t kContext = 300;

// A toy model that generates as a real one does, one token each time it is asked.
class ToyRun {
 public:
  ToyRun(const Tokenizer& tokenizer, const Clock& clock, const Request& request)
      : text_(TextGeneration::Make(tokenizer, std::get<std::vector<TokenId>>(request.prompt),
                                   OptionsOf(request), {.capacity = kContext}, clock)
                  .value()),
        fed_(text_.prompt().begin(), text_.prompt().end()),
        begun_(request.begun.size()) {
    text_.Read(text_.prompt_left());
  }

  static GenerateOptions OptionsOf(const Request& request) {
    return {.max_tokens = request.max_tokens,
            .sampler = request.sampling,
            .stop = request.stop,
            .begun = request.begun};
  }

  // The next token, or nothing at the end.
  std::optional<TokenId> Next() {
    if (text_.ended()) return std::nullopt;
    for (const TokenId token : text_.NextTokens(1)) fed_.push_back(token);
    static const FakeRunner kToy({.vocabulary = 256});
    const std::size_t before = text_.answer().tokens.size();
    EXPECT_TRUE(text_.Accept(kToy.LogitsAfter(fed_), scratch_).ok());
    if (text_.answer().tokens.size() == before) return std::nullopt;
    return text_.answer().tokens.back();
  }
  const Answer& answer() const { return text_.answer(); }

 private:
  TextGeneration text_;
  std::vector<TokenId> fed_;
  std::size_t begun_;
  SamplerScratch scratch_;
};

class FakeWorld final : public AnswerWorld, public DraftWorld {
 public:
  FakeWorld(const Tokenizer& tokenizer, std::uint64_t seed)
      : tokenizer_(tokenizer),
        rng_(seed),
        end_(*this, Role::kOfEnd),
        cloud_(*this, Role::kOfCloud),
        guesser_(*this, Role::kOfGuesses) {}

  Nanos Now() const override { return clock_.Now(); }
  TokenSource& SourceIn(Side place) override { return place == Side::kEnd ? end_ : cloud_; }
  bool CloudIsUsable() const override { return usable_; }
  std::size_t CloudContext() const override { return cloud_context_; }
  void set_cloud_context(std::size_t tokens) { cloud_context_ = tokens; }
  KnownPrefixes* KnownIn(Side place) override { return &known_[static_cast<std::size_t>(place)]; }
  PlaceChoice Choose(const AnswerTask& task) override {
    asked_ = task;
    return {.place = rng_.Below(4) == 0 ? Side::kEnd : Side::kCloud,
            .why = "chance",
            .token_seconds = 0.02,
            .drafts = rng_.Below(4) > 0};
  }
  Look LookAgain(const AnswerTask& task, const SoFar& so_far) override {
    looks_with_drafts_ += so_far.drafts;
    looks_with_pace_ += so_far.token_seconds > 0;
    return {.choice = Choose(task), .waits = !so_far.left.begun};
  }
  bool CloudHasRoom() const override { return has_room_; }
  std::size_t UsualTokens() const override { return 50; }
  FlowLimits limits() const override {
    return {.silence = 60 * kStep, .first_again = 20 * kStep, .patience = 4};
  }
  std::optional<std::uint64_t> NameForDrafts() override {
    if (rng_.Below(4) == 0) return std::nullopt;
    return ++last_name_;
  }
  std::shared_ptr<AnswerDraft> Draft(Request rest, std::uint64_t name,
                                     const DraftVerdict& told) override {
    if (rng_.Below(4) == 0) return nullptr;
    return std::make_shared<AnswerDraft>(*this, std::move(rest), name, told);
  }
  TokenSource::Stop StartCut(const RunAsk&, bool, const CutPlan&, RunEvents) override {
    ADD_FAILURE() << "no prompt is cut here (cut_run_test.cc)";
    return [] {};
  }
  void OnWrongCloud() override { ADD_FAILURE() << "both say the same"; }
  void OnStall() override {}
  void Explain(const std::string& line) override { said_ += line + "\n"; }
  const std::string& said() const { return said_; }

  void OnOver(const AnswerFlow&, const Predicted&) override { ++over_; }
  int over() const { return over_; }

  TokenSource& Guesser() override { return guesser_; }
  // Offers may be lost, and may overtake each other.
  void Offer(const DraftOffer& offer, OnVerdict on_verdict) override {
    ASSERT_LE(offer.tokens.size(), kMostDraftTokens);
    offers_.push_back({.offer = offer,
                       .on_verdict = std::move(on_verdict),
                       .arrives_at = Now() + kStep * static_cast<Nanos>(1 + rng_.Below(20))});
  }
  DraftPlan Pace() const override {
    return {.ahead = 8, .token_seconds = 1, .in_time = 0.5, .cloud_seconds = 1};
  }
  double RoundTripSeconds() const override { return 0.01; }
  DraftMeter& meter() override { return meter_; }
  DraftCounts& counts() override { return drafts_; }
  void OnDrafted(const DraftedAnswer& drafted) override {
    ASSERT_LE(drafted.judged, static_cast<double>(drafted.tokens));
    ASSERT_LE(drafted.right, static_cast<double>(kContext));
    drafted_.tokens += drafted.tokens;
    drafted_.seconds += drafted.seconds;
    drafted_.right += drafted.right;
  }
  const DraftedAnswer& drafted() const { return drafted_; }  // sums
  const AnswerTask& asked() const { return asked_; }         // last
  int looks_with_drafts() const { return looks_with_drafts_; }
  int looks_with_pace() const { return looks_with_pace_; }

  // A millisecond passes.
  void Step() {
    clock_.Advance(kStep);
    if (rng_.Below(80) == 0) link_ = static_cast<Link>(rng_.Below(3));
    usable_ = link_ == Link::kUp || rng_.Below(5) == 0;
    has_room_ = rng_.Below(5) > 0;
    DeliverOffers();
    end_.Speak();
    cloud_.Speak();
    guesser_.Speak();
  }

  const Tokenizer& tokenizer() const { return tokenizer_; }
  const Clock& clock() const { return clock_; }
  std::size_t most_runs() const { return most_runs_; }

 private:
  enum class Link { kUp, kHangs, kCut };
  enum class Role { kOfEnd, kOfCloud, kOfGuesses };
  struct SentOffer {
    DraftOffer offer;
    OnVerdict on_verdict;
    Nanos arrives_at = 0;
  };

  void DeliverOffers() {
    for (SentOffer& sent : std::exchange(offers_, {})) {
      if (sent.arrives_at > Now()) {
        offers_.push_back(std::move(sent));
        continue;
      }
      const OfferedDraft* const draft = link_ == Link::kUp ? cloud_.Take(sent.offer) : nullptr;
      if (draft == nullptr) {
        sent.on_verdict(std::nullopt);
      } else {
        const OfferedDraft::Counts counts = draft->counts();
        sent.on_verdict(DraftVerdict{.checked = counts.checked, .right = counts.right});
      }
    }
  }

  class FakeSource final : public TokenSource {
   public:
    FakeSource(FakeWorld& world, Role role) : world_(world), role_(role) {}

    Stop Start(const RunAsk& ask, RunEvents events) override {
      runs_.push_back(std::make_shared<Run>(
          Run{.toy = ToyRun(world_.tokenizer_, world_.clock_, ask.request),
              .events = std::move(events),
              .name = ask.drafts,
              .left = ask.left,
              .tokens = ask.request.begun,
              .speaks_at = world_.Now() + kStep * static_cast<Nanos>(world_.rng_.Below(40))}));
      const auto live = std::ranges::count_if(runs_, [](const auto& run) { return !run->over; });
      world_.most_runs_ = std::max(world_.most_runs_, static_cast<std::size_t>(live));
      return [run = runs_.back()] { run->over = true; };
    }

    // Null: no run of that name is under way.
    const OfferedDraft* Take(const DraftOffer& offer) {
      for (const auto& run : runs_) {
        if (run->over || run->name != offer.drafts) continue;
        run->offered->Offer(offer.number, offer.from, offer.tokens);
        return run->offered.get();
      }
      return nullptr;
    }

    void Speak() {
      for (const auto& run : std::vector(runs_)) SpeakOf(*run);
      std::erase_if(runs_, [](const auto& run) { return run->over; });
    }

   private:
    struct Run {
      ToyRun toy;
      RunEvents events;
      std::optional<std::uint64_t> name;
      std::shared_ptr<RunLeft> left;  // null: nobody asks
      std::vector<TokenId> tokens;    // of the answer
      std::shared_ptr<OfferedDraft> offered = std::make_shared<OfferedDraft>();
      Nanos speaks_at = 0;
      bool over = false;
    };

    void SpeakOf(Run& run) {
      if (run.over || run.speaks_at > world_.Now()) return;
      if (role_ == Role::kOfCloud && world_.link_ == Link::kHangs) return;
      if (role_ == Role::kOfCloud && world_.link_ == Link::kCut) {
        run.over = true;
        return run.events.on_failure(Error(Code::kUnavailable, "cut"));
      }
      run.speaks_at = world_.Now() + kStep * static_cast<Nanos>(world_.rng_.Below(9));
      if (run.left) run.left->begun = true;
      // As many as of a draft are right, and one.
      const std::vector<TokenId> draft = run.offered->After(run.tokens, 64).tokens;
      std::vector<TokenId> said;
      bool ends = false;
      for (std::size_t right = 0; !ends; ++right) {
        const std::optional<TokenId> token = run.toy.Next();
        if (token) said.push_back(*token);
        ends = !token || run.toy.answer().usage.generated_tokens > 0;
        if (ends || right == draft.size() || draft[right] != *token) {
          run.offered->NoteCheck(static_cast<std::uint32_t>(draft.size()),
                                 static_cast<std::uint32_t>(right));
          break;
        }
      }
      run.tokens.insert(run.tokens.end(), said.begin(), said.end());
      const FinishReason reason = run.toy.answer().finish;
      if (role_ == Role::kOfGuesses && world_.rng_.Below(6) == 0 && !said.empty()) said.back() ^= 1;
      if (!said.empty()) run.events.on_tokens(said);
      if (!ends || run.over) return;
      run.over = true;
      run.events.on_end(reason, {});
    }

    FakeWorld& world_;
    const Role role_;
    std::vector<std::shared_ptr<Run>> runs_;
  };

  const Tokenizer& tokenizer_;
  Rng rng_;
  ManualClock clock_;
  Link link_ = Link::kUp;
  bool usable_ = true, has_room_ = true;
  std::size_t most_runs_ = 0;
  std::size_t cloud_context_ = 0;
  std::array<KnownPrefixes, 2> known_;
  AnswerTask asked_;
  int over_ = 0;
  std::string said_;
  std::uint64_t last_name_ = 0;
  std::vector<SentOffer> offers_;
  DraftMeter meter_;
  DraftCounts drafts_;
  DraftedAnswer drafted_;
  int looks_with_drafts_ = 0, looks_with_pace_ = 0;
  FakeSource end_, cloud_, guesser_;
};

class SplitAnswerTest : public testing::Test {
 protected:
  SplitAnswerTest() : tokenizer_(MakeTokenizer(TinyByteLevelVocab()).value()) {}

  static Request RandomRequest(Rng& rng) {
    std::vector<TokenId> prompt(1 + rng.Below(40));
    for (TokenId& token : prompt) token = static_cast<TokenId>(rng.Below(256));
    Request request{.prompt = prompt, .max_tokens = rng.Below(90)};
    request.sampling.seed = rng.Next();
    if (rng.Below(3) == 0) request.sampling.temperature = 0;
    if (rng.Below(3) == 0) request.stop = {"e", "Th"};
    return request;
  }

  std::shared_ptr<SplitAnswer> Make(FakeWorld& world, const Request& request,
                                    std::optional<Nanos> deadline = std::nullopt) {
    gate_ = std::make_shared<CallbackGate>(Callbacks{.on_piece = [this](const Piece& piece) {
      shown_ += piece.text;
      return true;
    }});
    ticket_ = std::make_shared<Ticket>(1);
    return std::make_shared<SplitAnswer>(
        world,
        SplitAnswer::Parts{
            .request = request,
            .deadline = deadline,
            .text =
                TextGeneration::Make(
                    *tokenizer_, std::get<std::vector<TokenId>>(request.prompt),
                    ToyRun::OptionsOf(request), {.capacity = kContext}, world.clock(),
                    {.on_text = [gate = gate_](std::string_view text) { return gate->Show(text); }})
                    .value(),
            .ticket = ticket_,
            .gate = gate_});
  }
  void RunToEnd(FakeWorld& world, SplitAnswer& answer) {
    for (int step = 0; !answer.over(); ++step) {
      ASSERT_LT(step, 100'000) << "an answer that never ends";
      world.Step();
      if (step % 10 == 0) answer.OnTime();
    }
  }

  std::unique_ptr<Tokenizer> tokenizer_;
  std::shared_ptr<CallbackGate> gate_;
  std::shared_ptr<Ticket> ticket_;
  std::string shown_;
};

TEST_F(SplitAnswerTest, HasTheBytesOfTheModelAloneWhateverHappensToTheLink) {
  Rng rng(TestSeed());
  FlowCounts sum;
  DraftCounts drafts;
  DraftedAnswer drafted;
  int looks_with_drafts = 0, looks_with_pace = 0;
  std::string said;
  for (int schedule = 0; schedule < 900; ++schedule) {
    const Request request = RandomRequest(rng);
    FakeWorld world(*tokenizer_, rng.Next());
    ToyRun alone(*tokenizer_, world.clock(), request);
    while (alone.Next()) {
    }
    shown_.clear();
    const auto answer = Make(world, request);
    answer->Begin();
    RunToEnd(world, *answer);
    ASSERT_TRUE(ticket_->done());
    const Answer got = ticket_->Wait().value();
    ASSERT_EQ(got.tokens, alone.answer().tokens) << "schedule " << schedule;
    ASSERT_EQ(got.text, alone.answer().text) << "schedule " << schedule;
    ASSERT_EQ(got.finish, alone.answer().finish) << "schedule " << schedule;
    ASSERT_EQ(got.stopped_by, alone.answer().stopped_by);
    ASSERT_EQ(shown_, got.text);
    ASSERT_EQ(world.over(), 1);
    ASSERT_LE(world.most_runs(), 1u) << "two runs in one place";
    sum += answer->flow().counts();
    said += world.said();
    drafts.guessed += world.counts().guessed;
    drafts.checked += world.counts().checked;
    drafts.right += world.counts().right;
    drafted.tokens += world.drafted().tokens;
    drafted.seconds += world.drafted().seconds;
    drafted.right += world.drafted().right;
    looks_with_drafts += world.looks_with_drafts();
    looks_with_pace += world.looks_with_pace();
  }
  EXPECT_GT(sum.taken_over[0], 100u);
  EXPECT_GT(sum.taken_over[1], 100u);
  EXPECT_GT(sum.moved[0], 50u);
  EXPECT_GT(sum.moved[1], 20u);
  EXPECT_GT(sum.failures, 100u);
  EXPECT_GT(sum.silences, 20u);
  for (const char* line : {"an answer moves to the end behind 0 tokens: chance",
                           "an answer goes on at the cloud as well behind ", " tokens: chance",
                           "an answer goes on at the end behind ",
                           " tokens: the cloud was silent for 0.1 s", " tokens: cut\n"}) {
    EXPECT_THAT(said, HasSubstr(line));
  }
  EXPECT_GT(drafts.guessed, 1000u);
  EXPECT_GT(drafts.checked, 50u);
  EXPECT_GT(drafts.right, 25u);
  EXPECT_LT(drafts.right, drafts.checked);
  EXPECT_EQ(drafted.right, static_cast<double>(drafts.right)) << "each once";
  EXPECT_GT(drafted.tokens, 1000u);
  EXPECT_GT(drafted.seconds, 1);
  EXPECT_GT(looks_with_drafts, 100);
  EXPECT_GT(looks_with_pace, 1000);
}

TEST_F(SplitAnswerTest, IsChosenAtTheEndWhereItDoesNotFitIntoTheCloudsContext) {
  Rng rng(TestSeed());
  for (int schedule = 0; schedule < 30; ++schedule) {
    FakeWorld world(*tokenizer_, rng.Next());
    world.set_cloud_context(40);
    Request request{.prompt = std::vector<TokenId>(30, 5), .max_tokens = 12};
    request.sampling.seed = rng.Next();
    request.ignore_end = true;
    if (schedule % 2 == 0) request = {.prompt = std::vector<TokenId>(40, 5), .max_tokens = 12};
    const auto answer = Make(world, request);
    EXPECT_EQ(answer->Begin().why, "it does not fit into the cloud's context");
    RunToEnd(world, *answer);
    EXPECT_TRUE(ticket_->Wait().ok());
    const FlowCounts& counts = answer->flow().counts();
    EXPECT_EQ(counts.tokens[1] + counts.unused[1] + counts.failures + counts.refusals, 0u);
  }
}

TEST_F(SplitAnswerTest, GoesToACloudIntoWhoseContextItMayFit) {
  int in_cloud = 0;
  for (std::uint64_t seed = 0; seed < 30; ++seed) {
    FakeWorld world(*tokenizer_, seed);
    world.set_cloud_context(40);
    Request request{.prompt = std::vector<TokenId>(30, 5), .max_tokens = 11};
    request.ignore_end = true;
    if (seed % 2 == 0) request = {.prompt = std::vector<TokenId>(39, 5), .max_tokens = 50};
    const auto answer = Make(world, request);
    in_cloud += answer->Begin().place == Side::kCloud;
  }
  EXPECT_GT(in_cloud, 10);
}

TEST_F(SplitAnswerTest, TheNextTurnIsReadOnlyBehindWhatAPlaceHasAnswered) {
  Rng rng(TestSeed());
  int in_cloud = 0, at_end = 0;
  for (int schedule = 0; schedule < 30; ++schedule) {
    FakeWorld world(*tokenizer_, rng.Next());
    Request request{.prompt = std::vector<TokenId>(64, 5), .max_tokens = 40};
    request.cache_salt = "mine";
    request.ignore_end = true;
    const auto first = Make(world, request);
    first->Begin();
    EXPECT_EQ(world.asked().kept, (std::array<std::size_t, 2>{}));
    RunToEnd(world, *first);
    std::vector<TokenId> turn(64, 5);
    for (const TokenId token : first->flow().tokens()) turn.push_back(token);
    turn.resize(turn.size() + 30, 6);
    request.prompt = turn;
    const std::size_t said = first->flow().tokens().size();
    (void)Make(world, request)->Begin();
    const AnswerTask task = world.asked();
    EXPECT_EQ(task.read, 64 + said + 30);
    // Who chose the last token has not read it.
    const std::size_t read = said == 0 ? 0 : 64 + said - 1;
    EXPECT_EQ(std::max(task.kept[0], task.kept[1]), read / 16 * 16);
    for (const std::size_t side : {0, 1}) {
      const bool has_chosen = first->flow().counts().tokens[side] > 0;
      EXPECT_EQ(task.kept[side] > 0, has_chosen);
    }
    in_cloud += task.kept[1] > 0;
    at_end += task.kept[0] > 0;
    request.cache_salt = "yours";
    (void)Make(world, request)->Begin();
    EXPECT_EQ(world.asked().kept, (std::array<std::size_t, 2>{}));
  }
  EXPECT_GT(in_cloud, 0);
  EXPECT_GT(at_end, 0);
}

TEST_F(SplitAnswerTest, WhoCancelsHasWhatWasWrittenSoFar) {
  FakeWorld world(*tokenizer_, 5);
  Request request{.prompt = std::vector<TokenId>{1, 2}, .max_tokens = 200};
  request.sampling.seed = 3;
  const auto answer = Make(world, request);
  answer->Begin();
  while (answer->flow().tokens().size() < 5) world.Step();
  ticket_->Cancel();
  RunToEnd(world, *answer);
  const Answer got = ticket_->Wait().value();
  EXPECT_EQ(got.finish, FinishReason::kCancelled);
  EXPECT_GE(got.tokens.size(), 5u);
  EXPECT_LT(got.tokens.size(), 200u);
}

TEST_F(SplitAnswerTest, AnAnswerPastItsDeadlineFails) {
  FakeWorld world(*tokenizer_, 5);
  const auto answer =
      Make(world, {.prompt = std::vector<TokenId>{1, 2}, .max_tokens = 250}, 30 * kStep);
  answer->Begin();
  RunToEnd(world, *answer);
  EXPECT_EQ(ticket_->Wait().status().code(), Code::kDeadlineExceeded);
}

TEST_F(SplitAnswerTest, IsEndedByWhoClosesTheModel) {
  FakeWorld world(*tokenizer_, 5);
  const auto answer = Make(world, {.prompt = std::vector<TokenId>{1, 2}});
  answer->Begin();
  answer->Fail(Status(Code::kCancelled, "the engine was closed"));
  world.Step();
  EXPECT_TRUE(answer->over());
  EXPECT_EQ(ticket_->Wait().status().code(), Code::kCancelled);
}

}  // namespace
}  // namespace troupe
