#include "text/pre_tokenizer.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include <array>
#include <memory>
#include <string>
#include <utility>

#include "text/pre_tokenizer_rules.h"

namespace troupe {
namespace {

std::string PcreMessage(int error) {
  std::array<PCRE2_UCHAR, 256> text{};
  pcre2_get_error_message(error, text.data(), text.size());
  return reinterpret_cast<const char*>(text.data());
}

// PCRE2's \s includes U+180E, which Unicode no longer counts as a blank.
std::string WithUnicodeBlanks(std::string_view pattern) {
  std::string exact;
  for (std::size_t i = 0; i < pattern.size(); ++i) {
    const std::string_view two = pattern.substr(i, 2);
    if (two == R"(\s)") {
      exact += R"(\p{WSpace})";
      ++i;
    } else if (two == R"(\S)") {
      exact += R"(\P{WSpace})";
      ++i;
    } else {
      exact += pattern[i];
    }
  }
  return exact;
}

}  // namespace

class PreTokenizer::Pattern {
  struct FreeCode {
    void operator()(pcre2_code* code) const { pcre2_code_free(code); }
  };
  struct FreeMatch {
    void operator()(pcre2_match_data* match) const { pcre2_match_data_free(match); }
  };

 public:
  using MatchData = std::unique_ptr<pcre2_match_data, FreeMatch>;

  static Result<Pattern> Compile(std::string_view text) {
    const std::string exact = WithUnicodeBlanks(text);
    int error = 0;
    PCRE2_SIZE at = 0;
    std::unique_ptr<pcre2_code, FreeCode> code(
        pcre2_compile(reinterpret_cast<PCRE2_SPTR>(exact.data()), exact.size(),
                      PCRE2_UTF | PCRE2_UCP | PCRE2_DOLLAR_ENDONLY, &error, &at, nullptr));
    if (code == nullptr) {
      return Error(Code::kInternal, "pattern '{}', character {}: {}", exact, at,
                   PcreMessage(error));
    }
    // Without a JIT the pattern is interpreted: the same matches, but slower.
    pcre2_jit_compile(code.get(), PCRE2_JIT_COMPLETE);
    return Pattern(std::move(code));
  }

  MatchData MakeMatchData() const {
    return MatchData(pcre2_match_data_create_from_pattern(code_.get(), nullptr));
  }

  // Uses the matches in `piece` and the text between them. The pattern sees only the piece: its
  // assertions ignore the text around it.
  template <typename Use>
  Status Cut(std::string_view piece, pcre2_match_data* match, Use use) const {
    std::size_t done = 0;
    while (done < piece.size()) {
      const int found = Match(piece, done, match);
      if (found == PCRE2_ERROR_NOMATCH) break;
      if (found < 0) {
        return Error(Code::kResourceExhausted, "cutting text into words, byte {} of {}: {}", done,
                     piece.size(), PcreMessage(found));
      }
      const PCRE2_SIZE* ends = pcre2_get_ovector_pointer(match);
      TROUPE_CHECK(ends[1] > ends[0]);  // no rule matches nothing
      const PCRE2_SIZE begin = ends[0], end = ends[1];
      if (begin > done) TROUPE_RETURN_IF_ERROR(use(piece.substr(done, begin - done)));
      TROUPE_RETURN_IF_ERROR(use(piece.substr(begin, end - begin)));
      done = end;
    }
    return done < piece.size() ? use(piece.substr(done)) : OkStatus();
  }

 private:
  explicit Pattern(std::unique_ptr<pcre2_code, FreeCode> code) : code_(std::move(code)) {}

  // A long match may need more stack than the JIT has; the interpreter keeps its own on the heap.
  int Match(std::string_view piece, std::size_t from, pcre2_match_data* match) const {
    const auto* subject = reinterpret_cast<PCRE2_SPTR>(piece.data());
    const int found =
        pcre2_match(code_.get(), subject, piece.size(), from, PCRE2_NO_UTF_CHECK, match, nullptr);
    if (found != PCRE2_ERROR_JIT_STACKLIMIT) return found;
    return pcre2_match(code_.get(), subject, piece.size(), from, PCRE2_NO_UTF_CHECK | PCRE2_NO_JIT,
                       match, nullptr);
  }

  std::unique_ptr<pcre2_code, FreeCode> code_;
};

PreTokenizer::PreTokenizer(std::vector<Pattern> patterns, bool ignores_merges)
    : patterns_(std::move(patterns)), ignores_merges_(ignores_merges) {}
PreTokenizer::~PreTokenizer() = default;
PreTokenizer::PreTokenizer(PreTokenizer&&) noexcept = default;
PreTokenizer& PreTokenizer::operator=(PreTokenizer&&) noexcept = default;

Result<PreTokenizer> PreTokenizer::Make(std::string_view name) {
  const PreTokenizerRule* rule = FindPreTokenizerRule(name);
  if (rule == nullptr) {
    return Error(Code::kUnimplemented, "pre-tokenizer '{}' is not known, expected one of {}", name,
                 KnownPreTokenizers());
  }
  std::vector<Pattern> patterns;
  for (const std::string_view text : rule->patterns) {
    TROUPE_ASSIGN_OR_RETURN(Pattern pattern, Pattern::Compile(text));
    patterns.push_back(std::move(pattern));
  }
  return PreTokenizer(std::move(patterns), rule->ignores_merges);
}

// One text on its way through the patterns: each cuts what the one before it has left. Nothing is
// kept of the words, however many there are.
class PreTokenizer::Cutting {
 public:
  Cutting(const std::vector<Pattern>& patterns, const UseWord& use)
      : patterns_(patterns), use_(use) {
    for (const Pattern& pattern : patterns) matches_.push_back(pattern.MakeMatchData());
  }

  Status From(std::size_t pattern, std::string_view piece) {
    if (pattern == patterns_.size()) return use_(piece);
    return patterns_[pattern].Cut(piece, matches_[pattern].get(),
                                  [&](std::string_view finer) { return From(pattern + 1, finer); });
  }

 private:
  const std::vector<Pattern>& patterns_;
  const UseWord& use_;
  std::vector<Pattern::MatchData> matches_;
};

Status PreTokenizer::ForEachWord(std::string_view text, const UseWord& use) const {
  return text.empty() ? OkStatus() : Cutting(patterns_, use).From(0, text);
}

}  // namespace troupe
