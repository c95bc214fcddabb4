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
  using MatchData = std::unique_ptr<pcre2_match_data, FreeMatch>;

 public:
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

  // Appends the matches in `piece` and the text between them. The pattern sees only the piece: its
  // assertions ignore the text around it.
  Status Cut(std::string_view piece, pcre2_match_data* match,
             std::vector<std::string_view>& out) const {
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
      if (ends[0] > done) out.push_back(piece.substr(done, ends[0] - done));
      out.push_back(piece.substr(ends[0], ends[1] - ends[0]));
      done = ends[1];
    }
    if (done < piece.size()) out.push_back(piece.substr(done));
    return OkStatus();
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

Result<std::vector<std::string_view>> PreTokenizer::Split(std::string_view text) const {
  std::vector<std::string_view> words;
  if (!text.empty()) words.push_back(text);
  for (const Pattern& pattern : patterns_) {
    const auto match = pattern.MakeMatchData();
    std::vector<std::string_view> finer;
    finer.reserve(words.size());
    for (const std::string_view word : words) {
      TROUPE_RETURN_IF_ERROR(pattern.Cut(word, match.get(), finer));
    }
    words.swap(finer);
  }
  return words;
}

}  // namespace troupe
