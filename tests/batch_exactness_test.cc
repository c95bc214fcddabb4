// Sequences that share an engine's passes, in interleavings drawn at random: each gets the logits'
// bytes that it gets alone, whatever the others do, however few experts fit into memory, and
// whichever reads fail. What the passes cost is counted for the requests to the last read.
#include <gtest/gtest.h>

#include <cmath>
#include <optional>
#include <set>

#include "base/rng.h"
#include "forge/synth.h"
#include "runtime/session.h"
#include "testing/failing_reader.h"
#include "testing/temp_folder.h"
#include "testing/test_seed.h"

namespace troupe {
namespace {

using Logits = std::vector<float>;

constexpr std::uint32_t kMostSequences = 12;
constexpr std::uint32_t kContext = 32;
constexpr std::string_view kFault = "the medium gave up";

Logits LogitsOf(const Session& session) {
  return {session.logits().begin(), session.logits().end()};
}

// Of what is read, a share drawn at random cannot be.
struct Faults {
  Rng rng;
  double share = 0;
};

struct Text {
  std::vector<std::int32_t> tokens;
  std::vector<Logits> alone;  // after each token, fed alone and one by one
};

// What happened, so that a test can say that it met what it is for.
struct Events {
  std::size_t shared = 0;  // passes of several sequences
  std::size_t mixed = 0;   // of prompts and decodes
  std::size_t failed = 0, cancelled = 0, truncated = 0, left = 0;
  std::set<RequestId> requests;
};

// Some sequences that come and go, go back, are cancelled, read prompts in pieces of any size and
// decode, in passes of any mixture.
class Interleaving {
 public:
  Interleaving(Engine& engine, const std::vector<Text>& texts, Rng& rng, Faults& faults,
               Events& events)
      : engine_(engine),
        texts_(texts),
        rng_(rng),
        faults_(faults),
        events_(events),
        members_(1 + rng.Below(kMostSequences)) {}

  void Play(int passes) {
    for (int pass = 0; pass < passes; ++pass) {
      for (std::optional<Member>& member : members_) ComeOrGo(member);
      RunSome();
      if (testing::Test::HasFatalFailure()) return;
    }
  }

 private:
  struct Member {
    Session session;
    const Text* text;

    std::span<const std::int32_t> Rest() const {
      return std::span(text->tokens).subspan(session.tokens().size());
    }
  };

  void ComeOrGo(std::optional<Member>& member) {
    if (!member) {
      if (rng_.Below(3) == 0) return;
      Result<Session> session = Session::Create(engine_);
      ASSERT_TRUE(session.ok()) << session.status().message();
      events_.requests.insert(session->request());
      member.emplace(Member{std::move(*session), &texts_[rng_.Below(texts_.size())]});
      if (rng_.Below(6) == 0) Cancel(*member);
    } else if (rng_.Below(8) == 0) {
      member.reset();
      ++events_.left;
    } else if (rng_.Below(6) == 0) {
      member->session.Truncate(rng_.Below(member->session.tokens().size() + 1));
      while (IsFault(member->session.CatchUp())) continue;
      ++events_.truncated;
    }
  }

  // A prompt that is given up after its first chunk, which stays.
  void Cancel(Member& member) {
    const std::size_t chunk = engine_.plan().memory.chunk;
    if (member.text->tokens.size() <= chunk) return;
    const auto status = [&] {
      bool asked = false;
      return member.session.FeedPrompt(member.text->tokens,
                                       [&asked] { return std::exchange(asked, true); });
    };
    Status ended = status();
    while (IsFault(ended)) {
      ASSERT_TRUE(member.session.tokens().empty());
      ended = status();
    }
    ASSERT_EQ(ended.code(), Code::kCancelled) << ended.message();
    ASSERT_EQ(member.session.tokens().size(), chunk);
    ++events_.cancelled;
  }

  bool IsFault(const Status& status) {
    if (status.ok() || status.message().find(kFault) == std::string::npos) return false;
    ++events_.failed;
    faults_.share *= 0.7;  // so that trying again ends
    return true;
  }

  void RunSome() {
    std::vector<SequenceRows> rows;
    std::vector<Member*> members;
    std::size_t room = engine_.plan().memory.chunk, prompts = 0;
    for (std::optional<Member>& member : members_) {
      if (!member || room == 0 || rng_.Below(5) == 0 || member->Rest().empty()) continue;
      const bool decode = rng_.Below(2) == 0;
      const std::size_t count =
          decode ? 1 : std::min({member->Rest().size(), room, 1 + rng_.Below(room)});
      rows.push_back({.sequence = &member->session,
                      .tokens = member->Rest().first(count),
                      .phase = decode ? Phase::kDecode : Phase::kPrompt});
      if (rng_.Below(4) == 0) rows.back().request = 1'000'000 + rng_.Below(3);
      events_.requests.insert(rows.back().request.value_or(member->session.request()));
      members.push_back(&*member);
      room -= count;
      prompts += decode ? 0 : 1;
    }
    if (rows.empty()) return;
    events_.shared += rows.size() > 1 ? 1 : 0;
    events_.mixed += prompts > 0 && prompts < rows.size() ? 1 : 0;
    ASSERT_NO_FATAL_FAILURE(RunUntilItSucceeds(rows));
    for (const Member* member : members) {
      const std::size_t length = member->session.tokens().size();
      ASSERT_EQ(LogitsOf(member->session), member->text->alone[length - 1])
          << rows.size() << " sequences, after " << length << " tokens";
    }
  }

  void RunUntilItSucceeds(std::span<const SequenceRows> rows) {
    std::vector<std::pair<std::size_t, Logits>> before;
    for (const SequenceRows& entry : rows) {
      before.emplace_back(entry.sequence->tokens().size(), LogitsOf(*entry.sequence));
    }
    while (true) {
      const Status status = engine_.Run(rows);
      if (status.ok()) return;
      ASSERT_TRUE(IsFault(status)) << status.message();
      for (std::size_t i = 0; i < rows.size(); ++i) {
        ASSERT_EQ(rows[i].sequence->tokens().size(), before[i].first);
        ASSERT_EQ(LogitsOf(*rows[i].sequence), before[i].second);
      }
    }
  }

  Engine& engine_;
  const std::vector<Text>& texts_;
  Rng& rng_;
  Faults& faults_;
  Events& events_;
  std::vector<std::optional<Member>> members_;
};

class BatchExactness : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    const ModelShape* shape = FindShape(GetParam());
    ASSERT_NE(shape, nullptr);
    SynthOptions options;
    options.layout.mix.type = TensorType::kQ4_0;
    ASSERT_TRUE(Synthesize(*shape, options, path()).ok());
    const auto engine = Engine::Open(path(), {.threads = 1, .context = kContext}).value();
    all_ = engine->plan().needs.AllExperts();
    for (const std::size_t length : {kContext, 25u, 16u, 5u}) {
      Text& text = texts_.emplace_back();
      Session session = Session::Create(*engine).value();
      for (std::size_t i = 0; i < length; ++i) {
        text.tokens.push_back(static_cast<std::int32_t>(rng_.Below(shape->vocabulary)));
        ASSERT_TRUE(session.Feed({&text.tokens.back(), 1}).ok());
        text.alone.push_back(LogitsOf(session));
      }
    }
  }

  std::string path() const { return folder_.PathOf("m.gguf"); }

  std::unique_ptr<Engine> Open(std::uint32_t threads, OffloadOptions offload = {}) {
    EngineOptions options{.threads = threads,
                          .context = kContext,
                          .sequences = kMostSequences,
                          .chunk = 14,
                          .offload = std::move(offload)};
    options.offload.wrap_reader = [this](std::unique_ptr<AsyncReader> reader) {
      return std::make_unique<FailingReader>(
          std::move(reader), [this] { return faults_.rng.Uniform() < faults_.share; },
          std::string(kFault));
    };
    return Engine::Open(path(), options).value();
  }

  void Play(Engine& engine, int interleavings) {
    for (int i = 0; i < interleavings; ++i) {
      // Whatever fails once is read once more, so a load fails if that fails, too.
      faults_.share = i % 2 == 0 ? 0 : 0.15;
      Interleaving(engine, texts_, rng_, faults_, events_).Play(6);
      ASSERT_FALSE(HasFatalFailure()) << "interleaving " << i;
    }
  }

  TempFolder folder_;
  Rng rng_{TestSeed()};
  Faults faults_{.rng = Rng(TestSeed() + 1)};
  std::uint32_t all_ = 0;
  std::vector<Text> texts_;
  Events events_;
};

TEST_P(BatchExactness, EverySequenceGetsTheBytesItGetsAloneInAnyInterleaving) {
  constexpr int kInterleavings = 5;  // on each of 25 engines and 4 shapes: 500
  const auto resident = Open(3);
  ASSERT_TRUE(resident->plan().memory.all_resident);
  ASSERT_NO_FATAL_FAILURE(Play(*resident, kInterleavings));
  ASSERT_EQ(events_.failed, 0u);
  std::uint32_t threads = 0;
  for (const char* policy : {"lru", "arc", "echo", "score"}) {
    for (const char* predictor : {"none", "lookahead"}) {
      for (const std::uint32_t slots : {kLeastSlots, all_ / 3, all_ - 2}) {
        threads = threads % 3 + 1;
        const auto engine =
            Open(threads, {.slots = slots, .policy = policy, .predictor = predictor});
        ASSERT_FALSE(engine->plan().memory.all_resident);
        ASSERT_NO_FATAL_FAILURE(Play(*engine, kInterleavings))
            << policy << ", " << predictor << ", " << slots << " slots, " << threads << " threads";
      }
    }
  }
  EXPECT_GT(events_.shared, 100u);
  EXPECT_GT(events_.mixed, 100u);
  EXPECT_GT(events_.failed, 10u);
  EXPECT_GT(events_.cancelled, 10u);
  EXPECT_GT(events_.truncated, 10u);
  EXPECT_GT(events_.left, 10u);
}

// Every sum as a whole number: of times, nanoseconds.
std::vector<std::int64_t> SumsOf(const ExpertUsage& usage) {
  std::vector<std::int64_t> sums;
  ExpertUsage copy;
  ForEachSum(copy, usage, [&](ShareBy, auto& /*sum*/, const auto& value) {
    if constexpr (std::is_floating_point_v<std::remove_cvref_t<decltype(value)>>) {
      sums.push_back(std::llround(value * 1e9));
    } else {
      sums.push_back(static_cast<std::int64_t>(value));
    }
  });
  return sums;
}

TEST_P(BatchExactness, WhatRequestsCostAddsUpToTheWholeWhateverFailed) {
  for (const char* predictor : {"none", "lookahead"}) {
    OffloadOptions offload{.slots = all_ / 3, .predictor = predictor};
    offload.prefetch.governed = false;
    const auto engine = Open(2, std::move(offload));
    events_ = {};
    std::vector<std::int64_t> sums(SumsOf({}).size());  // of all rounds
    for (int round = 0; round < 4; ++round) {
      ASSERT_NO_FATAL_FAILURE(Play(*engine, 2));
      engine->SettleUsage();
      for (const RequestId request : events_.requests) {
        const std::vector<std::int64_t> cost = SumsOf(engine->TakeUsage(request));
        for (std::size_t i = 0; i < sums.size(); ++i) sums[i] += cost[i];
      }
      EXPECT_EQ(sums, SumsOf(engine->expert_usage())) << predictor << ", round " << round;
    }
    EXPECT_GT(events_.failed, 0u);
    EXPECT_GT(engine->expert_usage().misses, 0u);
    EXPECT_GT(engine->expert_usage().use_hits, 0u);
    EXPECT_EQ(engine->expert_usage().prefetches > 0, predictor == std::string_view("lookahead"));
  }
}

INSTANTIATE_TEST_SUITE_P(Shapes, BatchExactness,
                         testing::Values("tiny-qwen2moe", "tiny-mixtral", "tiny-olmoe",
                                         "tiny-deepseek2", "tiny-gpt-oss", "tiny-lfm2moe",
                                         "tiny-glm4moe", "tiny-granitemoe", "tiny-granitehybrid",
                                         "tiny-nemotron_h_moe", "tiny-gemma4"),
                         [](const auto& test) {
                           std::string name = test.param;
                           std::erase(name, '-');
                           return name;
                         });

}  // namespace
}  // namespace troupe
