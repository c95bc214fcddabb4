#include "troupe/serve_models.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fmt/format.h>

#include <cstdint>
#include <cstdlib>
#include <filesystem>

#include "base/sanitized.h"
#include "cluster/face/certificates.h"
#include "gguf/reader.h"
#include "gguf/writer.h"
#include "machine/process_memory.h"
#include "testing/temp_folder.h"

namespace troupe {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
constexpr const char* kServed = TROUPE_SOURCE_DIR "/models/tiny-qwen2moe-q8_0.gguf";

class ServeModelsTest : public testing::Test {
 protected:
  void SetUp() override {
    if (kSanitized) GTEST_SKIP() << "a sanitizer keeps what was freed, which the next model lacks";
  }
  static std::unique_ptr<ServeFlags> Flags(const std::string& model, Bytes memory) {
    return ServeFlags::Read({model, "--ctx", "128", "--threads", "2", "--parallel", "2", "--memory",
                             fmt::format("{}", memory.count())})
        .value();
  }
  // With which every expert is in memory, and nothing is left for a second model.
  static Bytes Enough() {
    ServeModels models([] { return true; });
    ServedModel served = models.Open(*Flags(kServed, 4_GiB)).value();
    const Bytes all = served.model->plan().total;
    models.Close(served);
    return all + 3_MiB;
  }

  static std::unique_ptr<ServeFlags> FlagsWithPrefixes(const std::string& prefixes) {
    return ServeFlags::Read({kServed, "--ctx", "128", "--threads", "1", "--memory", "1GiB",
                             "--prefix-file", prefixes})
        .value();
  }
  static void Answer(ServedModel& served) {
    Request request{.prompt = "The kernel", .max_tokens = 8};
    ASSERT_TRUE(served.model->Start(std::move(request))->Wait().ok());
  }

  const TempFolder folder_;
  ServeModels models_{[] { return true; }};
};

TEST_F(ServeModelsTest, TheNextModelHasTheMemoryOfTheOneBefore) {
  const auto flags = Flags(kServed, Enough());
  ServedModel served = models_.Open(*flags).value();
  const Plan first = served.model->plan();
  EXPECT_EQ(first.experts_in_memory, first.experts_in_all);
  EXPECT_TRUE(models_.Check(*flags).ok());
  for (int round = 0; round < 3; ++round) {
    models_.Close(served);
    EXPECT_EQ(served.model, nullptr);
    served = models_.Open(*flags).value();
    EXPECT_EQ(served.model->plan().experts_in_memory, first.experts_in_all);
  }
  models_.Close(served);
}

TEST_F(ServeModelsTest, WhatCouldNotBeOpenedIsToldWhileTheOldModelIsOpen) {
  ServedModel served = models_.Open(*Flags(kServed, 1_GiB)).value();
  EXPECT_EQ(models_.Check(*Flags(kServed, 1_MiB)).code(), Code::kResourceExhausted);
  EXPECT_EQ(models_.Check(*Flags("/none.gguf", 1_GiB)).code(), Code::kNotFound);
  EXPECT_THAT(models_.Check(*Flags(__FILE__, 1_GiB)).message(), HasSubstr("serve_models_test.cc"));
  EXPECT_EQ(served.model->Tokenize("a").value().size() > 0, true);
  models_.Close(served);
}

TEST_F(ServeModelsTest, ANodesCertificateThatHasExpiredIsToldWhileTheOldModelIsOpen) {
  const auto with_certificate_for = [&](const std::string& host, std::uint32_t days) {
    EXPECT_TRUE(
        WriteCertificates({.folder = folder_.PathOf("."), .hosts = {host}, .days = days}).ok());
    return ServeFlags::Read({kServed, "--ctx", "128", "--threads", "2", "--memory", "1GiB",
                             "--peers", "127.0.0.1:7070", "--peer-authority",
                             folder_.PathOf("authority.pem"), "--peer-certificate",
                             folder_.PathOf(host + ".pem"), "--peer-key",
                             folder_.PathOf(host + ".key")})
        .value();
  };
  ServedModel served = models_.Open(*Flags(kServed, 1_GiB)).value();
  EXPECT_TRUE(models_.Check(*with_certificate_for("valid", 20)).ok());
  const Status expired = models_.Check(*with_certificate_for("late", 0));
  EXPECT_EQ(expired.code(), Code::kFailedPrecondition);
  EXPECT_THAT(expired.message(), HasSubstr("late.pem has expired, on "));
  models_.Close(served);
}

TEST_F(ServeModelsTest, WhoSaysNoWhileAModelLoadsGetsNone) {
  int asked = 0;
  ServeModels models([&asked] {
    ++asked;
    return false;
  });
  EXPECT_EQ(models.Open(*Flags(kServed, 1_GiB)).status().code(), Code::kCancelled);
  EXPECT_EQ(asked, 1);
}

TEST_F(ServeModelsTest, AFileThatIsAnotherSinceItWasOpenedIsTold) {
  const std::string model = folder_.PathOf("m.gguf"), next = folder_.PathOf("next.gguf");
  std::filesystem::copy_file(kServed, model);
  const auto flags = Flags(model, 1_GiB);
  ServedModel served = models_.Open(*flags).value();
  EXPECT_THAT(models_.ChangedFiles(), IsEmpty());
  const std::string profile = folder_.Write("m.profile.json", "{}");
  EXPECT_THAT(models_.ChangedFiles(), ElementsAre(profile));
  std::filesystem::copy_file(kServed, next);
  std::filesystem::rename(next, model);
  EXPECT_THAT(models_.ChangedFiles(), ElementsAre(model, profile));
  models_.Close(served);
  served = models_.Open(*flags).value();
  EXPECT_THAT(models_.ChangedFiles(), IsEmpty());
  models_.Close(served);
}

// The tiny model with a header as large as that of a model with a large vocabulary.
std::string WithLargeHeader(const TempFolder& folder) {
  const GgufModel model = GgufModel::Open(kServed).value();
  Metadata metadata = model.metadata();
  std::vector<Array> rows;
  for (int row = 0; row < 100'000; ++row) rows.push_back({StringArray{"some text", "and more"}});
  metadata.Set("general.padding", Array{std::move(rows)});
  const std::vector<TensorSpec> specs(model.tensors().begin(), model.tensors().end());
  GgufWriter writer = GgufWriter::Create(folder.PathOf("large.gguf"), metadata, specs).value();
  for (const TensorInfo& tensor : model.tensors()) {
    std::vector<std::byte> bytes(tensor.bytes.count());
    EXPECT_TRUE(model.ReadTensor(tensor, bytes).ok());
    EXPECT_TRUE(writer.Append(tensor.name, bytes).ok());
  }
  EXPECT_TRUE(writer.Finish().ok());
  return folder.PathOf("large.gguf");
}

TEST_F(ServeModelsTest, LookingAtTheNextModelLeavesNothingOfItInMemory) {
  if (kSanitized) GTEST_SKIP() << "a sanitizer keeps what was freed";
  const auto next = Flags(WithLargeHeader(folder_), 1_GiB);
  ServedModel served = models_.Open(*Flags(kServed, 1_GiB)).value();
  // As the buffers of a large model do: from now on the allocator keeps what is freed.
  std::free(std::calloc(30 << 20, 1));
  const Bytes before = ResidentMemory();
  ASSERT_TRUE(models_.Check(*next).ok());
  EXPECT_LT(ResidentMemory(), before + 4_MiB) << "of a header that takes some 20 MiB";
  models_.Close(served);
}

TEST_F(ServeModelsTest, PrefixesAreKeptForTheNextModelUnlessTheServerMustEndAtOnce) {
  const std::string prefixes = folder_.PathOf("prefixes");
  const auto flags = FlagsWithPrefixes(prefixes);
  ServedModel served = models_.Open(*flags).value();
  Answer(served);
  models_.Close(served, [] { return false; });
  EXPECT_FALSE(std::filesystem::exists(prefixes));
  served = models_.Open(*flags).value();
  Answer(served);
  models_.Close(served);
  EXPECT_TRUE(std::filesystem::exists(prefixes));
}

TEST_F(ServeModelsTest, WhoSaysNoWhilePrefixesAreReadGetsNoModel) {
  const std::string prefixes = folder_.PathOf("prefixes");
  const auto flags = FlagsWithPrefixes(prefixes);
  int asked = 0, most = 1 << 20;
  ServeModels models([&] { return ++asked <= most; });
  ServedModel served = models.Open(*flags).value();
  const int without_prefixes = asked;
  Answer(served);
  models.Close(served);
  asked = 0;
  served = models.Open(*flags).value();
  EXPECT_GT(asked, without_prefixes);
  models.Close(served);
  asked = 0;
  most = without_prefixes;
  EXPECT_EQ(models.Open(*flags).status().code(), Code::kCancelled);
}

TEST_F(ServeModelsTest, AnEndThatWasToldToLoseQualityIsExactWhereTheCloudMayAnswerAndSaysSo) {
  const auto open = [&](const std::string& place) {
    const auto flags = ServeFlags::Read({kServed, "--ctx", "128", "--threads", "2", "--memory",
                                         "1GiB", "--slots", "10", "--substitute", "drop", "--cloud",
                                         "http://127.0.0.1:9", "--place", place, "--explain"})
                           .value();
    testing::internal::CaptureStderr();
    ServedModel served = models_.Open(*flags).value();
    const bool exact = served.quality && served.quality->text == "exact";
    models_.Close(served);
    return std::pair(exact, testing::internal::GetCapturedStderr());
  };
  const auto [drafts_lose, said] = open("auto");
  EXPECT_TRUE(drafts_lose);
  EXPECT_THAT(said, HasSubstr("note: answers are exact, as the cloud's are: only guesses for the "
                              "cloud lose quality"));
  EXPECT_THAT(said, HasSubstr("guesses for the cloud leave out missing experts; answers "
                              "leave out none"));
  EXPECT_THAT(said, Not(HasSubstr("not exact")));
  const auto [nothing_loses, said_of_cloud] = open("cloud");
  EXPECT_TRUE(nothing_loses);
  EXPECT_THAT(said_of_cloud, HasSubstr("nothing loses quality"));
  const auto [exact_alone, said_of_end] = open("end");
  EXPECT_FALSE(exact_alone);
  EXPECT_THAT(said_of_end, Not(HasSubstr("answers are exact")));
  EXPECT_THAT(said_of_end, HasSubstr("not exact: missing experts are answered by drop"));
}

TEST_F(ServeModelsTest, AnEndWhoseRowsCrossExactlyIsExactWhateverCodeItWasToldOf) {
  const auto quality = [&](const std::string& place) {
    const auto flags = ServeFlags::Read({kServed, "--ctx", "128", "--threads", "2", "--memory",
                                         "1GiB", "--slots", "10", "--cloud", "http://127.0.0.1:9",
                                         "--place", place, "--cut-code", "int8"})
                           .value();
    ServedModel served = models_.Open(*flags).value();
    const std::string text = served.quality ? served.quality->text : "";
    models_.Close(served);
    return text;
  };
  EXPECT_EQ(quality("layers:1"), "cut prompts (int8)");
  EXPECT_EQ(quality("layers:99"), "exact") << "the model has no such layer, so none is cut";
}

TEST_F(ServeModelsTest, ABodyMayBeAsLongAsAPromptThatFits) {
  ServedModel served = models_.Open(*Flags(kServed, 1_GiB)).value();
  EXPECT_EQ(served.options.name, "tiny-qwen2moe-q8_0");
  EXPECT_EQ(BodyBytes(served, std::nullopt), std::size_t{1} << 20);
  EXPECT_EQ(BodyBytes(served, 20_MiB), std::size_t{20} << 20);
  models_.Close(served);
}

}  // namespace
}  // namespace troupe
