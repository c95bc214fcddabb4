// Published vocabularies, through the GGUF reader and the vocabulary loader, against the token ids
// that their own tokenizers give (tests/data/tokenizers/README.md).
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "base/json_value.h"
#include "base/rng.h"
#include "test_vocab.h"
#include "testing/test_seed.h"
#include "text/byte_characters.h"
#include "text/stream_decoder.h"
#include "text/utf8.h"

namespace troupe {
namespace {

constexpr std::size_t kTexts = 46;

std::vector<std::string> TestTexts() {
  constexpr std::string_view kSeparator = "\n__ggml_vocab_test__\n";
  const std::string file = ReadTestFile("tokenizers/ggml-vocab.inp").value();
  std::vector<std::string> texts;
  for (std::size_t begin = 0; begin < file.size();) {
    const std::size_t end = file.find(kSeparator, begin);
    TROUPE_CHECK(end != std::string::npos);
    texts.push_back(file.substr(begin, end - begin));
    begin = end + kSeparator.size();
  }
  return texts;
}

std::vector<std::vector<TokenId>> ReadIds(const std::string& name) {
  std::istringstream file(ReadTestFile("tokenizers/" + name).value());
  std::vector<std::vector<TokenId>> expected;
  for (std::string line; std::getline(file, line);) {
    std::istringstream ids(line);
    expected.emplace_back(std::istream_iterator<TokenId>(ids), std::istream_iterator<TokenId>());
  }
  return expected;
}

std::vector<std::vector<TokenId>> ExpectedIds(const std::string& name) {
  return ReadIds(fmt::format("ggml-vocab-{}.gguf.out", name));
}

std::string RandomText(Rng& rng) {
  // Where scripts, blanks, marks, emoji and the edges of UTF-8's lengths lie.
  constexpr struct {
    char32_t first, last;
  } kRanges[] = {{0x01, 0x7F},     {0x20, 0x7E},    {0x20, 0x20},       {0x09, 0x0D},
                 {0x80, 0x7FF},    {0x300, 0x36F},  {0x4E00, 0x9FFF},   {0x2000, 0x206F},
                 {0xE000, 0xFFFF}, {0x800, 0xD7FF}, {0x1F300, 0x1F6FF}, {0x10000, 0x10FFFF},
                 {'a', 'z'},       {'0', '9'},      {0x3040, 0x30FF},   {0xAC00, 0xD7A3}};
  std::string text;
  for (std::uint64_t left = rng.Below(60); left > 0; --left) {
    const auto& range = kRanges[rng.Below(std::size(kRanges))];
    AppendUtf8(range.first + static_cast<char32_t>(rng.Below(range.last - range.first + 1)), text);
  }
  return text;
}

std::set<char> BytesWithoutToken(const Vocab& vocab) {
  std::set<char> missing;
  for (int b = 0; b < 256; ++b) {
    const auto byte = static_cast<std::uint8_t>(b);
    if (std::count(vocab.tokens.begin(), vocab.tokens.end(), CharacterOfByte(byte)) == 0) {
      missing.insert(static_cast<char>(byte));
    }
  }
  return missing;
}

class Vectors : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    auto tokenizer = LoadTestTokenizer(GetParam());
    ASSERT_TRUE(tokenizer.ok()) << tokenizer.status().ToString();
    tokenizer_ = std::move(tokenizer).value();
  }
  std::unique_ptr<Tokenizer> tokenizer_;
};

TEST_P(Vectors, EveryTextGivesTheExpectedIds) {
  const auto texts = TestTexts();
  const auto expected = ExpectedIds(GetParam());
  ASSERT_EQ(texts.size(), kTexts);
  ASSERT_EQ(expected.size(), kTexts);
  for (std::size_t i = 0; i < kTexts; ++i) {
    const auto ids = tokenizer_->Encode(texts[i], {.add_special = false});
    ASSERT_TRUE(ids.ok()) << ids.status().ToString();
    EXPECT_EQ(*ids, expected[i]) << "text " << i << ": " << texts[i];
  }
}

// Where a pre-tokenizer's own vocabulary is not here: GPT-2's, cut as it cuts.
TEST(PreTokenizerVectors, EveryTextGivesTheIdsThatLlamaCppGives) {
  const auto texts = TestTexts();
  for (const char* name : {"gpt-4o", "glm4", "lfm2"}) {
    const auto tokenizer = LoadTestTokenizer("gpt-2", name).value();
    const auto expected = ReadIds(fmt::format("gpt-2-as-{}.out", name));
    ASSERT_EQ(expected.size(), kTexts);
    EXPECT_NE(expected, ExpectedIds("gpt-2"));
    for (std::size_t i = 0; i < kTexts; ++i) {
      const auto ids = tokenizer->Encode(texts[i], {.add_special = false}).value();
      EXPECT_EQ(ids, expected[i]) << name << ", text " << i << ": " << texts[i];
    }
  }
}

// LLaMA's pieces with all merges that make one, in the order of ids, and line ends that are tokens:
// what bench/record_pre_tokenizers asked llama.cpp with.
Vocab RankedPieces() {
  Vocab vocab = LoadTestVocab("llama-spm").value();
  vocab.model = TokenizerModel::kRankedPieces;
  vocab.add_space_prefix = false;
  std::set<std::string_view> normal;
  for (std::size_t i = 0; i < vocab.tokens.size(); ++i) {
    if (vocab.types[i] == TokenType::kNormal) normal.insert(vocab.tokens[i]);
  }
  for (std::size_t i = 0; i < vocab.tokens.size(); ++i) {
    const std::string_view token = vocab.tokens[i];
    if (vocab.types[i] != TokenType::kNormal) continue;
    for (std::size_t cut = ReadUtf8(token).length; cut < token.size();
         cut += ReadUtf8(token.substr(cut)).length) {
      const std::string_view left = token.substr(0, cut), right = token.substr(cut);
      if (!normal.contains(left) || !normal.contains(right)) continue;
      vocab.merges.push_back(fmt::format("{} {}", left, right));
    }
  }
  for (const char* ends : {"\n", "\n\n"}) {
    vocab.tokens.emplace_back(ends);
    vocab.types.push_back(TokenType::kNormal);
    vocab.scores.push_back(0);
  }
  return vocab;
}

TEST(PreTokenizerVectors, RankedPiecesGiveTheIdsThatLlamaCppGives) {
  const auto texts = TestTexts();
  const auto tokenizer = MakeTokenizer(RankedPieces()).value();
  const auto expected = ReadIds("llama-spm-as-gemma4.out");
  ASSERT_EQ(expected.size(), kTexts);
  for (std::size_t i = 0; i < kTexts; ++i) {
    const auto ids = tokenizer->Encode(texts[i], {.add_special = false}).value();
    EXPECT_EQ(ids, expected[i]) << "text " << i << ": " << texts[i];
    EXPECT_EQ(tokenizer->Decode(ids).value(), texts[i]);
  }
}

TEST_P(Vectors, EveryTextComesBackFromItsIds) {
  for (const std::string& text : TestTexts()) {
    const auto ids = tokenizer_->Encode(text).value();
    EXPECT_EQ(tokenizer_->Decode(ids).value(), text);
  }
}

// Except what a vocabulary cannot write: under SentencePiece U+2581, which is its blank, under
// byte-level BPE a byte that has no token.
TEST_P(Vectors, RandomTextComesBackWholeAndInPieces) {
  Rng rng(TestSeed());
  const bool is_sentence_piece = tokenizer_->vocab().model == TokenizerModel::kSentencePiece;
  const std::set<char> missing =
      is_sentence_piece ? std::set<char>() : BytesWithoutToken(tokenizer_->vocab());
  for (int done = 0; done < 2000;) {
    const std::string text = RandomText(rng);
    if (is_sentence_piece && text.find("\u2581") != std::string::npos) continue;
    if (std::any_of(text.begin(), text.end(), [&](char c) { return missing.contains(c); }))
      continue;
    ++done;
    const auto ids = tokenizer_->Encode(text, {.add_special = rng.Below(2) == 0}).value();
    ASSERT_EQ(tokenizer_->Decode(ids).value(), text);
    StreamDecoder decoder(*tokenizer_, {.at_start = true});
    std::string streamed;
    for (const TokenId id : ids) {
      streamed += decoder.Push(id);
      ASSERT_FALSE(FindInvalidUtf8(streamed).has_value()) << text;
    }
    streamed += decoder.Flush();
    ASSERT_EQ(streamed, text);
  }
}

TEST_P(Vectors, ControlTokensAreFoundOnRequestAlone) {
  const TokenId end = *tokenizer_->vocab().eos;
  const std::string name(tokenizer_->TokenBytes(end));
  const auto parsed = tokenizer_->Encode("a" + name + "b", {.parse_special = true}).value();
  EXPECT_EQ(std::count(parsed.begin(), parsed.end(), end), 1);
  const auto plain = tokenizer_->Encode("a" + name + "b").value();
  EXPECT_EQ(std::count(plain.begin(), plain.end(), end), 0);
  EXPECT_EQ(tokenizer_->Decode(plain).value(), "a" + name + "b");
  EXPECT_TRUE(tokenizer_->IsEndOfGeneration(end));
}

INSTANTIATE_TEST_SUITE_P(Vocabularies, Vectors,
                         testing::Values("llama-spm", "phi-3", "deepseek-llm", "deepseek-coder",
                                         "gpt-2", "falcon", "starcoder", "refact", "mpt"),
                         [](const auto& param) {
                           std::string name = param.param;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

// The rule of Qwen3.5 with the tokens of another model, as llama.cpp applies it.
TEST(Qwen35Rule, CutsWordsAsLlamaCppDoes) {
  Vocab vocab = LoadTestVocab("starcoder").value();
  vocab.pre = "qwen35";
  const auto tokenizer = MakeTokenizer(std::move(vocab)).value();
  const auto texts = TestTexts();
  const auto expected = ReadIds("starcoder-as-qwen35.out");
  ASSERT_EQ(expected.size(), kTexts);
  EXPECT_NE(expected, ExpectedIds("starcoder"));
  for (std::size_t i = 0; i < kTexts; ++i) {
    EXPECT_EQ(tokenizer->Encode(texts[i], {.add_special = false}).value(), expected[i])
        << "text " << i << ": " << texts[i];
  }
}

TEST(Llama2Vocabulary, GivesTheIdsThatLlama2cExpects) {
  const auto tokenizer = LoadTestTokenizer("llama-spm").value();
  const std::string file = "tokenizers/llama-spm.llama2c_prompts.json";
  const Json cases = ParseJson(file, ReadTestFile(file).value()).value();
  ASSERT_EQ(cases.size(), 5u);
  for (const Json& entry : cases.items()) {
    const std::string& text = entry.Find("text")->AsString();
    std::vector<TokenId> ids;
    for (const Json& id : entry.Find("ids_with_bos")->items()) {
      ids.push_back(static_cast<TokenId>(id.AsCount()));
    }
    EXPECT_EQ(tokenizer->Encode(text).value(), ids) << text;
  }
}

TEST(VocabularyLoader, ReadsWhatTheFileSays) {
  const Vocab vocab = LoadTestVocab("deepseek-llm").value();
  EXPECT_EQ(vocab.model, TokenizerModel::kByteLevelBpe);
  EXPECT_EQ(vocab.pre, "deepseek-llm");
  EXPECT_EQ(vocab.tokens.size(), 102400u);
  EXPECT_EQ(vocab.merges.size(), 99757u);
  EXPECT_EQ(vocab.bos, 100000);
  EXPECT_EQ(vocab.eos, 100001);
  EXPECT_EQ(vocab.pad, 100001);
  EXPECT_EQ(vocab.unk, std::nullopt);
  EXPECT_TRUE(vocab.add_bos);
  EXPECT_FALSE(vocab.add_space_prefix);
  EXPECT_EQ(vocab.TypeOf(100000), TokenType::kControl);
}

}  // namespace
}  // namespace troupe
