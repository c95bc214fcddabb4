// Requests through the front door that begin alike, some with rules for their answers: whatever
// they share, in whatever order they come, go and are cancelled, however few experts fit into
// memory and whoever beside them loses quality, each exact one gets the bytes that it gets alone,
// with every expert in memory and without a prefix cache.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <numeric>
#include <optional>
#include <string>
#include <vector>

#include "api/model_access.h"
#include "api/tiny_model_for_test.h"
#include "base/rng.h"
#include "forge/synth.h"
#include "testing/temp_folder.h"
#include "testing/test_seed.h"

namespace troupe {
namespace {

AnswerRule DrawRule(Rng& rng) {
  static const std::array<AnswerRule, 3> kRules = {{
      {AnswerRule::Kind::kJsonObject, ""},
      {AnswerRule::Kind::kJsonSchema,
       R"({"type":"array","items":{"type":"integer"},"maxItems":4})"},
      {AnswerRule::Kind::kGrammar, R"(root ::= ("yes" | "no") (", " [a-z]+)*)"},
  }};
  return kRules[rng.Below(kRules.size())];
}

// Texts that part from each other at any token, as those of a tree do.
std::vector<Request> RequestsThatBeginAlike(Rng& rng, std::size_t count, std::size_t most_prompt,
                                            std::size_t most_tokens, bool rules) {
  std::vector<std::vector<TokenId>> prompts;
  std::vector<Request> requests;
  while (requests.size() < count) {
    std::vector<TokenId> prompt;
    if (!prompts.empty() && rng.Below(5) > 0) {
      prompt = prompts[rng.Below(prompts.size())];
      prompt.resize(1 + rng.Below(prompt.size()));
    }
    const std::size_t length = std::max(prompt.size(), 1 + rng.Below(most_prompt));
    while (prompt.size() < length) prompt.push_back(static_cast<TokenId>(260 + rng.Below(200)));
    prompts.push_back(prompt);
    Request request{.prompt = prompt, .max_tokens = 1 + rng.Below(most_tokens)};
    request.sampling = {.temperature = rng.Below(3) == 0 ? 0.0 : 0.9, .seed = rng.Next() % 1000};
    if (rules && rng.Below(3) == 0) request.rule = DrawRule(rng);
    request.ignore_end = !request.rule;
    request.exact = rng.Below(2) == 0;
    if (rng.Below(5) == 0) request.cache_salt = rng.Below(2) == 0 ? "a" : "b";
    requests.push_back(std::move(request));
  }
  return requests;
}

TokenId SpecialTokenOf(Model& model) {
  const Tokenizer& tokenizer = ModelAccess::EngineOf(model).tokenizer();
  for (TokenId id = 0; tokenizer.Contains(id); ++id) {
    if (tokenizer.IsSpecial(id)) return id;
  }
  ADD_FAILURE() << "the vocabulary has no special token";
  return 0;
}

struct Drawn {
  std::size_t request = 0;  // its number
  Generation generation;
  bool cancelled = false, counted = false;
};

// What happened, so that a test can say that it met what it is for.
struct Met {
  std::size_t cached = 0, cancelled = 0, dropped = 0, ruled = 0, misses = 0, lossy = 0;
};

class Schedules {
 public:
  // `lossy`: what is not asked for exactly may be answered otherwise than alone.
  Schedules(Model& shared, Model& alone, std::vector<Request> requests, bool lossy)
      : shared_(shared), requests_(std::move(requests)), lossy_(lossy) {
    for (const Request& request : requests_) {
      answers_.push_back(alone.Start(request)->Wait().value());
      EXPECT_EQ(answers_.back().usage.cached_tokens, 0u);
      EXPECT_EQ(answers_.back().usage.experts.misses, 0u);
    }
  }

  // Requests in a random order, some at the same time, some cancelled or let go.
  void Run(Rng& rng, std::size_t count) {
    std::vector<Drawn> drawn;
    for (std::size_t i = 0; i < count; ++i) {
      const std::size_t number = rng.Below(requests_.size());
      drawn.push_back({number, shared_.Start(requests_[number]).value()});
      if (rng.Below(3) == 0) Check(drawn[rng.Below(drawn.size())]);
      if (rng.Below(6) == 0) {
        Drawn& one = drawn[rng.Below(drawn.size())];
        one.generation.Cancel();
        one.cancelled = true;
      }
      if (rng.Below(12) == 0) {
        drawn.erase(drawn.begin() + static_cast<std::ptrdiff_t>(rng.Below(drawn.size())));
        ++met_.dropped;
      }
    }
    for (Drawn& one : drawn) Check(one);
  }
  const Met& met() const { return met_; }

 private:
  void Check(Drawn& one) {
    const Result<Answer> answer = one.generation.Wait();
    ASSERT_TRUE(answer.ok()) << answer.status().ToString();
    const bool counted = std::exchange(one.counted, true);
    if (!counted) Count(*answer, requests_[one.request].rule.has_value());
    if (lossy_ && !requests_[one.request].exact) return;
    EXPECT_EQ(answer->usage.experts.NotExact(), 0u);
    const Answer& expected = answers_[one.request];
    if (answer->finish == FinishReason::kCancelled) {
      EXPECT_TRUE(one.cancelled);
      EXPECT_TRUE(std::ranges::equal(answer->tokens,
                                     std::span(expected.tokens).first(answer->tokens.size())));
      return;
    }
    EXPECT_EQ(answer->tokens, expected.tokens) << "request " << one.request;
    EXPECT_EQ(answer->text, expected.text);
    EXPECT_EQ(answer->finish, expected.finish);
    EXPECT_EQ(answer->usage.prompt_tokens, expected.usage.prompt_tokens);
  }

  void Count(const Answer& answer, bool ruled) {
    const bool cancelled = answer.finish == FinishReason::kCancelled;
    met_.cancelled += cancelled ? 1 : 0;
    met_.ruled += ruled && !cancelled ? 1 : 0;
    met_.cached += cancelled ? 0 : answer.usage.cached_tokens;
    met_.misses += answer.usage.experts.misses;
    met_.lossy += answer.usage.experts.NotExact();
  }

  Model& shared_;
  std::vector<Request> requests_;
  std::vector<Answer> answers_;
  const bool lossy_;
  Met met_;
};

struct Setting {
  std::string path = kPath;
  std::uint32_t context = 96;
  std::size_t requests = 60;
  double experts = 1;  // share of them that fits into memory
  Lossiness lossiness = Exact{};
  bool rules = true;
  std::size_t rounds_a_hit = 1;  // at most, on average
};

void RunSchedules(const Setting& setting, std::size_t rounds) {
  Rng rng(TestSeed());
  ModelOptions options{.context = setting.context,
                       .threads = 2,
                       .sequences = 1,
                       .prefix_cache = false,
                       .answer_rules = setting.rules};
  const std::unique_ptr<Model> alone = Model::Open(setting.path, options).value();
  options.sequences = 5;
  options.prefix_cache = true;
  options.pass_seconds = 1e-3;  // prompts in many pieces
  options.lossiness = setting.lossiness;
  const bool few = setting.experts < 1, lossy = setting.lossiness != Lossiness(Exact{});
  const std::unique_ptr<Model> shared =
      few ? OpenTinyWithFew(options, setting.experts) : Model::Open(setting.path, options).value();
  ASSERT_NE(shared, nullptr);
  Schedules schedules(*shared, *alone,
                      RequestsThatBeginAlike(rng, setting.requests, setting.context * 4 / 5,
                                             setting.context / 6, setting.rules),
                      lossy);
  for (std::size_t round = 0; round < rounds && !testing::Test::HasFailure(); ++round) {
    SCOPED_TRACE(round);
    schedules.Run(rng, 2 + rng.Below(12));
  }
  const PrefixCacheUse use = shared->metrics().prefix_cache;
  EXPECT_GT(use.hits, rounds / setting.rounds_a_hit);
  EXPECT_GE(use.cached_tokens, schedules.met().cached);
  EXPECT_GT(schedules.met().cached, 0u);
  EXPECT_GT(use.given_up_tokens, 0u);
  EXPECT_LE(use.kept_tokens, use.most_tokens);
  EXPECT_EQ(schedules.met().ruled > rounds / 2, setting.rules);
  EXPECT_GT(schedules.met().dropped, rounds / 4);
  EXPECT_GT(schedules.met().cancelled, rounds / 20);
  EXPECT_EQ(schedules.met().misses > 0, few);
  EXPECT_EQ(schedules.met().lossy > 0, lossy);
}

// With TROUPE_CASES=2500 these are 3,250 schedules. Where experts are few each pass reads most.

TEST(PrefixSharing, EveryRequestGetsItsBytesInAnySchedule) { RunSchedules({}, TestCases(200)); }

TEST(PrefixSharing, SoDoRequestsOfSeveralPages) {
  RunSchedules({.context = 1024, .requests = 20}, TestCases(200) / 10);
}

TEST(PrefixSharing, SoTheyDoWithAQuarterOfTheExpertsInMemory) {
  RunSchedules({.experts = 0.25}, TestCases(200) / 10);
}

TEST(PrefixSharing, SoDoExactOnesBesideThoseThatLoseQuality) {
  RunSchedules({.experts = 0.5, .lossiness = Chain{"smoe:alpha=0.5+drop"}}, TestCases(200) / 10);
}

// Whose sequences have a state beside keys and values.
class PrefixSharingWithStates : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    SynthOptions options;
    options.layout.mix.type = TensorType::kQ8_0;
    ASSERT_TRUE(Synthesize(*FindShape(GetParam()), options, path()).ok());
  }
  std::string path() const { return folder_.PathOf("m.gguf"); }
  TempFolder folder_;
};

TEST_P(PrefixSharingWithStates, EveryRequestGetsItsBytesInAnySchedule) {
  RunSchedules({.path = path(), .requests = 20, .rules = false, .rounds_a_hit = 8},
               TestCases(200) / 4);
}

TEST_P(PrefixSharingWithStates, SoDoRequestsOfSeveralPages) {
  RunSchedules({.path = path(), .context = 1024, .requests = 10, .rules = false, .rounds_a_hit = 8},
               TestCases(200) / 20);
}

// What others have left a state for: the end of an answer, 16 tokens before the end of a prompt,
// and the place where two texts have parted.
TEST_P(PrefixSharingWithStates, ATextGoesOnWhereItEndedOrWhereOthersParted) {
  const auto model = Model::Open(path(), {.context = 512, .threads = 2, .sequences = 4}).value();
  const auto ask = [&](std::vector<TokenId> prompt) {
    Request request{.prompt = std::move(prompt), .max_tokens = 4};
    request.ignore_end = true;
    request.sampling = {.temperature = 0.0};
    return model->Start(std::move(request))->Wait().value();
  };
  std::vector<TokenId> prompt(100);
  std::iota(prompt.begin(), prompt.end(), 260);
  const Answer first = ask(prompt);
  EXPECT_EQ(first.usage.cached_tokens, 0u);
  std::vector<TokenId> next = prompt;
  next.insert(next.end(), first.tokens.begin(), first.tokens.end() - 1);
  next.insert(next.end(), {270, 280});
  EXPECT_EQ(ask(next).usage.cached_tokens, 103u);  // all but the last token that was drawn
  EXPECT_EQ(ask(prompt).usage.cached_tokens, 84u);

  const auto salted = [&](const char* salt) {
    Request request{.prompt = prompt, .max_tokens = 1};
    request.cache_salt = salt;
    return model->Start(std::move(request))->Wait()->usage.cached_tokens;
  };
  EXPECT_EQ(salted("a"), 0u);
  EXPECT_EQ(salted("b"), 0u);
  EXPECT_EQ(salted("a"), 84u);

  std::vector<TokenId> other(prompt.begin(), prompt.begin() + 60);
  other.insert(other.end(), 40, 300);
  EXPECT_EQ(ask(other).usage.cached_tokens, 0u);  // nobody has left a state before that
  other.back() = 301;
  other[70] = 302;
  EXPECT_EQ(ask(other).usage.cached_tokens, 60u);
}

// A special token begins each message, so that it is known where the first one ends.
TEST_P(PrefixSharingWithStates, ASystemsMessageIsFoundByTheSecondChatThatHasIt) {
  const ModelOptions options{.context = 512, .threads = 2, .sequences = 4};
  const auto model = Model::Open(path(), options).value();
  const TokenId mark = SpecialTokenOf(*model);
  const auto chat = [&](TokenId question, std::size_t length) {
    std::vector<TokenId> prompt = {mark};
    for (TokenId token = 260; token < 330; ++token) prompt.push_back(token);
    prompt.push_back(mark);
    prompt.insert(prompt.end(), length, question);
    prompt.insert(prompt.end(), {mark, 300});
    return prompt;
  };
  const auto ask = [&](Model& of, std::vector<TokenId> prompt) {
    Request request{.prompt = std::move(prompt), .max_tokens = 6, .ignore_end = true};
    request.sampling = {.seed = 3};
    return of.Start(std::move(request))->Wait().value();
  };
  EXPECT_EQ(ask(*model, chat(350, 9)).usage.cached_tokens, 0u);
  std::vector<Answer> shared;
  for (const TokenId question : {351, 352, 353}) {
    shared.push_back(ask(*model, chat(question, 90)));
    EXPECT_EQ(shared.back().usage.cached_tokens, 71u) << question;
  }
  ModelOptions without = options;
  without.prefix_cache = false;
  const auto alone = Model::Open(path(), without).value();
  for (std::size_t i = 0; i < shared.size(); ++i) {
    EXPECT_EQ(ask(*alone, chat(static_cast<TokenId>(351 + i), 90)).tokens, shared[i].tokens);
  }
}

INSTANTIATE_TEST_SUITE_P(DeltaNetsAndConvolutions, PrefixSharingWithStates,
                         testing::Values("tiny-qwen35moe", "tiny-lfm2moe", "tiny-granitehybrid"),
                         [](const auto& test) {
                           std::string name = test.param;
                           std::ranges::replace(name, '-', '_');
                           return name;
                         });

}  // namespace
}  // namespace troupe
