// What a model is asked for, and what it answers: plain values.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "troupe/prompt.h"
#include "troupe/usage.h"

namespace troupe {

// Makes tokens less likely that would go on with a repetition of what the text has said before.
struct DryOptions {
  double multiplier = 0;             // subtracted of a repetition of allowed_length tokens; 0: off
  double base = 1.75;                // multiplied by this for each further token
  std::uint32_t allowed_length = 2;  // shorter repetitions cost nothing
  std::uint32_t window = 0;          // the last tokens that are looked at; 0: all
  // No repetition goes across these texts; none: a line's end, a colon, quotes, a star; an empty
  // one: it goes across all. They are no default here: GCC 12 destroys one that lies this deep
  // before it is made, where an initialiser around it throws.
  std::vector<std::string> breakers = {};

  bool operator==(const DryOptions&) const = default;
};

// Leaves out the likeliest tokens now and then, where others would do as well.
struct XtcOptions {
  double probability = 0;  // that it happens for a token; 0: off
  double threshold = 0.1;  // of tokens at least so likely, all but the least likely are left out

  bool operator==(const XtcOptions&) const = default;
};

// How the next token is chosen. The same seed gives the same answer on every machine, and each
// token depends on it by its position in the text alone: a prompt that ends with the beginning of
// an answer is gone on with as that answer went on.
struct Sampling {
  double temperature = 0.8;  // 0: always the most likely token
  std::uint32_t top_k = 40;  // keep the k most likely; 0: all
  double top_p = 0.95;       // keep the fewest whose probabilities reach p; 1: all
  double min_p = 0.05;       // keep those at least this fraction of the most likely; 0: all

  // For tokens among the last penalty_window ones; 0 turns all three off.
  std::uint32_t penalty_window = 64;
  double repetition_penalty = 1.0;  // divides positive logits, multiplies negative ones
  double frequency_penalty = 0.0;   // subtracted per occurrence
  double presence_penalty = 0.0;    // subtracted once

  DryOptions dry;
  XtcOptions xtc;

  std::map<TokenId, float> logit_bias;  // added; -infinity bans a token
  std::uint64_t seed = 0;  // the same unless another is given: draw one for answers that vary

  bool operator==(const Sampling&) const = default;
};

// What the text of an answer must be: tokens that cannot lead there are never chosen, and the
// answer ends where nothing more may come. Cut off by max_tokens it may be a beginning of such a
// text.
struct AnswerRule {
  enum class Kind {
    kJsonObject,  // any
    kJsonSchema,  // a JSON value that the schema in `text` allows
    kGrammar,     // a text of the grammar in `text` (GBNF)
  };
  Kind kind = Kind::kJsonObject;
  std::string text;
  // What errors about an answer under way begin with: where the rule stands in the caller's eyes.
  // Empty: "grammar" or "schema".
  std::string place = {};

  // The same texts follow both.
  bool operator==(const AnswerRule& other) const {
    return kind == other.kind && text == other.text;
  }
};

// Where an answer reasons before it answers: between texts that the model writes around that. Its
// tokens, without those of the marks, are counted (Usage::reasoning_tokens) and may be limited.
// Marks that are special tokens are seen with Request::show_marks alone.
struct Reasoning {
  std::string open = {};                 // as "<think>"; only blanks may come before it
  std::vector<std::string> closes = {};  // any of these ends it: "</think>", the mark of a call
  bool begun = false;                    // the prompt has opened it
  bool comes_again = false;              // it may open anywhere in an answer, and more than once
  // After that many tokens `end` is written in place of what the model would choose: a few tokens
  // later where a character or a mark has begun. A rule of the request has to allow it.
  std::optional<std::size_t> most_tokens = {};
  std::string end = {};  // as "</think>"; its special tokens are written by their names

  bool operator==(const Reasoning&) const = default;
};

// How what a model makes of each token of a text becomes one vector.
enum class Pooling {
  kMean,  // of all tokens
  kLast,  // of the last one
};

struct Request {
  Prompt prompt;
  std::size_t max_tokens = 128;
  Sampling sampling;
  std::vector<std::string> stop;          // texts before which the answer ends; no empty ones
  bool ignore_end = false;                // goes on past the tokens that end an answer
  std::vector<TokenId> stop_tokens = {};  // end the answer as well, whatever ignore_end says
  // Special tokens that mark parts of an answer (reasoning, calls of tools, channels) are shown by
  // their names; otherwise no special token has a text.
  bool show_marks = false;
  // Of models that were opened with ModelOptions::answer_rules.
  std::optional<AnswerRule> rule = {};
  std::optional<Reasoning> reasoning = {};
  // No text is wanted, but the prompt as a vector (Answer::embedding).
  std::optional<Pooling> embed = {};
  // The answer's first tokens, if this model has chosen them for this request before, here or
  // elsewhere: it goes on behind them, to the same bytes. They are read like the prompt and are
  // part of the answer, and no callback tells of them.
  std::vector<TokenId> begun = {};
  // What is read of its prompt serves requests with the same salt alone, and it finds what these
  // have left; otherwise an answer comes sooner, and Usage::cached_tokens says so, if another's
  // prompt began alike. What has a salt is not kept from one run to the next.
  std::string cache_salt = {};
  // Answered exactly even if the model was opened to lose quality for speed.
  bool exact = false;
  // The share of perplexity that may be lost: 0.01 is 1 %. Answered exactly if the model was opened
  // to lose more, or as nobody measured what.
  std::optional<double> most_loss = {};
  // After this time the request fails; of those that wait, the most urgent is read first.
  std::optional<std::chrono::nanoseconds> timeout;
};

// Text of an answer, as soon as its characters are complete and no stop string can begin in it.
struct Piece {
  std::string_view text;   // valid UTF-8; good during the call
  std::size_t tokens = 0;  // generated so far
};

enum class FinishReason {
  kLength,    // max_tokens were generated
  kEndToken,  // the model ended its answer
  kStopString,
  kContextFull,  // no room for another token
  kCancelled,    // by the caller
};

std::string_view Name(FinishReason reason);  // "length"

struct Answer {
  std::string text;
  std::vector<TokenId> tokens;  // generated, without the one that ended the answer
  FinishReason finish = FinishReason::kLength;
  std::string stopped_by;  // the stop string, of kStopString
  // Of Request::embed: the model's width of numbers, of length 1.
  std::vector<float> embedding = {};
  Usage usage;
};

}  // namespace troupe
