#include "text/pre_tokenizer_rules.h"

#include <algorithm>
#include <iterator>

namespace troupe {
namespace {

using Texts = std::string_view[];

// GPT-2's own: English contractions, then words, numbers and the rest, each with the blank before.
constexpr std::string_view kGpt2Words =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S))";
constexpr std::string_view kThreeDigits = "[0-9][0-9][0-9]";

constexpr Texts kGpt2Names = {
    "gpt-2",    "phi-2",       "mpt",         "olmo",       "jais",
    "trillion", "exaone4",     "mellum",      "a.x-4.0",    "granite-docling",
    "gigachat", "modern-bert", "roberta-bpe", "jina-v1-en", "jina-v2-code",
    "jina-es",  "jina-v2-es",  "jina-de",     "jina-v2-de",
};
constexpr Texts kGpt2Patterns = {kGpt2Words};

constexpr Texts kDefaultNames = {"default"};
constexpr Texts kDefaultPatterns = {R"([\p{P}\$\+<=>\^~\|]+)", kGpt2Words, R"(\p{N}+)",
                                    kThreeDigits};

constexpr Texts kFalconNames = {"falcon"};
constexpr Texts kFalconPatterns = {R"([\p{P}\$\+<=>\^~\|`]+)", kGpt2Words, kThreeDigits};

// Every digit by itself.
constexpr Texts kStarcoderNames = {"starcoder", "refact", "command-r",  "smollm",
                                   "codeshell", "exaone", "minerva-7b", "mellum2"};
constexpr Texts kStarcoderPatterns = {R"(\p{N})", kGpt2Words};

// GPT-4's: words take one leading character of any kind, line ends stay with what precedes them.
constexpr Texts kLlama3Names = {"llama-bpe", "llama3",   "llama-v3", "falcon3",     "falcon-h1",
                                "pixtral",   "midm-2.0", "lfm2",     "jina-v5-nano"};
constexpr Texts kGpt4Names = {"dbrx", "smaug-bpe", "chatglm-bpe", "glm4"};
constexpr Texts kGpt4Patterns = {
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*)"
    R"(|\s*[\r\n]+|\s+(?!\S)|\s+)"};

// The same with every digit by itself.
constexpr Texts kQwen2Names = {"qwen2",   "deepseek-r1-qwen", "megrez",     "stablelm2", "kormo",
                               "f2llmv2", "hunyuan",          "solar-open", "grok-2"};
constexpr Texts kQwen2Patterns = {
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*)"
    R"(|\s*[\r\n]+|\s+(?!\S)|\s+)"};

// And with marks as parts of words.
constexpr Texts kQwen35Names = {"qwen35"};
constexpr Texts kQwen35Patterns = {
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N})"
    R"(| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)"};

constexpr Texts kBailingNames = {"bailingmoe", "bailingmoe2", "llada-moe"};
constexpr Texts kBailingPatterns = {
    R"('(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]++[\r\n]*)"
    R"(|\s*[\r\n]|\s+(?!\S)|\s+)"};

// o200k: words also end where small letters are followed by capitals.
constexpr Texts kGpt4oNames = {"gpt-4o", "llama4", "kanana2", "talkie", "minimax-m2"};
constexpr Texts kGpt4oPatterns = {
    R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+)"
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)?)"
    R"(|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*)"
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)?)"
    R"(|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)"};

constexpr Texts kTekkenNames = {"tekken"};
constexpr Texts kTekkenPatterns = {
    R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+)"
    R"(|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*)"
    R"(|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)"};

// DeepSeek spells out which letters have case, as the Unicode of its day had it.
constexpr std::string_view kDeepseekLetters =
    R"(\s?[A-Za-z\x{B5}\x{C0}-\x{D6}\x{D8}-\x{F6}\x{F8}-\x{1BA}\x{1BC}-\x{1BF}\x{1C4}-\x{293})"
    R"(\x{295}-\x{2AF}\x{370}-\x{373}\x{376}\x{377}\x{37B}-\x{37D}\x{37F}\x{386}\x{388}-\x{38A})"
    R"(\x{38C}\x{38E}-\x{3A1}\x{3A3}-\x{3F5}\x{3F7}-\x{481}\x{48A}-\x{52F}\x{531}-\x{556})"
    R"(\x{10A0}-\x{10C5}\x{13A0}-\x{13F5}\x{13F8}-\x{13FD}\x{1C90}-\x{1CBA}\x{1CBD}-\x{1CBF})"
    R"(\x{1D00}-\x{1D2B}\x{1D6B}-\x{1D77}\x{1D79}-\x{1D9A}\x{1E00}-\x{1F15}\x{1F18}-\x{1F1D})"
    R"(\x{1F20}-\x{1F45}\x{1F48}-\x{1F4D}\x{1F50}-\x{1F57}\x{1F59}\x{1F5B}\x{1F5D})"
    R"(\x{1F5F}-\x{1F7D}\x{1F80}-\x{1FB4}\x{1FB6}-\x{1FBC}\x{1FBE}\x{1FC2}-\x{1FC4})"
    R"(\x{1FC6}-\x{1FCC}\x{1FD0}-\x{1FD3}\x{1FD6}-\x{1FDB}\x{1FE0}-\x{1FEC}\x{1FF2}-\x{1FF4})"
    R"(\x{1FF6}-\x{1FFC}\x{2102}\x{2107}\x{210A}-\x{2113}\x{2115}\x{2119}-\x{211D}\x{2124})"
    R"(\x{2126}\x{2128}\x{212A}-\x{212D}\x{212F}-\x{2134}\x{2139}\x{213C}-\x{213F})"
    R"(\x{2145}-\x{2149}\x{214E}\x{2183}\x{2184}\x{2C00}-\x{2C7B}\x{2C7E}-\x{2CE4})"
    R"(\x{2CEB}-\x{2CEE}\x{2CF2}\x{2CF3}\x{A640}-\x{A66D}\x{A680}-\x{A69B}\x{A722}-\x{A76F})"
    R"(\x{A771}-\x{A787}\x{A78B}-\x{A78E}\x{AB70}-\x{ABBF}\x{FB00}-\x{FB06}\x{FB13}-\x{FB17})"
    R"(\x{FF21}-\x{FF3A}\x{FF41}-\x{FF5A}\x{10400}-\x{1044F}\x{104B0}-\x{104D3})"
    R"(\x{104D8}-\x{104FB}\x{10C80}-\x{10CB2}\x{10CC0}-\x{10CF2}\x{118A0}-\x{118DF})"
    R"(\x{1E900}-\x{1E943}]+)";
constexpr std::string_view kDeepseekMarks =
    R"(\s?[!-/:-~\x{FF01}-\x{FF0F}\x{FF1A}-\x{FF5E}\x{2018}-\x{201F}\x{3000}-\x{3002}]+)";
constexpr std::string_view kDeepseekIdeographs =
    R"([\x{4E00}-\x{9FA5}\x{800}-\x{4E00}\x{AC00}-\x{D7FF}]+)";

constexpr Texts kDeepseekLlmNames = {"deepseek-llm"};
constexpr Texts kDeepseekLlmPatterns = {R"([\r\n])", kDeepseekLetters,    kDeepseekMarks,
                                        R"(\s+$)",   kDeepseekIdeographs, R"(\p{N}+)"};

constexpr Texts kDeepseekCoderNames = {"deepseek-coder"};
constexpr Texts kDeepseekCoderPatterns = {R"([\r\n])", R"(\s?\p{L}+)", R"(\s?\p{P}+)",
                                          kDeepseekIdeographs, R"(\p{N})"};

constexpr Texts kDeepseekV3Names = {"deepseek-v3", "hunyuan-dense", "joyai-llm", "hy_v4"};
constexpr Texts kDeepseekV3Patterns = {
    R"(\p{N}{1,3})", R"([\x{4E00}-\x{9FA5}\x{3040}-\x{309F}\x{30A0}-\x{30FF}]+)",
    R"([!-/:-@\[-`{-~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*)"
    R"(|\s*[\r\n]+|\s+(?!\S)|\s+)"};

constexpr PreTokenizerRule kRules[] = {
    {.names = kDefaultNames, .patterns = kDefaultPatterns},
    {.names = kGpt2Names, .patterns = kGpt2Patterns},
    {.names = kFalconNames, .patterns = kFalconPatterns},
    {.names = kStarcoderNames, .patterns = kStarcoderPatterns},
    {.names = kLlama3Names, .patterns = kGpt4Patterns, .ignores_merges = true, .adds_bos = true},
    {.names = kGpt4Names, .patterns = kGpt4Patterns},
    {.names = kQwen2Names, .patterns = kQwen2Patterns},
    {.names = kQwen35Names, .patterns = kQwen35Patterns},
    {.names = kBailingNames, .patterns = kBailingPatterns},
    {.names = kGpt4oNames, .patterns = kGpt4oPatterns},
    {.names = kTekkenNames, .patterns = kTekkenPatterns, .ignores_merges = true, .adds_bos = true},
    {.names = kDeepseekLlmNames, .patterns = kDeepseekLlmPatterns},
    {.names = kDeepseekCoderNames, .patterns = kDeepseekCoderPatterns},
    {.names = kDeepseekV3Names, .patterns = kDeepseekV3Patterns},
};

}  // namespace

const PreTokenizerRule* FindPreTokenizerRule(std::string_view name) {
  const auto rule = std::find_if(std::begin(kRules), std::end(kRules), [&](const auto& candidate) {
    return std::count(candidate.names.begin(), candidate.names.end(), name) > 0;
  });
  return rule == std::end(kRules) ? nullptr : rule;
}

std::string KnownPreTokenizers() {
  std::string list;
  for (const PreTokenizerRule& rule : kRules) {
    for (const std::string_view name : rule.names) {
      if (!list.empty()) list += ", ";
      list += name;
    }
  }
  return list;
}

}  // namespace troupe
