// Sequences on one engine. Whatever shares a pass with a sequence, it gets the bytes it gets alone;
// and what sessions take was planned.
#include "runtime/session.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>

#include "base/rng.h"
#include "forge/synth.h"
#include "testing/temp_folder.h"
#include "testing/test_seed.h"

namespace troupe {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

using Tokens = std::vector<std::int32_t>;
using Logits = std::vector<float>;

constexpr std::uint32_t kContext = 48;

Logits LogitsOf(const Session& session) {
  return {session.logits().begin(), session.logits().end()};
}

class Sessions : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    const ModelShape* shape = FindShape(GetParam());
    ASSERT_NE(shape, nullptr);
    SynthOptions options;
    options.layout.mix.type = TensorType::kQ4_0;
    ASSERT_TRUE(Synthesize(*shape, options, folder_.PathOf("m.gguf")).ok());
    vocabulary_ = shape->vocabulary;
  }

  std::unique_ptr<Engine> Open(std::uint32_t sequences, std::optional<std::uint32_t> slots = {},
                               std::uint32_t context = kContext) const {
    EngineOptions options{.threads = 2, .context = context, .sequences = sequences, .chunk = 24};
    options.offload.slots = slots;
    return Engine::Open(folder_.PathOf("m.gguf"), options).value();
  }
  Tokens Text(std::size_t count) {
    Tokens tokens(count);
    for (std::int32_t& token : tokens) token = static_cast<std::int32_t>(rng_.Below(vocabulary_));
    return tokens;
  }
  // After each token of a text that is fed alone, one by one.
  std::vector<Logits> Alone(const Tokens& text) const {
    const auto engine = Open(1);
    Session session = Session::Create(*engine).value();
    std::vector<Logits> logits;
    for (const std::int32_t& token : text) {
      EXPECT_TRUE(session.Feed({&token, 1}).ok());
      logits.push_back(LogitsOf(session));
    }
    return logits;
  }

  TempFolder folder_;
  std::uint32_t vocabulary_ = 0;
  Rng rng_{TestSeed()};
};

TEST_P(Sessions, MoreThanWerePlannedAreRefusedUntilOneEnds) {
  const auto engine = Open(2);
  Session first = Session::Create(*engine).value();
  std::optional<Session> second = Session::Create(*engine).value();
  const auto third = Session::Create(*engine);
  EXPECT_EQ(third.status().code(), Code::kResourceExhausted);
  EXPECT_THAT(third.status().message(), HasSubstr("2 sequences"));
  EXPECT_NE(first.request(), second->request());
  EXPECT_EQ(second->id(), 1u);
  second.reset();
  EXPECT_EQ(Session::Create(*engine)->id(), 1u);
}

TEST_P(Sessions, AllThatWerePlannedLiveInThePlannedMemory) {
  const auto engine = Open(3);
  const MemoryPlan& plan = engine->plan().memory;
  EXPECT_EQ(plan.sequences, 3u);
  EXPECT_EQ(plan.kv_positions, 3u * kContext);
  EXPECT_EQ(engine->kv().bytes(), plan.kv_cache);
  std::vector<Session> sessions;
  for (int i = 0; i < 3; ++i) {
    sessions.push_back(Session::Create(*engine).value());
    ASSERT_TRUE(sessions.back().FeedPrompt(Text(kContext)).ok());
  }
  EXPECT_EQ(engine->kv().free_positions(), 0u);
  EXPECT_EQ(engine->kv().bytes(), plan.kv_cache);
  EXPECT_LE(engine->workspace().bytes(), plan.workspace);
  StatePool* const states = engine->kv().states();
  EXPECT_EQ(states == nullptr ? Bytes() : states->bytes(), plan.state);
  // One sequence needs a third of the keys and values, and as much to work in.
  const auto alone = Open(1);
  EXPECT_EQ(3 * alone->kv().bytes(), engine->kv().bytes());
  EXPECT_EQ(alone->workspace().bytes(), engine->workspace().bytes());
}

TEST_P(Sessions, AShortReservationLeavesRoomAndEndsWhereItSaid) {
  const auto engine = Open(2, {}, 600);
  const std::size_t all = engine->kv().free_positions();
  Session session = Session::Create(*engine, 20).value();
  EXPECT_EQ(engine->kv().free_positions(), all - 256);
  EXPECT_EQ(session.room(), 20u);
  EXPECT_TRUE(session.FeedPrompt(Text(21)).context_full());
  EXPECT_TRUE(session.FeedPrompt(Text(20)).ok());
  EXPECT_TRUE(Session::Create(*engine, 601).status().context_full());
}

TEST_P(Sessions, TwoThatTakeTurnsAnswerAsEachAlone) {
  const Tokens a = Text(12), b = Text(12);
  const auto a_alone = Alone(a), b_alone = Alone(b);
  const auto engine = Open(2);
  Session first = Session::Create(*engine).value(), second = Session::Create(*engine).value();
  for (std::size_t i = 0; i < 12; ++i) {
    ASSERT_TRUE(first.Feed({&a[i], 1}).ok());
    ASSERT_TRUE(second.Feed({&b[i], 1}).ok());
    EXPECT_EQ(LogitsOf(first), a_alone[i]);
    EXPECT_EQ(LogitsOf(second), b_alone[i]);
  }
}

TEST_P(Sessions, LogitsComeForTheRowsThatWereWanted) {
  const Tokens text = Text(9);
  const auto alone = Alone(text);
  const auto engine = Open(3);
  Session all = Session::Create(*engine).value(), last = Session::Create(*engine).value();
  Session none = Session::Create(*engine).value();
  std::vector<std::size_t> seen;
  SequenceRows rows[] = {{.sequence = &none, .tokens = text, .wanted = LogitsWanted::kNone},
                         {.sequence = &all,
                          .tokens = std::span(text).first(6),
                          .wanted = LogitsWanted::kAll,
                          .first_wanted = 2,
                          .on_row =
                              [&](std::size_t row, std::span<const float> logits) {
                                seen.push_back(row);
                                EXPECT_EQ(Logits(logits.begin(), logits.end()), alone[row]);
                              }},
                         {.sequence = &last, .tokens = text}};
  ASSERT_TRUE(engine->Run(rows).ok());
  EXPECT_THAT(seen, ElementsAre(2, 3, 4, 5));
  EXPECT_EQ(LogitsOf(all), alone[5]);
  EXPECT_EQ(LogitsOf(last), alone[8]);
  EXPECT_EQ(none.tokens().size(), 9u);
}

TEST_P(Sessions, ARunThatDoesNotFitLeavesAllAsTheyWere) {
  const auto engine = Open(2);
  const Tokens text = Text(10);
  Session sound = Session::Create(*engine).value(), full = Session::Create(*engine).value();
  ASSERT_TRUE(full.FeedPrompt(Text(kContext - 3)).ok());
  SequenceRows rows[] = {{.sequence = &sound, .tokens = text}, {.sequence = &full, .tokens = text}};
  const Status refused = engine->Run(rows);
  EXPECT_EQ(refused.code(), Code::kResourceExhausted);
  EXPECT_THAT(refused.message(), HasSubstr("10 tokens after 45"));
  EXPECT_TRUE(sound.tokens().empty());
  EXPECT_EQ(full.tokens().size(), kContext - 3);
  const Tokens unknown = {static_cast<std::int32_t>(vocabulary_)};
  rows[1].tokens = unknown;
  EXPECT_EQ(engine->Run(rows).code(), Code::kInvalidArgument);
  EXPECT_TRUE(sound.tokens().empty());
}

// Sequences come and go, go back, read prompts in pieces of any size and decode, in passes of any
// mixture.
class Interleaving {
 public:
  struct Text {
    Tokens tokens;
    std::vector<Logits> alone;
  };

  Interleaving(Engine& engine, const std::vector<Text>& texts, Rng& rng)
      : engine_(engine), texts_(texts), rng_(rng), live_(1 + rng.Below(6)) {}

  void Play(int passes) {
    for (int pass = 0; pass < passes; ++pass) {
      for (std::optional<Member>& member : live_) ComeOrGo(member);
      RunSome();
      if (testing::Test::HasFatalFailure()) return;
    }
  }

 private:
  struct Member {
    Session session;
    const Text* text;
  };

  void ComeOrGo(std::optional<Member>& member) {
    if (!member) {
      if (rng_.Below(3) == 0) return;
      Result<Session> session = Session::Create(engine_);
      ASSERT_TRUE(session.ok()) << session.status().message();
      member.emplace(Member{std::move(*session), &texts_[rng_.Below(texts_.size())]});
    } else if (rng_.Below(8) == 0) {
      member.reset();
    } else if (rng_.Below(4) == 0) {
      member->session.Truncate(rng_.Below(member->session.tokens().size() + 1));
      ASSERT_TRUE(member->session.CatchUp().ok());
    }
  }

  void RunSome() {
    std::vector<SequenceRows> rows;
    std::vector<Member*> members;
    std::size_t room = engine_.plan().memory.chunk;
    for (std::optional<Member>& member : live_) {
      if (!member || room == 0 || rng_.Below(5) == 0) continue;
      const auto rest = std::span(member->text->tokens).subspan(member->session.tokens().size());
      if (rest.empty()) continue;
      const bool decode = rng_.Below(2) == 0;
      const std::size_t count = decode ? 1 : std::min({rest.size(), room, 1 + rng_.Below(room)});
      rows.push_back({.sequence = &member->session,
                      .tokens = rest.first(count),
                      .phase = decode ? Phase::kDecode : Phase::kPrompt});
      members.push_back(&*member);
      room -= count;
    }
    if (rows.empty()) return;
    const Status status = engine_.Run(rows);
    ASSERT_TRUE(status.ok()) << status.message();
    for (const Member* member : members) {
      const std::size_t length = member->session.tokens().size();
      ASSERT_EQ(LogitsOf(member->session), member->text->alone[length - 1])
          << rows.size() << " sequences, after " << length << " tokens";
    }
  }

  Engine& engine_;
  const std::vector<Text>& texts_;
  Rng& rng_;
  std::vector<std::optional<Member>> live_;
};

TEST_P(Sessions, AnyInterleavingGivesEveryOneTheBytesItGetsAlone) {
  std::vector<Interleaving::Text> texts;
  for (const std::size_t length : {40, 25, 48, 7}) {
    const Tokens tokens = Text(length);
    texts.push_back({tokens, Alone(tokens)});
  }
  const auto resident = Open(6);
  for (int i = 0; i < 100; ++i) {
    Interleaving(*resident, texts, rng_).Play(8);
    if (HasFatalFailure()) FAIL() << "resident, interleaving " << i;
  }
  if (resident->config().moe.routing.experts == 0) return;
  const auto offloaded = Open(6, 5);
  ASSERT_FALSE(offloaded->plan().memory.all_resident);
  for (int i = 0; i < 100; ++i) {
    Interleaving(*offloaded, texts, rng_).Play(8);
    if (HasFatalFailure()) FAIL() << "offloaded, interleaving " << i;
  }
}

INSTANTIATE_TEST_SUITE_P(Shapes, Sessions,
                         testing::Values("tiny-qwen2moe", "tiny-deepseek2", "tiny-qwen35moe",
                                         "tiny-gpt-oss", "tiny-lfm2moe", "tiny-granitehybrid",
                                         "tiny-nemotron_h_moe", "tiny-gemma4"),
                         [](const auto& test) {
                           std::string name = test.param;
                           std::erase(name, '-');
                           return name;
                         });

}  // namespace
}  // namespace troupe
