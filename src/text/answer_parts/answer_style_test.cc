#include "text/answer_parts/answer_style.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

namespace troupe {
namespace {

AnswerStyle StyleOf(const std::string& model) {
  std::ifstream file(std::string(TROUPE_SOURCE_DIR "/tests/data/chat_templates/") + model +
                     ".jinja");
  EXPECT_TRUE(file.good()) << model;
  std::stringstream text;
  text << file.rdbuf();
  return RecogniseAnswerStyle(text.str());
}

TEST(AnswerStyle, IsFoundInTheTemplatesOfRealModels) {
  const struct {
    const char* model;
    CallSyntax syntax;
    const char* first;
    const char* reasoning;
  } kModels[] = {
      {"Qwen-Qwen3-0.6B", CallSyntax::kJson, "<tool_call>", "<think>"},
      {"Qwen-Qwen2.5-7B-Instruct", CallSyntax::kJson, "<tool_call>", ""},
      {"Qwen-QwQ-32B", CallSyntax::kJson, "<tool_call>", "<think>"},
      {"Qwen3-Coder", CallSyntax::kTagged, "<tool_call>", ""},
      {"GLM-4.6", CallSyntax::kTagged, "<tool_call>", "<think>"},
      {"ByteDance-Seed-OSS", CallSyntax::kTagged, "<seed:tool_call>", "<seed:think>"},
      {"deepseek-ai-DeepSeek-V3.1", CallSyntax::kNamed, "<｜tool▁calls▁begin｜>", "<think>"},
      {"llama-cpp-deepseek-r1", CallSyntax::kNamed, "<｜tool▁calls▁begin｜>", "<think>"},
      {"Mistral-Small-3.2-24B-Instruct-2506", CallSyntax::kNamed, "[TOOL_CALLS]", ""},
      {"mistralai-Mistral-Nemo-Instruct-2407", CallSyntax::kJson, "[TOOL_CALLS]", ""},
      {"unsloth-mistral-Devstral-Small-2507", CallSyntax::kNamed, "[TOOL_CALLS]", ""},
      {"ibm-granite-granite-3.3-2B-Instruct", CallSyntax::kJson, "<|tool_call|>", "<think>"},
      {"HuggingFaceTB-SmolLM3-3B", CallSyntax::kNone, "", "<think>"},
      {"MiMo-VL", CallSyntax::kJson, "<tool_call>", ""},
      {"unsloth-Apriel-1.5", CallSyntax::kJson, "<tool_calls>", ""},
      {"meetkai-functionary-medium-v3.1", CallSyntax::kNamed, "<function=", ""},
      {"openai-gpt-oss-120b", CallSyntax::kHarmony, "", ""},
      {"own-numbered-calls", CallSyntax::kNamed, "<|tool_calls_section_begin|>", "<think>"},
      {"own-invoked-calls", CallSyntax::kTagged, "<minimax:tool_call>", "<think>"},
      {"own-bare-calls", CallSyntax::kBare, "<|python_tag|>", ""},
      {"own-headers-and-dates", CallSyntax::kNone, "", ""},
      {"microsoft-Phi-3.5-mini-instruct", CallSyntax::kNone, "", ""},
  };
  for (const auto& model : kModels) {
    const AnswerStyle style = StyleOf(model.model);
    EXPECT_EQ(style.calls.syntax, model.syntax) << model.model;
    EXPECT_EQ(style.calls.first(), model.first) << model.model;
    EXPECT_EQ(style.reasoning_open, model.reasoning) << model.model;
  }
}

TEST(AnswerStyle, NamesTheMarksThatMayBeSpecialTokens) {
  EXPECT_THAT(StyleOf("Qwen-Qwen3-0.6B").Marks(),
              testing::UnorderedElementsAre("<think>", "</think>", "<tool_call>", "</tool_call>"));
  EXPECT_THAT(StyleOf("llama-cpp-deepseek-r1").Marks(),
              testing::IsSupersetOf({"<｜tool▁call▁begin｜>", "<｜tool▁sep｜>"}));
  EXPECT_THAT(StyleOf("openai-gpt-oss-120b").Marks(), testing::Contains("<|channel|>"));
  EXPECT_THAT(StyleOf("own-numbered-calls").Marks(),
              testing::IsSupersetOf({"<|tool_call_begin|>", "<|tool_call_argument_begin|>",
                                     "<|tool_call_end|>", "<|tool_calls_section_end|>"}));
  EXPECT_THAT(StyleOf("own-bare-calls").Marks(), testing::ElementsAre("<|python_tag|>"));
  EXPECT_THAT(RecogniseAnswerStyle("").Marks(), testing::IsEmpty());
}

}  // namespace
}  // namespace troupe
