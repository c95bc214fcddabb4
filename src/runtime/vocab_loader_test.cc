#include "runtime/vocab_loader.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

namespace troupe {
namespace {

Metadata Minimal(std::string model) {
  Metadata metadata("m.gguf");
  metadata.Set("tokenizer.ggml.model", std::move(model));
  metadata.Set("tokenizer.ggml.tokens", Array{StringArray{"<unk>", "<s>", "</s>", "a"}});
  return metadata;
}

TEST(VocabLoader, GivesSentencePieceItsUsualIdsAndHabits) {
  const Vocab vocab = LoadVocab(Minimal("llama")).value();
  EXPECT_EQ(vocab.model, TokenizerModel::kSentencePiece);
  EXPECT_EQ(vocab.unk, 0);
  EXPECT_EQ(vocab.bos, 1);
  EXPECT_EQ(vocab.eos, 2);
  EXPECT_EQ(vocab.pad, std::nullopt);
  EXPECT_TRUE(vocab.add_bos);
  EXPECT_TRUE(vocab.add_space_prefix);
  EXPECT_FALSE(vocab.add_eos);
}

TEST(VocabLoader, GivesByteLevelBpeWhatItsPreTokenizerImplies) {
  Metadata metadata = Minimal("gpt2");
  EXPECT_EQ(LoadVocab(metadata).value().bos, std::nullopt);
  EXPECT_FALSE(LoadVocab(metadata).value().add_space_prefix);
  metadata.Set("tokenizer.ggml.bos_token_id", std::uint32_t{1});
  metadata.Set("tokenizer.ggml.pre", "qwen2");
  EXPECT_FALSE(LoadVocab(metadata).value().add_bos);
  metadata.Set("tokenizer.ggml.pre", "llama-bpe");
  EXPECT_TRUE(LoadVocab(metadata).value().add_bos);
  metadata.Set("tokenizer.ggml.add_bos_token", false);
  EXPECT_FALSE(LoadVocab(metadata).value().add_bos);
}

TEST(VocabLoader, ReadsTypesAndTakesUndefinedForNormal) {
  Metadata metadata = Minimal("llama");
  metadata.Set("tokenizer.ggml.token_type", Array{std::vector<std::int32_t>{2, 3, 3, 0}});
  const Vocab vocab = LoadVocab(metadata).value();
  EXPECT_EQ(vocab.TypeOf(0), TokenType::kUnknown);
  EXPECT_EQ(vocab.TypeOf(3), TokenType::kNormal);
}

TEST(VocabLoader, ReadsWhatAUnigramTokenizerDoesToATextAndWhatADecoderBeginsWith) {
  Metadata metadata = Minimal("t5");
  Vocab vocab = LoadVocab(metadata).value();
  EXPECT_EQ(vocab.model, TokenizerModel::kUnigram);
  EXPECT_EQ(vocab.bos, std::nullopt);
  EXPECT_EQ(vocab.decoder_start, std::nullopt);
  EXPECT_TRUE(vocab.add_space_prefix);
  EXPECT_TRUE(vocab.removes_blanks);
  metadata.Set("general.architecture", "switch");
  metadata.Set("switch.decoder_start_token_id", std::uint32_t{2});
  metadata.Set("tokenizer.ggml.remove_extra_whitespaces", false);
  metadata.Set("tokenizer.ggml.precompiled_charsmap",
               Array{std::vector<std::uint8_t>{4, 0, 0, 0, 255}});
  vocab = LoadVocab(metadata).value();
  EXPECT_EQ(vocab.decoder_start, 2);
  EXPECT_FALSE(vocab.removes_blanks);
  EXPECT_EQ(vocab.character_map, std::string("\4\0\0\0\xFF", 5));
}

TEST(VocabLoader, ReadsTheMarksAroundAGap) {
  Metadata metadata = Minimal("gpt2");
  EXPECT_EQ(LoadVocab(metadata).value().fill_before, std::nullopt);
  metadata.Set("tokenizer.ggml.fim_pre_token_id", std::uint32_t{1});
  metadata.Set("tokenizer.ggml.fim_suf_token_id", std::uint32_t{2});
  metadata.Set("tokenizer.ggml.fim_mid_token_id", std::uint32_t{3});
  const Vocab vocab = LoadVocab(metadata).value();
  EXPECT_EQ(vocab.fill_before, 1);
  EXPECT_EQ(vocab.fill_after, 2);
  EXPECT_EQ(vocab.fill_middle, 3);
}

TEST(VocabLoader, ErrorsNameTheKeyAndWhatItMayBe) {
  const auto message = [](std::string_view key, Value value) {
    Metadata metadata = Minimal("llama");
    metadata.Set(std::string(key), std::move(value));
    const auto vocab = LoadVocab(metadata, "m.gguf");
    return vocab.ok() ? "no error" : vocab.status().message();
  };
  EXPECT_EQ(message("tokenizer.ggml.model", "bert"),
            "m.gguf: tokenizer.ggml.model is 'bert', expected llama, gpt2, gemma4 or t5");
  EXPECT_EQ(message("tokenizer.ggml.eos_token_id", std::uint32_t{4}),
            "m.gguf: tokenizer.ggml.eos_token_id is 4, but there are 4 tokens");
  EXPECT_EQ(message("tokenizer.ggml.token_type", Array{std::vector<std::int32_t>{1, 7}}),
            "m.gguf: tokenizer.ggml.token_type[1] is 7, expected 0 to 6");
}

TEST(VocabLoader, AFileWithoutATokenizerIsAnError) {
  const auto vocab = LoadVocab(Metadata("m.gguf"));
  ASSERT_FALSE(vocab.ok());
  EXPECT_EQ(vocab.status().code(), Code::kNotFound);
}

}  // namespace
}  // namespace troupe
