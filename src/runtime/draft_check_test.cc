// Drafts checked on real engines, with experts in memory and behind a few slots: whatever a draft
// says, the answer and the sequence are those without it.
#include "runtime/draft_check.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "base/clock.h"
#include "base/rng.h"
#include "runtime/engine.h"
#include "runtime/plain_answer_for_test.h"
#include "runtime/session.h"
#include "testing/test_seed.h"

namespace troupe {
namespace {

constexpr const char* kDraftModel = TROUPE_SOURCE_DIR "/models/tiny-qwen2moe-q8_0.gguf";

struct CheckedDraft {
  std::uint32_t drafted = 0;
  std::uint32_t right = 0;
};

// Feeds what the answer asks for and the draft behind it, and lets it go on by what is right.
CheckedDraft CheckDraft(Session& session, TextGeneration& generation,
                        std::span<const TokenId> draft) {
  const std::span<const TokenId> sure = generation.NextTokens(1);
  std::vector<TokenId> fed(sure.begin(), sure.end());
  fed.insert(fed.end(), draft.begin(), draft.end());
  const auto drafted = static_cast<std::uint32_t>(draft.size());
  EXPECT_TRUE(session.FeedWithGuesses(fed, drafted).ok());
  const std::uint32_t right = AcceptGuesses(
      generation, draft, [&](std::size_t guesses) { return session.LogitsAfterGuesses(guesses); },
      session.sampler_scratch());
  session.KeepGuesses(right);
  return {.drafted = drafted, .right = right};
}

// What is guessed of the tokens that will come; none: the last token is fed alone.
using MakeDraft = std::function<std::vector<TokenId>(std::span<const TokenId> coming)>;

struct Guessed {
  std::uint64_t right = 0, wrong = 0;
};

// A whole answer on a session, with the draft of each pass made of `truth`, its tokens.
Answer Write(Session& session, const Tokenizer& tokenizer, const std::vector<TokenId>& prompt,
             const GenerateOptions& options, std::span<const TokenId> truth, const MakeDraft& draft,
             Guessed& guessed) {
  ManualClock clock;
  TextGeneration generation =
      TextGeneration::Make(tokenizer, prompt, options, {.capacity = session.room()}, clock).value();
  EXPECT_TRUE(session.FeedPrompt(prompt).ok());
  generation.Read(prompt.size());
  EXPECT_TRUE(generation.Accept(session.logits(), session.sampler_scratch()).ok());
  while (!generation.ended()) {
    std::vector<TokenId> tokens = draft(truth.subspan(generation.answer().tokens.size()));
    tokens.resize(std::min({tokens.size(), generation.MostGuesses(), session.MostGuesses()}));
    if (tokens.empty()) {
      EXPECT_TRUE(session.Feed(generation.NextTokens(1)).ok());
      EXPECT_TRUE(generation.Accept(session.logits(), session.sampler_scratch()).ok());
      continue;
    }
    const CheckedDraft checked = CheckDraft(session, generation, tokens);
    guessed.right += checked.right;
    guessed.wrong += checked.drafted - checked.right;
    // All but the last token are in the sequence, as without drafts.
    EXPECT_EQ(session.tokens().size(), prompt.size() + generation.answer().tokens.size() - 1);
  }
  return std::move(generation).TakeAnswer();
}

class DraftCheck : public testing::TestWithParam<std::optional<std::uint32_t>> {
 protected:
  void SetUp() override {
    EngineOptions options{.threads = 2, .context = 160, .sequences = 2};
    options.offload.slots = GetParam();
    options.offload.in_order = true;
    engine_ = Engine::Open(kDraftModel, options).value();
    prompt_ = engine_->tokenizer().Encode("The kernel is the driver of the device").value();
  }
  static GenerateOptions Options(std::size_t tokens, double temperature = 0) {
    GenerateOptions options{.max_tokens = tokens};
    options.sampler.temperature = temperature;
    options.ignore_end = true;
    return options;
  }
  Answer Plain(const GenerateOptions& options) {
    Session session = Session::Create(*engine_).value();
    return PlainAnswer(session, engine_->tokenizer(), prompt_, options);
  }
  Answer Checked(Session& session, const GenerateOptions& options, const Answer& plain,
                 const MakeDraft& draft) {
    Guessed guessed;
    Answer answer =
        Write(session, engine_->tokenizer(), prompt_, options, plain.tokens, draft, guessed);
    right_ += guessed.right;
    wrong_ += guessed.wrong;
    return answer;
  }

  std::unique_ptr<Engine> engine_;
  std::vector<TokenId> prompt_;
  std::uint64_t right_ = 0, wrong_ = 0;
};

std::vector<TokenId> Copy(std::span<const TokenId> tokens, std::size_t most) {
  tokens = tokens.first(std::min(most, tokens.size()));
  return {tokens.begin(), tokens.end()};
}

TEST_P(DraftCheck, RightDraftsNeedFewPassesAndChangeNothing) {
  for (const double temperature : {0.0, 0.9}) {
    const GenerateOptions options = Options(40, temperature);
    const Answer plain = Plain(options);
    Session session = Session::Create(*engine_).value();
    const Answer drafted =
        Checked(session, options, plain, [](auto coming) { return Copy(coming, 7); });
    EXPECT_EQ(drafted.tokens, plain.tokens);
    EXPECT_EQ(drafted.text, plain.text);
    EXPECT_EQ(drafted.usage.decode_steps, plain.usage.decode_steps);
  }
  EXPECT_GT(right_, 60u);
  EXPECT_EQ(wrong_, 0u);
}

// Always wrong, right but for the last, and random: no byte changes.
TEST_P(DraftCheck, AnAdversaryChangesNothing) {
  Rng rng(TestSeed());
  const auto vocabulary = static_cast<std::uint64_t>(engine_->config().vocabulary);
  const MakeDraft wrong = [](auto coming) {
    return std::vector<TokenId>(5, coming.empty() ? 0 : coming[0] ^ 1);
  };
  const MakeDraft but_for_the_last = [](auto coming) {
    std::vector<TokenId> draft = Copy(coming, 6);
    if (!draft.empty()) draft.back() ^= 1;
    return draft;
  };
  const MakeDraft random = [&](auto coming) {
    std::vector<TokenId> draft = Copy(coming, rng.Below(9));
    for (TokenId& token : draft) {
      if (rng.Below(4) == 0) token = static_cast<TokenId>(rng.Below(vocabulary));
    }
    return draft;
  };
  for (const MakeDraft& draft : {wrong, but_for_the_last, random}) {
    for (const double temperature : {0.0, 0.9}) {
      const GenerateOptions options = Options(30, temperature);
      const Answer plain = Plain(options);
      Session session = Session::Create(*engine_).value();
      EXPECT_EQ(Checked(session, options, plain, draft).tokens, plain.tokens);
    }
  }
  EXPECT_GT(right_, 50u);
  EXPECT_GT(wrong_, 50u);
}

TEST_P(DraftCheck, ASequenceGoesOnAfterwardsAsIfNothingHadBeenGuessed) {
  const GenerateOptions options = Options(20);
  const Answer plain = Plain(options);
  Session plainly = Session::Create(*engine_).value();
  PlainAnswer(plainly, engine_->tokenizer(), prompt_, options);
  Session drafting = Session::Create(*engine_).value();
  Checked(drafting, options, plain, [](auto coming) {
    std::vector<TokenId> draft = Copy(coming, 4);
    draft.push_back(3);
    return draft;
  });
  ASSERT_TRUE(std::ranges::equal(plainly.tokens(), drafting.tokens()));
  const std::vector<TokenId> next = {5, 9, 2};
  ASSERT_TRUE(plainly.Feed(next).ok());
  ASSERT_TRUE(drafting.Feed(next).ok());
  EXPECT_TRUE(std::ranges::equal(plainly.logits(), drafting.logits()));
}

// What a stop string, a penalty or an end that comes within a draft does, it does there as well.
TEST_P(DraftCheck, AnAnswerMayEndWithinADraft) {
  GenerateOptions options = Options(60);
  options.sampler.frequency_penalty = 0.3;
  const std::string whole = Plain(options).text;
  ASSERT_GT(whole.size(), 12u);
  options.stop = {whole.substr(9, 3)};
  const Answer plain = Plain(options);
  ASSERT_EQ(plain.finish, FinishReason::kStopString);
  GenerateOptions longer = options;
  longer.stop = {};
  const Answer unstopped = Plain(longer);
  Session session = Session::Create(*engine_).value();
  const Answer drafted =
      Checked(session, options, unstopped, [](auto coming) { return Copy(coming, 9); });
  EXPECT_EQ(drafted.text, plain.text);
  EXPECT_EQ(drafted.tokens, plain.tokens);
  EXPECT_EQ(drafted.finish, plain.finish);
}

INSTANTIATE_TEST_SUITE_P(Slots, DraftCheck,
                         testing::Values(std::optional<std::uint32_t>(),
                                         std::optional<std::uint32_t>(24)),
                         [](const auto& instance) {
                           return instance.param ? std::to_string(*instance.param) + "Slots"
                                                 : "InMemory";
                         });

// The eviction policy learns of a text the same, with drafts or without.
TEST(DraftCheckOffloaded, CachesLearnWhatTheTextTeaches) {
  class Listening final : public EvictionPolicy {
   public:
    explicit Listening(std::vector<std::pair<ExpertId, std::uint32_t>>& asks) : asks_(asks) {}
    std::string_view name() const override { return "listening"; }
    void OnAsked(ExpertId id, std::span<const Asker> askers) override {
      asks_.emplace_back(id, TokensOf(askers));
    }
    std::size_t Choose(std::span<const ExpertId>) override { return 0; }

   private:
    std::vector<std::pair<ExpertId, std::uint32_t>>& asks_;
  };
  std::vector<std::pair<ExpertId, std::uint32_t>> asks;
  EngineOptions options{.threads = 1, .context = 96};
  options.offload.slots = 40;
  options.offload.predictor = "none";
  options.offload.make_policy = [&](ExpertGrid) { return std::make_unique<Listening>(asks); };
  const auto engine = Engine::Open(kDraftModel, options).value();
  const auto prompt = engine->tokenizer().Encode("The kernel").value();
  GenerateOptions generate{.max_tokens = 24};
  generate.sampler.temperature = 0;
  generate.ignore_end = true;
  Session plain = Session::Create(*engine).value();
  const Answer answer = PlainAnswer(plain, engine->tokenizer(), prompt, generate);
  const auto one_by_one = std::exchange(asks, {});
  plain.Truncate(0);
  std::vector<TokenId> guesses = answer.tokens;
  guesses[14] ^= 1;
  guesses[15] ^= 1;
  Guessed guessed;
  const MakeDraft draft = [&](auto coming) {
    return Copy(std::span(guesses).last(coming.size()), 8);
  };
  const Answer again =
      Write(plain, engine->tokenizer(), prompt, generate, answer.tokens, draft, guessed);
  EXPECT_EQ(again.tokens, answer.tokens);
  EXPECT_GT(guessed.right, 10u);
  EXPECT_GT(guessed.wrong, 0u);
  EXPECT_EQ(asks, one_by_one);
}

}  // namespace
}  // namespace troupe
