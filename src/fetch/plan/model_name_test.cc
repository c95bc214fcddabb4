#include "fetch/plan/model_name.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace troupe {
namespace {

using ::testing::HasSubstr;

std::string Read(std::string_view text) {
  const Result<ModelName> name = ParseModelName(text);
  return name.ok() ? name->ToString() : name.status().message();
}

TEST(ModelName, OfTheHubHasAnOwnerARepositoryAndATypeOrFile) {
  EXPECT_EQ(Read("hf.co/owner/Repo-GGUF"), "hf.co/owner/Repo-GGUF");
  EXPECT_EQ(Read("hf.co/owner/Repo-GGUF:Q4_K_M"), "hf.co/owner/Repo-GGUF:Q4_K_M");
  EXPECT_EQ(Read("huggingface.co/owner/r:sub/m-Q8_0.gguf"), "hf.co/owner/r:sub/m-Q8_0.gguf");
  const ModelName name = *ParseModelName("hf.co/owner/r:Q8_0");
  EXPECT_EQ(name, (ModelName{ModelName::Place::kHub, "owner", "r", "Q8_0"}));
}

TEST(ModelName, MayBeTheAddressOfAPageOfTheHub) {
  EXPECT_EQ(Read("https://hf.co/owner/r"), "hf.co/owner/r");
  EXPECT_EQ(Read("https://huggingface.co/owner/r/"), "hf.co/owner/r");
  EXPECT_EQ(Read("https://huggingface.co/owner/r/tree/main"), "hf.co/owner/r");
  EXPECT_EQ(Read("https://huggingface.co/owner/r/blob/main/m-Q4_0.gguf"),
            "hf.co/owner/r:m-Q4_0.gguf");
  EXPECT_EQ(Read("https://huggingface.co/owner/r/resolve/main/a/m.gguf?download=true"),
            "hf.co/owner/r:a/m.gguf");
}

TEST(ModelName, OfOllamaHasATag) {
  EXPECT_EQ(Read("olmoe"), "ollama.com/library/olmoe:latest");
  EXPECT_EQ(Read("qwen3:30b-a3b"), "ollama.com/library/qwen3:30b-a3b");
  EXPECT_EQ(Read("ollama.com/library/qwen3:30b"), "ollama.com/library/qwen3:30b");
  EXPECT_EQ(Read("ollama.com/somebody/m"), "ollama.com/somebody/m:latest");
  EXPECT_EQ(Read("registry.ollama.ai/library/m:1"), "ollama.com/library/m:1");
}

TEST(ModelName, OfNoPlaceIsNotGuessed) {
  EXPECT_THAT(Read("owner/r:Q4_0"), HasSubstr("may be hf.co/owner/r:Q4_0 or ollama.com/owner/r"));
}

TEST(ModelName, ThatWouldLeaveItsFolderOrAddressIsNone) {
  for (const char* text : {"",
                           ":",
                           "a:",
                           ":b",
                           "..",
                           "../a",
                           "hf.co/../..",
                           "hf.co/a/..:b",
                           "hf.co/a/b:../c",
                           "hf.co/a/b:c/../../d",
                           "hf.co/a",
                           "hf.co/a/b/c",
                           "/a",
                           "a b",
                           "a\n",
                           "hf.co/a/b:c?d",
                           "hf.co/a/b:c#d",
                           "a%2e",
                           "https://x/a/b",
                           "./m.gguf",
                           "ollama.com/a/b:c/d",
                           "hf.co//b",
                           "a:b:c"}) {
    EXPECT_THAT(Read(text), HasSubstr("names no model")) << text;
  }
}

}  // namespace
}  // namespace troupe
