#include "runtime/kept_prefixes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <optional>

#include "forge/synth.h"
#include "runtime/engine_runner.h"
#include "testing/temp_folder.h"

namespace troupe {
namespace {

using testing::EndsWith;
using testing::HasSubstr;

constexpr const char* kKeptFrom = TROUPE_SOURCE_DIR "/models/tiny-qwen2moe-q8_0.gguf";
constexpr const char* kOtherModel = TROUPE_SOURCE_DIR "/models/small-qwen2moe-q8_0.gguf";

// Through the runner, which has one of its own. An engine stands for a program.
class KeptPrefixesTest : public testing::Test {
 protected:
  static constexpr std::size_t kRead = 600;  // more than two pages

  static std::unique_ptr<Engine> Open(const std::string& path = kKeptFrom,
                                      KvType type = KvType::kF16) {
    EngineOptions options{.threads = 2, .context = 1024, .kv_type = type, .chunk = 8};
    options.sequences = 2;
    options.fingerprint = true;
    return Engine::Open(path, options).value();
  }
  static std::vector<TokenId> Text(std::size_t length) {
    std::vector<TokenId> text(length);
    for (std::size_t i = 0; i < length; ++i) text[i] = static_cast<TokenId>(7 * i % 200 + 50);
    return text;
  }
  // Reads the text, from what it finds on; gives how much that was, and the last token's logits.
  static std::pair<std::size_t, std::vector<float>> Read(EngineRunner& runner,
                                                         std::size_t length = kRead) {
    const std::vector<TokenId> text = Text(length);
    const ReservedSequence reserved = runner.Reserve({text, text.size(), true}).value();
    for (std::size_t at = reserved.cached; at < text.size(); at += 8) {
      const PassRows rows{
          .sequence = reserved.id,
          .request = 1,
          .tokens = std::span(text).subspan(at, std::min<std::size_t>(8, length - at)),
          .phase = Phase::kPrompt,
          .exact = true,
          .wants_logits = true};
      EXPECT_TRUE(runner.Run({&rows, 1}).ok());
    }
    const std::span<const float> logits = runner.Logits(reserved.id);
    std::pair result(reserved.cached, std::vector<float>(logits.begin(), logits.end()));
    runner.Release(reserved.id);
    return result;
  }

  const TempFolder folder_;
  const std::string path_ = folder_.PathOf("prefixes");
};

TEST_F(KeptPrefixesTest, WhatOneProgramHasReadTheNextFindsWithTheSameLogits) {
  std::vector<float> expected;
  {
    const auto engine = Open();
    EngineRunner runner(*engine);
    expected = Read(runner).second;
    ASSERT_TRUE(runner.SavePrefixes(path_).ok());
  }
  const auto engine = Open();
  EngineRunner runner(*engine);
  EXPECT_EQ(runner.LoadPrefixes(path_)->pages, 3u);
  const auto [cached, logits] = Read(runner);
  EXPECT_EQ(cached, kRead - 1);
  EXPECT_EQ(logits, expected);
}

TEST_F(KeptPrefixesTest, KeysAndValuesThatWouldBeComputedOtherwiseAreNotUsed) {
  const auto engine = Open();
  {
    EngineRunner runner(*engine);
    Read(runner);
    ASSERT_TRUE(runner.SavePrefixes(path_).ok());
  }
  const GgufModel file = GgufModel::Open(kKeptFrom).value();
  const ModelFingerprint model = FingerprintModel(file).value();
  const std::size_t pages = EngineRunner(*engine).LoadPrefixes(path_)->pages;
  ASSERT_GT(pages, 1u);
  // The same file as another arithmetic would have written it: at its beginning, or far behind.
  for (const std::size_t changed : {std::size_t{0}, pages - 1}) {
    ASSERT_TRUE(engine->kv().free_positions() > 0);
    const std::string path = folder_.PathOf("changed");
    {
      PrefixCache cache(engine->kv());
      KeptStates states;
      ASSERT_TRUE(ReadPrefixes(path_, model, {cache, states, engine->kv()}).ok());
      const KvLayout& layout = engine->kv().LayoutOf(0);
      engine->kv().BytesOf(*cache.All()[changed].page)[layout.KeyTileOffset(0, 0)] ^= std::byte{1};
      ASSERT_TRUE(WritePrefixes(path, model, {cache, states, engine->kv()}).ok());
    }
    EngineRunner runner(*engine);
    EXPECT_EQ(runner.LoadPrefixes(path).status().code(), Code::kFailedPrecondition);
    EXPECT_EQ(Read(runner).first, 0u);
  }
}

// Of models whose sequences have a state besides keys and values.
class KeptPrefixesWithStates : public KeptPrefixesTest,
                               public testing::WithParamInterface<const char*> {
 protected:
  void SetUp() override {
    SynthOptions options;
    options.layout.mix.type = TensorType::kQ8_0;
    ASSERT_TRUE(Synthesize(*FindShape(GetParam()), options, model_).ok());
  }

  const std::string model_ = folder_.PathOf("model.gguf");
};

TEST_P(KeptPrefixesWithStates, WhatOneProgramHasReadTheNextFindsWithTheSameLogits) {
  std::vector<float> expected;
  {
    const auto engine = Open(model_);
    EngineRunner runner(*engine);
    expected = Read(runner).second;
    const auto [cached, logits] = Read(runner);
    EXPECT_EQ(logits, expected);
    ASSERT_EQ(cached, kRead - 16);  // where a state is left before a prompt ends
    ASSERT_TRUE(runner.SavePrefixes(path_).ok());
  }
  const auto engine = Open(model_);
  EngineRunner runner(*engine);
  const Result<PrefixFileReport> report = runner.LoadPrefixes(path_);
  ASSERT_TRUE(report.ok()) << report.status().message();
  EXPECT_EQ(report->pages, 3u);
  EXPECT_EQ(report->states, 2u);
  const auto [cached, logits] = Read(runner);
  EXPECT_EQ(cached, kRead - 16);
  EXPECT_EQ(logits, expected);
}

TEST_P(KeptPrefixesWithStates, AStateThatWouldBeComputedOtherwiseIsNotUsed) {
  const auto engine = Open(model_);
  {
    EngineRunner runner(*engine);
    Read(runner);
    ASSERT_TRUE(runner.SavePrefixes(path_).ok());
  }
  const std::string path = folder_.PathOf("changed");
  {
    PrefixCache cache(engine->kv());
    KeptStates states;
    const KeptTexts texts{cache, states, engine->kv()};
    ASSERT_TRUE(ReadPrefixes(path_, *engine->fingerprint(), texts).ok());
    engine->kv().states()->BytesOf(*states.All().back().state)[0] ^= std::byte{1};
    ASSERT_TRUE(WritePrefixes(path, *engine->fingerprint(), texts).ok());
  }
  EngineRunner runner(*engine);
  const Status status = runner.LoadPrefixes(path).status();
  EXPECT_EQ(status.code(), Code::kFailedPrecondition);
  EXPECT_THAT(status.message(), HasSubstr("state after 600 tokens"));
  EXPECT_EQ(runner.kept_states().size(), 0u);
  EXPECT_EQ(Read(runner).first, 0u);
}

TEST_P(KeptPrefixesWithStates, StatesThatFindNoPlaceAreLeftOutTheOldestFirst) {
  {
    EngineOptions options{.threads = 2, .context = 1024, .chunk = 8};
    options.sequences = 4;
    options.fingerprint = true;
    const auto engine = Engine::Open(model_, options).value();
    EngineRunner runner(*engine);
    for (const std::size_t length : {600, 500, 400, 300}) Read(runner, length);
    EXPECT_GT(runner.kept_states().size(), 4u);
    ASSERT_TRUE(runner.SavePrefixes(path_).ok());
  }
  const auto engine = Open(model_);  // with two sequences' places
  EngineRunner runner(*engine);
  const Result<PrefixFileReport> report = runner.LoadPrefixes(path_);
  ASSERT_TRUE(report.ok()) << report.status().message();
  EXPECT_GT(report->states, 0u);
  EXPECT_LT(report->states, 5u);
  EXPECT_GT(Read(runner, 300).first, 0u);
}

INSTANTIATE_TEST_SUITE_P(Shapes, KeptPrefixesWithStates,
                         testing::Values("tiny-qwen35moe", "tiny-lfm2moe", "tiny-granitehybrid",
                                         "tiny-nemotron_h_moe"),
                         [](const auto& test) {
                           std::string name = test.param;
                           std::erase(name, '-');
                           return name;
                         });

TEST_F(KeptPrefixesTest, TheFingerprintIsThatOfTheModelThatWasOpened) {
  const std::string model = folder_.PathOf("model.gguf"), next = folder_.PathOf("next.gguf");
  std::filesystem::copy_file(kKeptFrom, model);
  const auto engine = Open(model);
  std::filesystem::copy_file(kOtherModel, next);
  std::filesystem::rename(next, model);
  EngineRunner runner(*engine);
  Read(runner, 40);
  ASSERT_TRUE(runner.SavePrefixes(path_).ok());
  const auto original = Open(kKeptFrom), replaced = Open(model);
  EXPECT_EQ(EngineRunner(*replaced).LoadPrefixes(path_).status().code(), Code::kAlreadyExists);
  EXPECT_EQ(EngineRunner(*original).LoadPrefixes(path_)->pages, 1u);
}

TEST_F(KeptPrefixesTest, AFileIsWrittenOnlyIfItWouldHoldSomethingElse) {
  const auto engine = Open();
  std::optional<FileIdentity> written;
  {
    EngineRunner runner(*engine);
    ASSERT_TRUE(runner.SavePrefixes(path_).ok());
    EXPECT_EQ(IdentityOf(path_), std::nullopt) << "nothing to keep";
    Read(runner, 40);
    ASSERT_TRUE(runner.SavePrefixes(path_).ok());
    written = IdentityOf(path_);
    ASSERT_TRUE(written.has_value());
    ASSERT_TRUE(runner.SavePrefixes(path_).ok());
    EXPECT_EQ(IdentityOf(path_), written) << "nothing new since it was written";
  }
  EngineRunner runner(*engine);
  ASSERT_TRUE(runner.LoadPrefixes(path_).ok());
  EXPECT_EQ(Read(runner, 40).first, 39u);
  ASSERT_TRUE(runner.SavePrefixes(path_).ok());
  EXPECT_EQ(IdentityOf(path_), written) << "nothing new since it was read";
  Read(runner, 50);
  ASSERT_TRUE(runner.SavePrefixes(path_).ok());
  EXPECT_NE(IdentityOf(path_), written);
  std::filesystem::remove(path_);
  ASSERT_TRUE(runner.SavePrefixes(path_).ok());
  EXPECT_NE(IdentityOf(path_), std::nullopt) << "it was removed";
}

TEST_F(KeptPrefixesTest, AServerThatKeepsNothingLeavesTheFileAlone) {
  const auto engine = Open();
  folder_.Write("prefixes", std::string("TRPREFIX") + std::string(90, '\0'));
  const auto before = IdentityOf(path_);
  EngineRunner runner(*engine);
  EXPECT_FALSE(runner.LoadPrefixes(path_).ok());
  ASSERT_TRUE(runner.SavePrefixes(path_).ok());
  EXPECT_EQ(IdentityOf(path_), before);
}

TEST_F(KeptPrefixesTest, OfTwoServersWithOneFileNeitherOverwritesTheOthers) {
  const auto one = Open(), two = Open();
  EngineRunner first(*one), second(*two);
  EXPECT_EQ(first.LoadPrefixes(path_).status().code(), Code::kNotFound);
  EXPECT_EQ(second.LoadPrefixes(path_).status().code(), Code::kNotFound);
  Read(first, 40);
  Read(second, 50);
  ASSERT_TRUE(first.SavePrefixes(path_).ok());
  const auto written = IdentityOf(path_);
  const Status refused = second.SavePrefixes(path_);
  EXPECT_EQ(refused.code(), Code::kAlreadyExists);
  EXPECT_THAT(refused.message(), HasSubstr("it stays as it is"));
  EXPECT_EQ(IdentityOf(path_), written);
  Read(first, 60);
  EXPECT_TRUE(first.SavePrefixes(path_).ok()) << "its own it may replace";
}

TEST_F(KeptPrefixesTest, AFileOfAnotherModelOrOfNoneIsLeftAlone) {
  const auto engine = Open();
  {
    PrefixCache cache(engine->kv());
    KeptStates states;
    ASSERT_TRUE(WritePrefixes(path_, {{7, 8}}, {cache, states, engine->kv()}).ok());
  }
  const std::string notes = folder_.Write("notes", std::string(500, 'n'));
  for (const std::string& path : {path_, notes}) {
    const auto before = IdentityOf(path);
    EngineRunner runner(*engine);
    const Status refused = runner.LoadPrefixes(path).status();
    EXPECT_EQ(refused.code(), Code::kAlreadyExists);
    EXPECT_THAT(refused.message(), HasSubstr("name a folder"));
    Read(runner, 40);
    EXPECT_EQ(runner.SavePrefixes(path).code(), Code::kAlreadyExists);
    EXPECT_EQ(IdentityOf(path), before);
  }
}

TEST_F(KeptPrefixesTest, AFileThatIsOfNoUseIsReplaced) {
  const auto engine = Open();
  for (const char* useless : {"TRPREFIX", ""}) {
    folder_.Write("prefixes", useless);
    {
      EngineRunner runner(*engine);
      EXPECT_EQ(runner.LoadPrefixes(path_).status().code(), Code::kDataLoss);
      Read(runner, 40);
      EXPECT_TRUE(runner.SavePrefixes(path_).ok());
    }
    EXPECT_EQ(EngineRunner(*engine).LoadPrefixes(path_)->pages, 1u);
  }
}

TEST_F(KeptPrefixesTest, InAFolderEachModelAndTypeHasAFileOfItsOwn) {
  const std::string folder = folder_.path().string();
  const auto engine = Open(), other = Open(kOtherModel), small = Open(kKeptFrom, KvType::kQ8_0);
  for (Engine* const opened : {engine.get(), other.get(), small.get()}) {
    EngineRunner runner(*opened);
    EXPECT_EQ(runner.LoadPrefixes(folder).status().code(), Code::kNotFound);
    Read(runner, 40);
    ASSERT_TRUE(runner.SavePrefixes(folder).ok());
  }
  EXPECT_EQ(folder_.Count(), 3u);
  for (Engine* const opened : {engine.get(), other.get(), small.get()}) {
    EngineRunner runner(*opened);
    const PrefixFileReport report = runner.LoadPrefixes(folder).value();
    EXPECT_EQ(report.pages, 1u);
    EXPECT_THAT(report.path, HasSubstr(ToString(*opened->fingerprint())));
    EXPECT_THAT(report.path, EndsWith(opened == small.get() ? "-q8_0.prefixes" : "-f16.prefixes"));
  }
}

TEST_F(KeptPrefixesTest, WhatIsBrokenOffChangesNothing) {
  const auto engine = Open();
  const MayGoOn enough = []() -> Status { return Status(Code::kCancelled, "enough"); };
  {
    EngineRunner runner(*engine);
    Read(runner, 40);
    EXPECT_EQ(runner.SavePrefixes(path_, enough).code(), Code::kCancelled);
    EXPECT_EQ(folder_.Count(), 0u);
    ASSERT_TRUE(runner.SavePrefixes(path_).ok());
  }
  EngineRunner runner(*engine);
  EXPECT_EQ(runner.LoadPrefixes(path_, enough).status().code(), Code::kCancelled);
  EXPECT_EQ(Read(runner, 40).first, 0u);
}

TEST_F(KeptPrefixesTest, WithoutAFingerprintNothingIsKept) {
  EngineOptions options{.threads = 2, .context = 96};
  const auto engine = Engine::Open(kKeptFrom, options).value();
  EngineRunner runner(*engine);
  EXPECT_EQ(runner.LoadPrefixes(path_).status().code(), Code::kFailedPrecondition);
  EXPECT_EQ(runner.SavePrefixes(path_).code(), Code::kFailedPrecondition);
}

}  // namespace
}  // namespace troupe
