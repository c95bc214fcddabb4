#include "runtime/generation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <memory>

#include "text/grammar/gbnf.h"
#include "text/tiny_vocab_for_test.h"

namespace troupe {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using State = TextGeneration::State;

// A byte-level vocabulary: token 'a' is the byte 'a'.
class Generation : public testing::Test {
 protected:
  Generation() : tokenizer_(MakeTokenizer(TinyByteLevelVocab()).value()) {
    options_.sampler.temperature = 0;
    sinks_.on_text = [this](std::string_view piece) {
      pieces_.emplace_back(piece);
      return pieces_.size() < pieces_wanted_;
    };
  }

  TextGeneration Make(std::vector<TokenId> prompt = {'p', 'q', 'r'}, std::size_t capacity = 100) {
    return TextGeneration::Make(*tokenizer_, std::move(prompt), options_, {.capacity = capacity},
                                clock_, sinks_)
        .value();
  }
  TextGeneration MakeDecoding() {
    TextGeneration generation = Make();
    generation.Read(3);
    return generation;
  }
  std::vector<float> Choosing(TokenId token) const {
    std::vector<float> logits(tokenizer_->size(), 0.0F);
    logits[static_cast<std::size_t>(token)] = 9;
    return logits;
  }
  // Lets the model say these bytes, as far as the generation goes on.
  void Say(TextGeneration& generation, std::string_view bytes) const {
    for (const char byte : bytes) {
      if (generation.ended()) return;
      ASSERT_TRUE(generation.Accept(Choosing(static_cast<unsigned char>(byte)), scratch_).ok());
    }
  }

  std::unique_ptr<Tokenizer> tokenizer_;
  GenerateOptions options_;
  GenerationSinks sinks_;
  ManualClock clock_;
  mutable SamplerScratch scratch_;
  std::vector<std::string> pieces_;
  std::size_t pieces_wanted_ = 1000;
};

TEST_F(Generation, AsksForThePromptInChunksAndThenForTheLastToken) {
  TextGeneration generation = Make();
  EXPECT_EQ(generation.phase(), Phase::kPrompt);
  EXPECT_THAT(generation.NextTokens(2), ElementsAre('p', 'q'));
  generation.Read(2);
  EXPECT_EQ(generation.state(), State::kReading);
  EXPECT_THAT(generation.NextTokens(2), ElementsAre('r'));
  generation.Read(1);
  EXPECT_EQ(generation.state(), State::kDecoding);
  EXPECT_EQ(generation.phase(), Phase::kDecode);
  EXPECT_THAT(generation.NextTokens(2), IsEmpty());  // the prompt's logits are due
  ASSERT_TRUE(generation.Accept(Choosing('x'), scratch_).ok());
  EXPECT_THAT(generation.NextTokens(2), ElementsAre('x'));
}

TEST_F(Generation, StreamsExactlyTheTextThatItReturns) {
  options_.max_tokens = 5;
  TextGeneration generation = MakeDecoding();
  Say(generation, "h\xC3\xA9llo, and more");
  EXPECT_EQ(generation.state(), State::kFinished);
  EXPECT_EQ(generation.answer().finish, FinishReason::kLength);
  EXPECT_EQ(generation.answer().text, "h\xC3\xA9ll");
  EXPECT_THAT(pieces_, ElementsAre("h", "\xC3\xA9", "l", "l"));
  EXPECT_EQ(generation.answer().tokens.size(), 5u);
  EXPECT_EQ(generation.answer().usage.decode_steps, 4u);
}

TEST_F(Generation, FindsAStopStringThatCrossesPiecesAndShowsNothingOfIt) {
  options_.stop = {"stop"};
  TextGeneration generation = MakeDecoding();
  Say(generation, "a stool, stop it");
  EXPECT_EQ(generation.answer().finish, FinishReason::kStopString);
  EXPECT_FALSE(generation.answer().stopped_by.empty());
  EXPECT_EQ(generation.answer().text, "a stool, ");
  EXPECT_EQ(testing::PrintToString(pieces_).find("stop"), std::string::npos);
}

TEST_F(Generation, ShowsTheBeginningOfAStopStringThatNeverCame) {
  options_.stop = {"stop"};
  options_.max_tokens = 4;
  TextGeneration generation = MakeDecoding();
  Say(generation, "a st");
  EXPECT_EQ(generation.answer().finish, FinishReason::kLength);
  EXPECT_EQ(generation.answer().text, "a st");
}

TEST_F(Generation, EndsAtAnEndTokenAndLeavesItOut) {
  TextGeneration generation = MakeDecoding();
  Say(generation, "ab");
  ASSERT_TRUE(generation.Accept(Choosing(tokenizer_->vocab().eos.value()), scratch_).ok());
  EXPECT_EQ(generation.state(), State::kFinished);
  EXPECT_EQ(generation.answer().finish, FinishReason::kEndToken);
  EXPECT_THAT(generation.answer().tokens, ElementsAre('a', 'b'));
}

TEST_F(Generation, GoesOnPastAnEndTokenIfAskedTo) {
  options_.ignore_end = true;
  TextGeneration generation = MakeDecoding();
  ASSERT_TRUE(generation.Accept(Choosing(tokenizer_->vocab().eos.value()), scratch_).ok());
  EXPECT_EQ(generation.state(), State::kDecoding);
  Say(generation, "b");
  EXPECT_EQ(generation.answer().text, "b");
}

TEST_F(Generation, EndsAtATokenThatItIsToStopAtAndLeavesItOut) {
  options_.stop_tokens = {'x', 'c'};
  options_.ignore_end = true;
  TextGeneration generation = MakeDecoding();
  Say(generation, "abc");
  EXPECT_EQ(generation.state(), State::kFinished);
  EXPECT_EQ(generation.answer().finish, FinishReason::kEndToken);
  EXPECT_EQ(generation.answer().text, "ab");
}

TEST_F(Generation, EndsWhenTheContextIsFull) {
  TextGeneration generation = Make({'p', 'q', 'r'}, 5);
  generation.Read(3);
  Say(generation, "abcdef");
  EXPECT_EQ(generation.answer().finish, FinishReason::kContextFull);
  // Two of them were fed; the third was chosen from the last position.
  EXPECT_EQ(generation.answer().text, "abc");
}

TEST_F(Generation, CountsWhatTheSequenceHeldBefore) {
  TextGeneration generation =
      TextGeneration::Make(*tokenizer_, {'p'}, options_, {.used = 8, .capacity = 10}, clock_)
          .value();
  generation.Read(1);
  Say(generation, "abcdef");
  EXPECT_EQ(generation.answer().finish, FinishReason::kContextFull);
  EXPECT_EQ(generation.answer().text, "ab");
}

TEST_F(Generation, OfNoTokensEndsWithThePrompt) {
  options_.max_tokens = 0;
  TextGeneration generation = MakeDecoding();
  EXPECT_EQ(generation.state(), State::kFinished);
  EXPECT_EQ(generation.answer().finish, FinishReason::kLength);
  EXPECT_EQ(generation.answer().usage.prompt_tokens, 3u);
}

TEST_F(Generation, CanBeCancelledWhileReading) {
  TextGeneration generation = Make();
  generation.Read(2);
  generation.Cancel();
  EXPECT_EQ(generation.state(), State::kCancelled);
  EXPECT_EQ(generation.answer().finish, FinishReason::kCancelled);
  EXPECT_EQ(generation.answer().usage.prompt_tokens, 2u);
  EXPECT_THAT(generation.NextTokens(8), IsEmpty());
}

TEST_F(Generation, CancelledWhileDecodingKeepsWhatItHeldBackAndShowsItToNobody) {
  options_.stop = {"stop"};
  TextGeneration generation = MakeDecoding();
  Say(generation, "a st");
  EXPECT_EQ(generation.answer().text, "a ");
  generation.Cancel();
  EXPECT_EQ(generation.state(), State::kCancelled);
  EXPECT_EQ(generation.answer().text, "a st");
  generation.Cancel();
  EXPECT_EQ(generation.answer().text, "a st");
  EXPECT_THAT(pieces_, ElementsAre("a", " "));
}

TEST_F(Generation, CannotBeCancelledOrFailAfterItsEnd) {
  options_.max_tokens = 1;
  TextGeneration generation = MakeDecoding();
  Say(generation, "a");
  generation.Cancel();
  generation.Fail(InvalidArgument("late"));
  EXPECT_EQ(generation.state(), State::kFinished);
  EXPECT_TRUE(generation.status().ok());
}

TEST_F(Generation, IsCancelledByAReaderWhoHasHadEnoughAndTellsHimNothingMore) {
  pieces_wanted_ = 1;
  options_.stop = {"bx"};  // holds back the second half of the token "ab"
  TextGeneration generation = MakeDecoding();
  ASSERT_TRUE(generation.Accept(Choosing(tokenizer_->Encode("ab").value().at(0)), scratch_).ok());
  EXPECT_EQ(generation.state(), State::kCancelled);
  EXPECT_THAT(pieces_, ElementsAre("a"));
  EXPECT_EQ(generation.answer().text, "ab");
}

TEST_F(Generation, FailsOnLogitsThatAreNoNumbers) {
  for (const float bad :
       {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
    TextGeneration generation = MakeDecoding();
    std::vector<float> logits = Choosing('a');
    logits[7] = bad;
    EXPECT_EQ(generation.Accept(logits, scratch_).code(), Code::kInvalidArgument);
    EXPECT_EQ(generation.state(), State::kFailed);
    EXPECT_THAT(generation.status().message(), HasSubstr("logit of token 7"));
  }
}

TEST_F(Generation, FailsWithTheErrorOfALogitsSink) {
  sinks_.on_logits = [](TokenId, std::span<const float>) { return DataLoss("disk full"); };
  TextGeneration generation = MakeDecoding();
  EXPECT_EQ(generation.Accept(Choosing('a'), scratch_).message(), "disk full");
  EXPECT_EQ(generation.state(), State::kFailed);
  EXPECT_THAT(pieces_, IsEmpty());
}

// Of the tokens of one byte that the vocabulary has for such a text.
std::vector<TokenId> TokensOfBytes(std::string_view text) {
  std::vector<TokenId> tokens;
  for (const char byte : text) tokens.push_back(static_cast<unsigned char>(byte));
  return tokens;
}

TEST_F(Generation, CountsTheTokensOfReasoning) {
  options_.reasoning = Reasoning{.open = "<think>", .closes = {"</think>"}};
  TextGeneration generation = MakeDecoding();
  Say(generation, "<think>Hm, h\xC3\xA9.</think>Yes.");
  ASSERT_TRUE(generation.Accept(Choosing(tokenizer_->vocab().eos.value()), scratch_).ok());
  EXPECT_EQ(generation.answer().usage.reasoning_tokens, 8u);
  EXPECT_EQ(generation.answer().usage.generated_tokens, 8u + 15u + 4u);
}

TEST_F(Generation, WritesTheEndOfReasoningThatHasHadItsTokens) {
  options_.reasoning =
      Reasoning{.closes = {"</think>"}, .begun = true, .most_tokens = 3, .end = "</think>"};
  options_.reasoning_end = TokensOfBytes("</think>");
  options_.max_tokens = 16;
  TextGeneration generation = MakeDecoding();
  Say(generation, "Hm, and so on and on");
  EXPECT_EQ(generation.answer().text, "Hm,</think>on an");
  EXPECT_EQ(generation.answer().usage.reasoning_tokens, 3u);
}

TEST_F(Generation, WritesTheEndOfReasoningBetweenCharacters) {
  options_.reasoning =
      Reasoning{.closes = {"</t>"}, .begun = true, .most_tokens = 2, .end = "</t>"};
  options_.reasoning_end = TokensOfBytes("</t>");
  options_.max_tokens = 8;
  TextGeneration generation = MakeDecoding();
  Say(generation, "a\xC3\xA9 and so on");
  EXPECT_EQ(generation.answer().text, "a\xC3\xA9</t> ");
  EXPECT_EQ(generation.answer().usage.reasoning_tokens, 3u);
}

TEST_F(Generation, AConstraintFollowsTheEndThatIsWritten) {
  options_.reasoning =
      Reasoning{.closes = {"</t>"}, .begun = true, .most_tokens = 1, .end = "</t>"};
  options_.reasoning_end = TokensOfBytes("</t>");
  const auto masks = std::make_shared<TokenMasks>(
      Automaton::Compile(ParseGbnf("root ::= [^<]* \"</t>\" [0-9]").value()).value(),
      MakeVocabTrie(*tokenizer_));
  options_.constraint = std::make_shared<TokenConstraint>(masks);
  TextGeneration generation = MakeDecoding();
  Say(generation, "xyzzy7");
  EXPECT_EQ(generation.answer().text, "x</t>7");
  EXPECT_EQ(generation.answer().finish, FinishReason::kEndToken);
}

TEST_F(Generation, DrawsTheSameTokensWhateverTheLogitsOfThoseThatAreWritten) {
  options_.reasoning =
      Reasoning{.closes = {"</t>"}, .begun = true, .most_tokens = 2, .end = "</t>"};
  options_.reasoning_end = TokensOfBytes("</t>");
  options_.sampler = {.temperature = 2, .seed = 5};
  options_.max_tokens = 20;
  const auto answer = [&](TokenId favourite) {
    TextGeneration generation = MakeDecoding();
    const std::vector<float> even(tokenizer_->size(), 1.0F);
    while (!generation.ended()) {
      const std::size_t said = generation.answer().tokens.size();
      const bool is_written = said >= 2 && said < 6;
      const auto logits = is_written ? Choosing(favourite) : even;
      EXPECT_TRUE(generation.Accept(logits, scratch_).ok());
      if (generation.answer().usage.reasoning_tokens > 2) break;  // a character was cut
    }
    return generation.answer().tokens;
  };
  EXPECT_EQ(answer('a'), answer('b'));
}

TEST_F(Generation, GoesOnAlikeWhereItsBeginningIsPartOfThePrompt) {
  options_.sampler = {.temperature = 2, .frequency_penalty = 0.4, .seed = 5};
  options_.max_tokens = 12;
  const std::vector<float> even(tokenizer_->size(), 1.0F);
  const auto answer = [&](std::vector<TokenId> prompt, std::size_t used) {
    TextGeneration generation =
        TextGeneration::Make(*tokenizer_,
                             {prompt.begin() + static_cast<std::ptrdiff_t>(used), prompt.end()},
                             options_, {.used = used, .capacity = 100}, clock_)
            .value();
    generation.Read(prompt.size() - used);
    while (!generation.ended()) EXPECT_TRUE(generation.Accept(even, scratch_).ok());
    return generation.answer().tokens;
  };
  const std::vector<TokenId> prompt = {'p', 'q', 'r'}, whole = answer(prompt, 0);
  std::vector<TokenId> longer = prompt;
  longer.insert(longer.end(), whole.begin(), whole.begin() + 5);
  options_.max_tokens = 7;
  EXPECT_TRUE(std::ranges::equal(answer(longer, 0), std::span(whole).subspan(5)));
  options_.sampler.frequency_penalty = 0;  // it counts what the request was given
  options_.max_tokens = 12;
  const std::vector<TokenId> free = answer(prompt, 0);
  EXPECT_EQ(answer(prompt, 2), free);
}

// An answer that is cut anywhere and goes on elsewhere is the same answer, and what is shown of
// both parts is its text.
TEST_F(Generation, GoesOnBehindItsFirstTokensAsIfItHadChosenThemItself) {
  const std::string said = "<t>Hm, h\xC3\xA9 and so on.</t> Then: stop it, or go on ab ab abcd";
  options_.stop = {"abc"};
  options_.reasoning =
      Reasoning{.open = "<t>", .closes = {"</t>"}, .most_tokens = 9, .end = "</t>"};
  options_.reasoning_end = TokensOfBytes("</t>");
  options_.sampler = {.temperature = 3, .repetition_penalty = 1.2, .seed = 5};
  const auto speak = [&](TextGeneration& generation) {
    while (!generation.ended()) {
      const std::size_t at = generation.answer().tokens.size();
      std::vector<float> logits(tokenizer_->size(), -1.0F);
      logits[static_cast<unsigned char>(said[at % said.size()])] = 40;
      logits['x'] = 38;
      ASSERT_TRUE(generation.Accept(logits, scratch_).ok());
    }
  };
  const auto whole = [&] {
    TextGeneration generation = MakeDecoding();
    speak(generation);
    return generation.answer();
  };
  // A seed by which something is drawn and the stop string comes all the same.
  Answer expected = whole();
  while (expected.finish != FinishReason::kStopString ||
         expected.text.find('x') == std::string::npos) {
    ASSERT_LT(++options_.sampler.seed, 500u);
    expected = whole();
  }
  for (std::size_t cut = 0; cut < expected.tokens.size(); ++cut) {
    pieces_.clear();
    options_.begun.clear();
    TextGeneration first = MakeDecoding();
    for (std::size_t i = 0; i < cut; ++i) ASSERT_TRUE(first.Take(expected.tokens[i]).ok());
    options_.begun.assign(expected.tokens.begin(),
                          expected.tokens.begin() + static_cast<std::ptrdiff_t>(cut));
    TextGeneration second = Make();
    ASSERT_EQ(second.prompt_left(), 3 + cut);
    second.Read(3 + cut);
    ASSERT_THAT(second.NextTokens(1), IsEmpty());
    speak(second);
    EXPECT_EQ(second.answer().tokens, expected.tokens) << cut;
    EXPECT_EQ(second.answer().text, expected.text) << cut;
    EXPECT_EQ(second.answer().finish, expected.finish) << cut;
    EXPECT_EQ(second.answer().usage.reasoning_tokens, expected.usage.reasoning_tokens) << cut;
    EXPECT_EQ(second.answer().usage.prompt_tokens, 3u);
    std::string shown;
    for (const std::string& piece : pieces_) shown += piece;
    EXPECT_EQ(shown, expected.text) << cut;
  }
}

TEST_F(Generation, TakesNoTokenThatItCannotHaveChosen) {
  const auto taking = [&](std::vector<TokenId> begun) {
    options_.begun = begun;
    TextGeneration generation = Make();
    generation.Read(3 + begun.size());
    return generation.status();
  };
  EXPECT_TRUE(taking({'a'}).ok());
  EXPECT_THAT(taking({-1}).message(), HasSubstr("-1 is not in the vocabulary"));
  EXPECT_THAT(taking({'a', tokenizer_->vocab().eos.value()}).message(), HasSubstr("ended it"));
  options_.stop = {"b"};
  EXPECT_THAT(taking({'b', 'a'}).message(), HasSubstr("ends before"));
  options_.reasoning =
      Reasoning{.closes = {"</t>"}, .begun = true, .most_tokens = 1, .end = "</t>"};
  options_.reasoning_end = TokensOfBytes("</t>");
  EXPECT_TRUE(taking({'x', '<'}).ok());
  EXPECT_THAT(taking({'x', 'y'}).message(), HasSubstr("ends its reasoning"));
}

TEST_F(Generation, RefusesToBeginWithMoreThanItMayHold) {
  options_.begun = {'a', 'b', 'c'};
  const auto code = [&](std::size_t capacity) {
    return TextGeneration::Check(2, options_, {.capacity = capacity}).code();
  };
  EXPECT_EQ(code(5), Code::kOk);
  EXPECT_EQ(code(4), Code::kResourceExhausted);
  options_.max_tokens = 2;
  EXPECT_EQ(code(5), Code::kInvalidArgument);
}

TEST_F(Generation, EndsWhereWhoeverChoseItsTokensSaysSo) {
  TextGeneration generation = MakeDecoding();
  ASSERT_TRUE(generation.Take('a').ok());
  generation.Finish(FinishReason::kEndToken);
  EXPECT_EQ(generation.state(), State::kFinished);
  EXPECT_EQ(generation.answer().text, "a");
  EXPECT_EQ(generation.answer().finish, FinishReason::kEndToken);
}

TEST_F(Generation, RefusesALimitOfReasoningWithoutAnEnd) {
  options_.reasoning = Reasoning{.closes = {"</t>"}, .most_tokens = 1};
  EXPECT_EQ(
      TextGeneration::Make(*tokenizer_, {'a'}, options_, {.capacity = 9}, clock_).status().code(),
      Code::kInvalidArgument);
}

TEST_F(Generation, RefusesAnEmptyPromptOneThatDoesNotFitAndBadSampling) {
  const auto made = [&](std::vector<TokenId> prompt) {
    return TextGeneration::Make(*tokenizer_, std::move(prompt), options_, {.capacity = 2}, clock_)
        .status();
  };
  const auto code = [&](std::vector<TokenId> prompt) { return made(std::move(prompt)).code(); };
  EXPECT_EQ(code({}), Code::kInvalidArgument);
  EXPECT_EQ(code({1, 2, 3}), Code::kResourceExhausted);
  EXPECT_TRUE(made({1, 2, 3}).context_full());
  EXPECT_EQ(code({1, 2}), Code::kOk);
  options_.sampler.temperature = -1;
  EXPECT_EQ(code({1, 2}), Code::kInvalidArgument);
}

TEST_F(Generation, MeasuresReadingTheFirstTokenAndDecoding) {
  constexpr Nanos kSecond = 1'000'000'000;
  options_.max_tokens = 3;
  TextGeneration generation = Make();
  clock_.Advance(2 * kSecond);
  generation.Read(3);
  clock_.Advance(kSecond);
  Say(generation, "a");
  clock_.Advance(4 * kSecond);
  Say(generation, "bc");
  const Answer result = std::move(generation).TakeAnswer();
  EXPECT_EQ(result.usage.prefill_seconds, 2);
  EXPECT_EQ(result.usage.first_token_seconds, 3);
  EXPECT_EQ(result.usage.decode_seconds, 4);
  EXPECT_EQ(result.usage.DecodeTokensPerSecond(), 0.5);
}

}  // namespace
}  // namespace troupe
