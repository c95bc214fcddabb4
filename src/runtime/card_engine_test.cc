// Engines with a card beside the processor, on whatever device the machine has: their logits are
// those of the processor alone, to the bit, whatever the card holds and however it fails.
#include <gmock/gmock.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <thread>

#include "base/log.h"
#include "base/rng.h"
#include "forge/synth.h"
#include "forge/synth_shape.h"
#include "gpu/driver_call_for_test.h"
#include "gpu/faulty_gpu_for_test.h"
#include "gpu/gpu_for_test.h"
#include "runtime/engine.h"
#include "runtime/session.h"
#include "testing/temp_folder.h"

namespace troupe {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr std::size_t kCardSequences = 3, kPromptTokens = 9, kSteps = 12;
constexpr std::uint32_t kChunk = 32;
// All experts in memory, and few.
const std::optional<std::uint32_t> kHostSlots[] = {std::nullopt, 6};

struct CardAnswers {
  std::vector<std::vector<float>> logits;
  ExpertUsage usage;
  std::vector<ExpertUsage> of_request;
};

class CardEngineTest : public GpuTest {
 protected:
  void TearDown() override { SetWarningSink({}); }

  void Write(const char* shape, TensorType type) {
    SynthOptions options;
    options.layout.mix.type = type;
    path_ = folder_.PathOf(fmt::format("{}-{}.gguf", shape, Name(type)));
    ASSERT_TRUE(Synthesize(*FindShape(shape), options, path_).ok());
  }

  static EngineOptions Plain(std::optional<std::uint32_t> host_slots) {
    EngineOptions options{
        .threads = 2, .context = 64, .sequences = kCardSequences, .chunk = kChunk};
    options.offload.slots = host_slots;
    options.offload.container = "none";
    return options;
  }

  // The card answers whatever it has, so that the tests do not depend on how quick it is.
  EngineOptions WithCard(std::optional<std::uint32_t> host_slots, std::uint32_t card_slots) {
    faults_ = std::make_shared<GpuFaults>();
    EngineOptions options = Plain(host_slots);
    GpuInfo info = device().info();
    info.name = "the test's";
    info.is_processor = info.shares_memory = false;
    options.card = {.choice = info.name,
                    .memory = 1_GiB,
                    .drivers = {.may_have_card = [] { return true; },
                                .list = [info] { return Result(std::vector<GpuInfo>{info}); },
                                .open =
                                    [faults = faults_](std::size_t, auto types) {
                                      faults->HangIn(faults->open_hangs);
                                      return Result(std::move(*OpenFaultyGpu(types, faults)));
                                    }},
                    .duty = duty_};
    if (!shape_) shape_ = Engine::Open(path_, options).value()->plan().card->shape;
    options.card.memory = GpuWorker::DeviceBytes(*shape_) + card_slots * shape_->slot;
    return options;
  }

  // A prompt of each sequence, then passes that decode a token of each.
  static CardAnswers Answer(Engine& engine, const std::function<void(std::size_t)>& before = {}) {
    CardAnswers answers;
    Rng rng(4);
    std::vector<Session> sessions;
    for (std::size_t i = 0; i < kCardSequences; ++i) {
      sessions.push_back(Session::Create(engine).value());
    }
    for (std::size_t step = 0; step <= kSteps; ++step) {
      // Copies that nobody waits for would else have come, or not, as time has it.
      while (engine.card_report() && engine.card_report()->on_the_way > 0 &&
             engine.card_report()->status.ok()) {
        std::this_thread::yield();
      }
      if (before) before(step);
      std::vector<std::vector<std::int32_t>> tokens;
      std::vector<SequenceRows> rows;
      for (std::size_t i = 0; i < kCardSequences; ++i) {
        std::vector<std::int32_t>& some = tokens.emplace_back();
        for (std::size_t t = 0; t < (step == 0 ? kPromptTokens - i : 1); ++t) {
          some.push_back(static_cast<std::int32_t>(rng.Below(engine.config().vocabulary)));
        }
      }
      for (std::size_t i = 0; i < kCardSequences; ++i) {
        rows.push_back({.sequence = &sessions[i],
                        .tokens = tokens[i],
                        .phase = step == 0 ? Phase::kPrompt : Phase::kDecode});
      }
      const Status run = engine.Run(rows);
      EXPECT_TRUE(run.ok()) << run.ToString();
      for (const Session& session : sessions) {
        answers.logits.emplace_back(session.logits().begin(), session.logits().end());
      }
    }
    answers.usage = engine.expert_usage();
    for (const Session& session : sessions) {
      answers.of_request.push_back(engine.EndRequest(session.request()));
    }
    return answers;
  }

  static void ExpectSameBits(const CardAnswers& a, const CardAnswers& b) {
    ASSERT_EQ(a.logits.size(), b.logits.size());
    for (std::size_t row = 0; row < a.logits.size(); ++row) {
      ASSERT_EQ(std::memcmp(a.logits[row].data(), b.logits[row].data(),
                            a.logits[row].size() * sizeof(float)),
                0)
          << "row " << row;
    }
  }

  // Over all experts in memory and few, and a card with room for two, some and all of them.
  void ExpectTheProcessorsBits() {
    shape_.reset();
    const CardAnswers expected = Answer(*Engine::Open(path_, Plain(std::nullopt)).value());
    EXPECT_EQ(expected.usage.card_rows, 0u);
    for (const std::optional<std::uint32_t> host : kHostSlots) {
      for (const std::uint32_t slots : {2u, 9u, 1000u}) {
        duty_ = slots == 9 ? CardDuty::kAllItCan : CardDuty::kAllItHolds;
        const auto engine = Engine::Open(path_, WithCard(host, slots)).value();
        SCOPED_TRACE(fmt::format("{} slots of the card, {} of memory", slots, host.value_or(0)));
        EXPECT_EQ(engine->plan().card->shape.slots, std::min(slots, engine->plan().card->experts));
        const CardAnswers with_card = Answer(*engine);
        ExpectSameBits(with_card, expected);
        EXPECT_GT(with_card.usage.card_copies, 0u);
        EXPECT_GT(with_card.usage.card_hits, 0u);
        EXPECT_GE(with_card.usage.card_rows, with_card.usage.card_hits);
        EXPECT_EQ(with_card.usage.card_failures, 0u);
        EXPECT_LE(engine->card_report()->held, slots);
        EXPECT_GT(engine->card_report()->held, 0u);
      }
    }
  }

  const TempFolder folder_;
  std::string path_;
  std::optional<GpuWorkerShape> shape_;
  std::shared_ptr<GpuFaults> faults_;
  CardDuty duty_ = CardDuty::kAllItHolds;
};

TEST_F(CardEngineTest, GivesTheProcessorsBitsInEightBits) {
  Write("tiny-qwen3moe", TensorType::kQ8_0);
  ExpectTheProcessorsBits();
}

TEST_F(CardEngineTest, GivesTheProcessorsBitsInFewerBits) {
  for (const TensorType type : {TensorType::kQ4_K, TensorType::kQ4_0, TensorType::kIQ2_XS}) {
    Write("tiny-olmoe", type);
    ExpectTheProcessorsBits();
  }
}

TEST_F(CardEngineTest, GivesTheProcessorsBitsInFloats) {
  for (const TensorType type : {TensorType::kF16, TensorType::kBF16}) {
    Write("tiny-mixtral", type);
    ExpectTheProcessorsBits();
  }
}

TEST_F(CardEngineTest, GivesTheProcessorsBitsWithSharedExpertsBiasesAndOtherForms) {
  for (const char* const shape : {"tiny-deepseek2", "tiny-gpt-oss", "tiny-gemma4"}) {
    SCOPED_TRACE(shape);
    Write(shape, TensorType::kQ8_0);
    ExpectTheProcessorsBits();
  }
}

TEST_F(CardEngineTest, ByMeasuredCostsTheCardIsTriedAndGivesTheSameBits) {
  Write("tiny-qwen3moe", TensorType::kQ8_0);
  const CardAnswers expected = Answer(*Engine::Open(path_, Plain(std::nullopt)).value());
  EngineOptions options = WithCard(std::nullopt, 1000);
  options.card.duty = CardDuty::kByCosts;
  const auto engine = Engine::Open(path_, options).value();
  const CardAnswers with_card = Answer(*engine);
  ExpectSameBits(with_card, expected);
  EXPECT_GT(with_card.usage.card_hits, 0u);
  EXPECT_GT(engine->card_report()->card_seconds, 0);
  EXPECT_GT(engine->card_report()->processor_seconds, 0);
}

TEST_F(CardEngineTest, WhatTheCardDidIsDividedAmongRequests) {
  Write("tiny-qwen3moe", TensorType::kQ8_0);
  const auto engine = Engine::Open(path_, WithCard(6, 1000)).value();
  const CardAnswers answers = Answer(*engine);
  std::uint64_t rows = 0, hits = 0;
  for (const ExpertUsage& usage : answers.of_request) {
    EXPECT_GT(usage.card_rows, 0u);
    rows += usage.card_rows;
    hits += usage.card_hits;
  }
  EXPECT_EQ(rows, answers.usage.card_rows);
  EXPECT_EQ(hits, answers.usage.card_hits);
}

TEST_F(CardEngineTest, ExpertsThatComeWithTheQuestionGiveTheProcessorsBits) {
  Write("tiny-qwen3moe", TensorType::kQ4_K);
  duty_ = CardDuty::kAllItCan;
  const CardAnswers expected = Answer(*Engine::Open(path_, Plain(std::nullopt)).value());
  const auto engine = Engine::Open(path_, WithCard(std::nullopt, 1000)).value();
  const CardAnswers with_card = Answer(*engine);
  ExpectSameBits(with_card, expected);
  // A prompt asks for nearly all of them, and what was sent at once answered then.
  EXPECT_GT(with_card.usage.card_rows, with_card.usage.card_hits);
}

TEST_F(CardEngineTest, ACardThatFailsInMidAnswerChangesNoBit) {
  Write("tiny-qwen3moe", TensorType::kQ8_0);
  const CardAnswers expected = Answer(*Engine::Open(path_, Plain(std::nullopt)).value());
  for (const std::optional<std::uint32_t> host : kHostSlots) {
    for (const int work : {0, 1, 2, 3, 5, 8, 13, 40, 80}) {
      duty_ = work % 2 == 0 ? CardDuty::kAllItHolds : CardDuty::kAllItCan;
      std::vector<std::string> lines;
      SetWarningSink([&](std::string_view line) { lines.emplace_back(line); });
      const auto engine = Engine::Open(path_, WithCard(host, 1000)).value();
      const CardAnswers answers = Answer(*engine, [&](std::size_t step) {
        if (step == 3) faults_->work_left = work;
      });
      ExpectSameBits(answers, expected);
      EXPECT_EQ(answers.usage.card_failures, 1u) << work;
      ASSERT_THAT(lines, ElementsAre(HasSubstr("the device is gone; the processor goes on alone")));
      EXPECT_EQ(engine->card_report()->status.code(), Code::kUnavailable);
    }
  }
}

TEST_F(CardEngineTest, ACardThatHangsIsGivenUpAndChangesNoBit) {
  Write("tiny-qwen3moe", TensorType::kQ8_0);
  const CardAnswers expected = Answer(*Engine::Open(path_, Plain(std::nullopt)).value());
  EngineOptions options = WithCard(std::nullopt, 1000);
  options.card.longest = 200'000'000;
  auto engine = Engine::Open(path_, options).value();
  const std::shared_ptr<GpuFaults> faults = faults_;
  const int gone_before = faults->gone;  // with engines that were opened to see how large it is
  const CardAnswers answers = Answer(*engine, [&](std::size_t step) {
    faults->hangs = step >= 3;
    if (step == 3) faults->work_left = 4;
  });
  ExpectSameBits(answers, expected);
  EXPECT_EQ(answers.usage.card_failures, 1u);
  EXPECT_EQ(engine->card_report()->status.code(), Code::kDeadlineExceeded);
  engine.reset();
  faults->hangs = false;
  EXPECT_TRUE(faults->WaitUntilGone(gone_before + 1));
}

TEST_F(CardEngineTest, ACardWhoseDriverHangsWhileItIsOpenedChangesNoBit) {
  Write("tiny-qwen3moe", TensorType::kQ8_0);
  const CardAnswers expected = Answer(*Engine::Open(path_, Plain(std::nullopt)).value());
  EngineOptions options = WithCard(std::nullopt, 1000);
  const std::shared_ptr<GpuFaults> faults = faults_;
  const Nanos long_enough = std::exchange(options.card.longest_opening, 200'000'000);
  std::vector<std::string> lines;
  SetWarningSink([&](std::string_view line) { lines.emplace_back(line); });
  // Where it is opened, and where memory of it is taken.
  for (const bool where_memory_is_taken : {false, true}) {
    std::atomic<bool>& hangs =
        where_memory_is_taken ? faults->allocation_hangs : faults->open_hangs;
    const int gone_before = faults->gone;
    hangs = true;
    options.card.choice = "the test's";
    EXPECT_THAT(Engine::Open(path_, options).status().message(), HasSubstr("--gpu the test's: "));
    EXPECT_THAT(lines, ElementsAre());
    options.card.choice = "auto";
    // Nobody waits for a driver that is known to hang.
    EXPECT_FALSE(Engine::Open(path_, options).value()->card_report());
    EXPECT_THAT(lines, ElementsAre(HasSubstr("a driver that was asked before still hangs; the "
                                             "processor goes on alone, with the same answers")));
    lines.clear();
    hangs = false;
    EXPECT_TRUE(faults->WaitUntilGone(gone_before + 1));
    WaitForDriverCalls();
    hangs = true;
    const auto engine = Engine::Open(path_, options).value();
    EXPECT_FALSE(engine->card_report());
    EXPECT_THAT(lines, ElementsAre(HasSubstr("its driver hangs, for 0.2 s so far; the processor "
                                             "goes on alone, with the same answers")));
    ExpectSameBits(Answer(*engine), expected);
    lines.clear();
    hangs = false;
    EXPECT_TRUE(faults->WaitUntilGone(gone_before + 2));
    WaitForDriverCalls();
  }
  options.card.longest_opening = long_enough;
  EXPECT_TRUE(Engine::Open(path_, options).value()->card_report());
}

TEST_F(CardEngineTest, WhatOthersHoldOfTheCardIsLeftToThem) {
  Write("tiny-qwen3moe", TensorType::kQ8_0);
  EngineOptions options = WithCard(std::nullopt, 1000);
  faults_->buffers_left = 7 + 4;
  const auto engine = Engine::Open(path_, options).value();
  EXPECT_EQ(engine->card_report()->slots, 4u);
  EXPECT_EQ(engine->plan().card->shape.slots, 4u);
  faults_->buffers_left = 7;
  EXPECT_EQ(Engine::Open(path_, options).status().code(), Code::kResourceExhausted);
  options.card.choice = "auto";
  faults_->buffers_left = 7;
  const auto without = Engine::Open(path_, options).value();
  EXPECT_FALSE(without->card_report());
  EXPECT_THAT(without->plan().notes, testing::Contains(HasSubstr("no card: ")));
}

TEST_F(CardEngineTest, TheHostMemoryOfCopiesAndRowsIsInThePlan) {
  Write("tiny-qwen3moe", TensorType::kQ8_0);
  const auto plain = Engine::Open(path_, Plain(std::nullopt)).value();
  const auto engine = Engine::Open(path_, WithCard(std::nullopt, 4)).value();
  const CardPlan& card = *engine->plan().card;
  const Bytes more = engine->plan().memory.workspace - plain->plan().memory.workspace;
  EXPECT_EQ(more, CardHostBytes(card, engine->config(), engine->plan().memory.chunk));
  EXPECT_LE(card.total(), card.budget);
}

}  // namespace
}  // namespace troupe
