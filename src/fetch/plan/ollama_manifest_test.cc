#include "fetch/plan/ollama_manifest.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace troupe {
namespace {

using ::testing::HasSubstr;

const ModelName kOlmoe = {ModelName::Place::kOllama, "library", "olmoe", "7b"};
const std::string kDigest(64, 'b');

std::string Manifest(const std::string& digest, const std::string& size) {
  return R"({"schemaVersion":2,"config":{"digest":"sha256:00","size":3},"layers":[
      {"mediaType":"application/vnd.ollama.image.template","digest":"sha256:11","size":4},
      {"mediaType":"application/vnd.ollama.image.model","digest":")" +
         digest + R"(","size":)" + size + "}]}";
}

TEST(OllamaManifest, NamesTheModelsLayer) {
  const Result<OllamaModel> model = ReadOllamaManifest(kOlmoe, Manifest("sha256:" + kDigest, "42"));
  ASSERT_TRUE(model.ok()) << model.status().message();
  EXPECT_EQ(model->bytes, 42u);
  EXPECT_EQ(model->sha256, kDigest);
}

TEST(OllamaManifest, WithoutOneGoodLayerIsRefused) {
  EXPECT_FALSE(ReadOllamaManifest(kOlmoe, "<html>").ok());
  EXPECT_FALSE(ReadOllamaManifest(kOlmoe, Manifest("md5:" + kDigest, "42")).ok());
  EXPECT_FALSE(ReadOllamaManifest(kOlmoe, Manifest("sha256:../../x", "42")).ok());
  EXPECT_FALSE(ReadOllamaManifest(kOlmoe, Manifest("sha256:" + kDigest, "-1")).ok());
  EXPECT_FALSE(ReadOllamaManifest(kOlmoe, Manifest("sha256:" + kDigest, "1e30")).ok());
  EXPECT_THAT(ReadOllamaManifest(kOlmoe, R"({"layers":[]})").status().message(),
              HasSubstr("0 GGUF layers"));
}

TEST(OllamaManifest, AndBlobsHaveTheAddressesOfARegistry) {
  EXPECT_EQ(ManifestAddress("https://r", kOlmoe), "https://r/v2/library/olmoe/manifests/7b");
  EXPECT_EQ(BlobAddress("https://r", kOlmoe, kDigest),
            "https://r/v2/library/olmoe/blobs/sha256:" + kDigest);
}

}  // namespace
}  // namespace troupe
