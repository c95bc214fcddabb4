#include "text/chat_format.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace troupe {
namespace {

using testing::HasSubstr;

struct Case {
  ChatFormat format;
  std::string_view chat_template;  // the telling part of what models of this format state
};

const Case kCases[] = {
    {ChatFormat::kPlain, ""},
    {ChatFormat::kChatMl,
     "{% for message in messages %}{{'<|im_start|>' + message['role'] + '\\n' + "
     "message['content'] + '<|im_end|>' + '\\n'}}{% endfor %}"},
    {ChatFormat::kLlama2,
     "{{ bos_token }}{% for message in messages %}{% if message['role'] == 'user' %}"
     "{{ '[INST] ' + message['content'] + ' [/INST]' }}{% else %}"
     "{{ message['content'] + eos_token}}{% endif %}{% endfor %}"},
    {ChatFormat::kLlama2System,
     "{{ '[INST] ' + '<<SYS>>\\n' + system_message + '\\n<</SYS>>\\n\\n' + content + ' [/INST]' "
     "}}"},
    {ChatFormat::kLlama2SystemBos,
     "{% set content = '<<SYS>>\\n' + system_message %}{{ bos_token + '[INST] ' + content + "
     "' [/INST]' }}"},
    {ChatFormat::kLlama2SystemStrip,
     "{% set content = '<<SYS>>\\n' + system_message %}{{ bos_token + '[INST] ' + "
     "content.strip() + ' [/INST]' }}"},
    {ChatFormat::kMistralV1,
     "{{- ' [INST] ' + system_message + '\\n\\n' + message['content'] + ' [/INST]' }}"},
    {ChatFormat::kMistralV3,
     "{{- '[AVAILABLE_TOOLS] [' }}{{- '[INST] ' + message['content'] + '[/INST]' }}"},
    {ChatFormat::kMistralV3Tekken,
     "{{- \"[AVAILABLE_TOOLS][\" }}{{- \"[INST]\" + message[\"content\"] + \"[/INST]\" }}"},
    {ChatFormat::kMistralV7,
     "{{- '[SYSTEM_PROMPT] ' + message['content'] + '[/SYSTEM_PROMPT]' }}{{- '[INST] ' }}"},
    {ChatFormat::kLlama3,
     "{% set content = '<|start_header_id|>' + message['role'] + '<|end_header_id|>\\n\\n' + "
     "message['content'] | trim + '<|eot_id|>' %}"},
    {ChatFormat::kDeepseekCoder,
     "{{'### Instruction:\\n' + message['content'] + '\\n'}}{{'### Response:\\n' + "
     "message['content'] + '\\n<|EOT|>\\n'}}"},
    {ChatFormat::kDeepseek,
     "{{ 'User: ' + message['content'] + '\\n\\n' }}{{ 'Assistant: ' + message['content'] + "
     "eos_token }}{{ 'Assistant:' }}"},
    {ChatFormat::kDeepseek3,
     "{{'<｜User｜>' + message['content']}}{{'<｜Assistant｜>' + message['content'] + "
     "'<｜end▁of▁sentence｜>'}}"},
    {ChatFormat::kPhi3,
     "{{'<|user|>' + '\\n' + message['content'] + '<|end|>' + '\\n' + '<|assistant|>' + '\\n'}}"},
    {ChatFormat::kTulu,
     "{{ bos_token }}{{ '<|user|>\\n' + message['content'] }}{{ '<|assistant|>\\n'  + "
     "message['content'] + eos_token }}"},
};

TEST(ChatFormat, EveryKnownTemplateIsRecognised) {
  for (const Case& c : kCases) {
    const auto format = RecogniseChatFormat(c.chat_template);
    ASSERT_TRUE(format.ok()) << format.status().ToString();
    EXPECT_EQ(Name(*format), Name(c.format));
  }
}

TEST(ChatFormat, NamesAreDistinct) {
  for (const Case& a : kCases) {
    for (const Case& b : kCases) {
      EXPECT_EQ(Name(a.format) == Name(b.format), a.format == b.format);
    }
  }
}

TEST(ChatFormat, AnUnknownTemplateIsAnErrorThatNamesTheKnownOnes) {
  for (const std::string_view text : {"{{ '<start_of_turn>' }}", "<|im_start|>user<|im_sep|>"}) {
    const auto format = RecogniseChatFormat(text);
    ASSERT_FALSE(format.ok());
    EXPECT_EQ(format.status().code(), Code::kUnimplemented);
    EXPECT_THAT(format.status().message(), HasSubstr("plain, chatml, llama2"));
  }
}

}  // namespace
}  // namespace troupe
