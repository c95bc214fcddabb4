// Answers with drafts against answers without, in combinations drawn at random: of drafters, among
// them a draft model that is the model itself or one of random weights, and the experts in memory,
// budget, threads, temperature, penalties, grammar, stop strings, batch neighbours and cancelled
// requests. Each answer has the bytes that it gets alone, from an engine that holds every expert
// and drafts nothing. TROUPE_CASES says how many combinations.
#include <gtest/gtest.h>

#include <filesystem>
#include <map>

#include "base/rng.h"
#include "forge/synth.h"
#include "forge/synth_shape.h"
#include "gguf/reader.h"
#include "runtime/batch_loop.h"
#include "runtime/engine_runner.h"
#include "runtime/plain_answer_for_test.h"
#include "testing/temp_folder.h"
#include "testing/test_seed.h"
#include "text/grammar/gbnf.h"
#include "text/grammar/token_constraint.h"

namespace troupe {
namespace {

constexpr const char* kModel = TROUPE_SOURCE_DIR "/models/tiny-qwen2moe-q8_0.gguf";
constexpr std::uint32_t kSpeculationContext = 160;
constexpr std::uint32_t kSequences = 4;

// Passes take any time, so that the governor lets anything ride.
class JumpyClock final : public Clock {
 public:
  explicit JumpyClock(std::uint64_t seed) : rng_(seed) {}
  Nanos Now() const override {
    return now_ += static_cast<Nanos>(1 + rng_.Below(1 + rng_.Below(1'000'000)));
  }

 private:
  mutable Rng rng_;
  mutable Nanos now_ = 0;
};

constexpr std::string_view kGrammars[] = {
    "",
    "",
    "root ::= \"{\\\"driver\\\":\" [0-9]+ \",\\\"device\\\":\\\"\" [a-z]* \"\\\"}\"",
    "root ::= (\"the kernel \" | \"the driver \")+",
};

class SpeculationExactness : public testing::Test {
 protected:
  SpeculationExactness() : plain_(Open(2, std::nullopt, 64)) {
    const auto vocab = MakeVocabTrie(plain_->tokenizer());
    for (const std::string_view grammar : kGrammars) {
      masks_.push_back(grammar.empty()
                           ? nullptr
                           : std::make_shared<TokenMasks>(
                                 Automaton::Compile(ParseGbnf(grammar).value()).value(), vocab));
    }
    for (const std::uint32_t threads : {1u, 3u}) {
      for (const auto slots : {std::optional<std::uint32_t>(), std::optional<std::uint32_t>(130),
                               std::optional<std::uint32_t>(12)}) {
        engines_.push_back(threads == 1 ? Open(threads, slots, 24, kModel)
                                        : Open(threads, slots, 64, Unrelated()));
      }
    }
  }

  // A model that knows nothing, of the same vocabulary.
  std::string Unrelated() const {
    const std::string path = folder_.PathOf("unrelated.gguf");
    if (std::filesystem::exists(path)) return path;
    const SynthOptions options{.tokenizer = GgufModel::Open(kModel)->metadata()};
    ModelShape shape = *FindShape("tiny-llama");
    shape.vocabulary = 4096;
    EXPECT_TRUE(Synthesize(shape, options, path).ok());
    return path;
  }

  static std::unique_ptr<Engine> Open(std::uint32_t threads, std::optional<std::uint32_t> slots,
                                      std::uint32_t chunk, const std::string& draft = "") {
    EngineOptions options{.threads = threads,
                          .context = kSpeculationContext,
                          .sequences = kSequences,
                          .chunk = chunk};
    options.offload.slots = slots;
    options.draft = draft;
    if (!draft.empty()) options.drafters = *ParseDraftChoice("auto");
    options.drafters.resident = true;
    return Engine::Open(kModel, options).value();
  }

  struct Case {
    BatchRequest request;
    std::size_t grammar = 0;
    std::vector<TokenId> plain;  // its answer without drafts
    std::string text;
    bool cancelled = false;
  };

  Case Draw(Rng& rng) {
    constexpr std::string_view kTexts[] = {
        "The kernel", "int driver(int device) { return device; } int driver(int",
        "the driver of the device of the driver of the", "1 2 3 1 2 3 1 2"};
    Case one;
    GenerateOptions& options = one.request.options;
    one.request.prompt = plain_->tokenizer().Encode(kTexts[rng.Below(4)]).value();
    options.max_tokens = 1 + rng.Below(40);
    options.ignore_end = rng.Below(3) != 0;
    options.sampler.temperature = rng.Below(2) == 0 ? 0 : 0.2 + rng.Uniform();
    options.sampler.seed = rng.Next();
    if (rng.Below(3) == 0) options.sampler.repetition_penalty = 1 + 0.3 * rng.Uniform();
    if (rng.Below(4) == 0) options.sampler.frequency_penalty = rng.Uniform();
    if (rng.Below(3) == 0) options.stop = {"driver", "e d"};
    one.grammar = rng.Below(std::size(kGrammars));
    one.cancelled = rng.Below(8) == 0;
    SetConstraint(one);
    Session session = Session::Create(*plain_).value();
    const Answer answer = PlainAnswer(session, plain_->tokenizer(), one.request.prompt, options);
    one.plain = answer.tokens;
    one.text = answer.text;
    SetConstraint(one);
    if (rng.Below(2) == 0) {
      options.expected = answer.tokens;
      for (TokenId& token : options.expected) {
        if (rng.Below(6) == 0) token = static_cast<TokenId>(rng.Below(400));
      }
    }
    return one;
  }
  // An answer moves its constraint, so each has one of its own.
  void SetConstraint(Case& one) const {
    if (masks_[one.grammar] == nullptr) return;
    one.request.options.constraint = std::make_shared<TokenConstraint>(masks_[one.grammar]);
  }

  void Check(const Case& one, const Result<Answer>& answer) {
    ASSERT_TRUE(answer.ok()) << answer.status().ToString();
    drafts_ += answer->usage.speculation;
    draft_reads_used_ += answer->usage.experts.draft_reads_used;
    if (answer->finish == FinishReason::kCancelled) {
      ASSERT_TRUE(one.cancelled);
      const std::size_t said = answer->tokens.size();
      ASSERT_LE(said, one.plain.size());
      ASSERT_TRUE(std::ranges::equal(answer->tokens, std::span(one.plain).first(said)));
      return;
    }
    ASSERT_EQ(answer->tokens, one.plain);
    ASSERT_EQ(answer->text, one.text);
  }

  // Some requests on one engine, at once.
  void Play(Engine& engine, std::vector<Case>& cases, const DraftChoice& drafters, Rng& rng) {
    EngineRunner runner(engine);
    const JumpyClock clock(rng.Next());
    BatchLoop loop(runner, engine.tokenizer(), clock, {.target_seconds = 1e-4, .least_chunk = 2},
                   drafters);
    std::map<RequestId, const Case*> of;
    std::vector<std::shared_ptr<Ticket>> tickets;
    std::size_t ended = 0;
    while (ended < cases.size()) {
      if (tickets.size() < cases.size() && (loop.size() == 0 || rng.Below(2) == 0)) {
        Case& next = cases[tickets.size()];
        ASSERT_TRUE(loop.Check(next.request).ok());
        tickets.push_back(std::make_shared<Ticket>(runner.NewRequest()));
        of[tickets.back()->id()] = &next;
        loop.Add(tickets.back(), next.request, clock.Now());
      }
      for (std::size_t i = 0; i < tickets.size(); ++i) {
        if (cases[i].cancelled && rng.Below(10) == 0) tickets[i]->Cancel();
      }
      for (const EndedRequest& end : loop.Step()) {
        Check(*of.at(end.ticket->id()), end.answer);
        ++ended;
        if (HasFatalFailure()) return;
      }
    }
  }

  const TempFolder folder_;
  std::unique_ptr<Engine> plain_;
  std::vector<std::shared_ptr<TokenMasks>> masks_;
  std::vector<std::unique_ptr<Engine>> engines_;
  SpeculationUse drafts_;
  std::uint64_t draft_reads_used_ = 0;
};

TEST_F(SpeculationExactness, NoDraftChangesAByte) {
  const std::uint64_t seed = TestSeed(), cases = TestCases(200);
  const std::vector<std::string> names = DraftChoiceNames();
  std::uint64_t done = 0;
  for (std::uint64_t round = 0; done < cases; ++round) {
    SCOPED_TRACE(round);
    Rng rng(seed + round);
    std::vector<Case> together(1 + rng.Below(kSequences));
    for (Case& one : together) one = Draw(rng);
    constexpr std::string_view kOften[] = {"draft", "resident"};
    const std::string name(rng.Below(2) == 0 ? kOften[rng.Below(2)]
                                             : names[rng.Below(names.size())]);
    SCOPED_TRACE(name);
    Engine& engine = *engines_[rng.Below(engines_.size())];
    ASSERT_NO_FATAL_FAILURE(Play(engine, together, *ParseDraftChoice(name), rng));
    done += together.size();
  }
  EXPECT_GT(drafts_.checks, cases / 2);
  EXPECT_GT(drafts_.accepted, cases);
  EXPECT_GT(drafts_.drafted - drafts_.accepted, cases);
  const auto& [drafted, accepted] =
      drafts_.by_source[static_cast<std::size_t>(DraftSource::kModel)];
  EXPECT_GT(accepted, cases / 20);
  EXPECT_GT(drafted - accepted, cases / 100);
  const DraftedTokens& by_residents =
      drafts_.by_source[static_cast<std::size_t>(DraftSource::kResident)];
  EXPECT_GT(by_residents.accepted, cases / 20);
  EXPECT_GT(by_residents.drafted - by_residents.accepted, 0u);
  EXPECT_GT(draft_reads_used_, cases / 50);
}

}  // namespace
}  // namespace troupe
