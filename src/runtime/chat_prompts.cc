#include "runtime/chat_prompts.h"

#include <algorithm>
#include <ctime>
#include <map>
#include <utility>

#include "runtime/late_system.h"
#include "text/answer_parts/tools_in_text.h"
#include "text/chat_template.h"

namespace troupe {
namespace {

// Of a prompt that fits into any context that fits into memory beside a model; a template of a
// stranger's must not take more than the plan leaves.
constexpr jinja::RenderLimits kLimits = {
    .output_bytes = 8 << 20, .string_bytes = 8 << 20, .made_bytes = 24 << 20};

std::optional<std::string> TextOf(const Vocab& vocab, std::optional<TokenId> id) {
  if (!id) return std::nullopt;
  return vocab.tokens[static_cast<std::size_t>(*id)];
}

std::vector<TokenId> SpecialTokensOf(const Vocab& vocab, const std::vector<std::string>& texts) {
  std::vector<TokenId> found;
  for (std::size_t i = 0; i < vocab.tokens.size(); ++i) {
    const auto id = static_cast<TokenId>(i);
    if (vocab.TypeOf(id) != TokenType::kControl) continue;
    if (std::ranges::find(texts, vocab.tokens[i]) != texts.end()) found.push_back(id);
  }
  return found;
}

Result<Json> ReadPart(std::string_view name, const std::string& text) {
  if (text.empty()) return Json();
  std::optional<Json> json = Json::Parse(text);
  if (!json) return InvalidArgument("{}: no JSON", name);
  return *std::move(json);
}

std::optional<std::tm> DayIn(const std::string& text) {
  std::tm day{};
  const char* const end = ::strptime(text.c_str(), "%Y-%m-%d", &day);
  if (end == nullptr || *end != '\0') return std::nullopt;
  return day;
}

// Mistral's templates take no others.
std::string ShortId(const std::string& id) {
  constexpr std::size_t kLength = 9;
  constexpr std::string_view kDigits = "0123456789abcdefghijklmnopqrstuvwxyz";
  const bool is_short =
      id.size() == kLength && std::ranges::all_of(id, [](char c) {
        return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
      });
  if (is_short) return id;
  std::uint64_t hash = 14695981039346656037u;
  for (const char c : id) hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211u;
  std::string text;
  for (std::size_t i = 0; i < kLength; ++i, hash /= kDigits.size()) {
    text += kDigits[hash % kDigits.size()];
  }
  return text;
}

bool HasCalls(const Json& message) {
  const Json* calls = message.Find("tool_calls");
  return calls != nullptr && calls->size() > 0;
}

Json WithShortIds(Json messages) {
  for (std::size_t i = 0; i < messages.size(); ++i) {
    Json& message = messages[i];
    if (const Json* id = message.Find("tool_call_id"); id != nullptr && id->IsString()) {
      message["tool_call_id"] = ShortId(id->AsString());
    }
    if (!HasCalls(message)) continue;
    Json& calls = message["tool_calls"];
    for (std::size_t c = 0; c < calls.size(); ++c) {
      const Json* id = calls[c].Find("id");
      if (id != nullptr && id->IsString()) calls[c]["id"] = ShortId(id->AsString());
    }
  }
  return messages;
}

// Kimi's answers give calls ids of the tool and the number of the call in the chat, and learnt to
// find results by them.
Json WithNumberedIds(Json messages, const std::string& prefix) {
  std::map<std::string, std::string> names;  // of the calls so far, by the ids that clients know
  std::size_t number = 0;
  for (std::size_t i = 0; i < messages.size(); ++i) {
    Json& message = messages[i];
    if (const Json* id = message.Find("tool_call_id"); id != nullptr && id->IsString()) {
      if (const auto found = names.find(id->AsString()); found != names.end()) {
        message["tool_call_id"] = found->second;
      }
    }
    if (!HasCalls(message)) continue;
    Json& calls = message["tool_calls"];
    for (std::size_t c = 0; c < calls.size(); ++c) {
      const Json* function = calls[c].Find("function");
      const Json* name = function == nullptr ? nullptr : function->Find("name");
      if (name == nullptr || !name->IsString()) continue;
      const std::string own = prefix + name->AsString() + ":" + std::to_string(number++);
      const Json* id = calls[c].Find("id");
      if (id != nullptr && id->IsString()) names[id->AsString()] = own;
      calls[c]["id"] = own;
    }
  }
  return messages;
}

// gpt-oss has a name of its own for reasoning, and takes it beside calls alone.
Json WithThinking(Json messages) {
  for (std::size_t i = 0; i < messages.size(); ++i) {
    const Json* reasoning = messages[i].Find("reasoning_content");
    const bool has_content = *messages[i].Find("content") != Json("");
    if (reasoning == nullptr || !HasCalls(messages[i]) || has_content) continue;
    messages[i]["thinking"] = Json(*reasoning);
  }
  return messages;
}

std::string_view Trimmed(std::string_view text) {
  constexpr std::string_view kBlanks = " \t\n\r";
  const std::size_t begin = text.find_first_not_of(kBlanks);
  if (begin == text.npos) return {};
  return text.substr(begin, text.find_last_not_of(kBlanks) + 1 - begin);
}

// Without what stands after the last message's content: its end mark.
Status EndAfter(std::string_view content, std::vector<TextSegment>& segments) {
  const std::string_view wanted = Trimmed(content);
  for (std::size_t i = segments.size(); i-- > 0;) {
    TextSegment& segment = segments[i];
    if (segment.is_template) continue;
    const std::size_t at = segment.text.rfind(wanted);
    if (at == segment.text.npos || wanted.empty()) break;
    segment.text.resize(at + wanted.size());
    segments.resize(i + 1);
    return OkStatus();
  }
  return InvalidArgument(
      "the last message: an answer that is begun cannot be gone on with in this "
      "model's chat format");
}

}  // namespace

Result<ChatPrompts> ChatPrompts::Of(const Vocab& vocab) {
  ChatPrompts prompts;
  const Result<ChatFormat> format = RecogniseChatFormat(vocab.chat_template);
  if (format.ok()) prompts = In(*format);
  if (vocab.chat_template.empty()) return prompts;
  Result<jinja::Template> own = jinja::Template::Parse(vocab.chat_template);
  if (!own.ok()) {
    if (format.ok()) return prompts;
    return Status(own.status()).WithContext("tokenizer.chat_template");
  }
  prompts.own_ = *std::move(own);
  prompts.special_ = {.bos_token = TextOf(vocab, vocab.bos),
                      .eos_token = TextOf(vocab, vocab.eos),
                      .unk_token = TextOf(vocab, vocab.unk),
                      .pad_token = TextOf(vocab, vocab.pad),
                      .tokenizer_adds_bos = vocab.add_bos,
                      .now = std::nullopt};
  prompts.needs_day_ = !prompts.RendersAtAll(false) && prompts.RendersAtAll(true);
  if (prompts.needs_day_) prompts.special_.now = std::tm{.tm_mday = 1, .tm_year = 70};
  prompts.style_ = RecogniseAnswerStyle(vocab.chat_template);
  prompts.wants_short_ids_ = vocab.chat_template.find("length != 9") != std::string::npos;
  if (prompts.style_.calls.syntax != CallSyntax::kNone) {
    prompts.calls_need_null_ = !prompts.WritesCalls(false) && prompts.WritesCalls(true);
    prompts.knows_tools_ = vocab.chat_template.find("tools") != std::string::npos;
  }
  if (!prompts.knows_tools_) prompts.style_.calls = GeneralCallMarks();
  prompts.folds_late_system_ = !prompts.WritesLateSystem();
  prompts.marks_ = SpecialTokensOf(vocab, prompts.style_.Marks());
  return prompts;
}

ChatPrompts ChatPrompts::In(ChatFormat format) {
  ChatPrompts prompts;
  prompts.format_ = format;
  prompts.folds_late_system_ = !prompts.WritesLateSystem();
  return prompts;
}

std::string_view ChatPrompts::name() const {
  return format_ ? Name(*format_) : "of the model's own template";
}

bool ChatPrompts::RendersAtAll(bool with_day) const {
  jinja::ChatPrompt prompt = special_;
  prompt.messages = Json::Array({Json{{"role", "user"}, {"content", "x"}}});
  if (with_day) prompt.now = std::tm{.tm_mday = 1, .tm_year = 70};
  return RenderChatPrompt(*own_, prompt, kLimits).ok();
}

// In its place amid the talk, by whatever writes prompts.
bool ChatPrompts::WritesLateSystem() const {
  constexpr const char *kBefore = "what the user asks", *kLate = "what the system says late";
  const Conversation talk = {.messages = {{.role = "user", .content = "x"},
                                          {.role = "assistant", .content = "x"},
                                          {.role = "user", .content = kBefore},
                                          {.role = "system", .content = kLate},
                                          {.role = "assistant", .content = "x"},
                                          {.role = "user", .content = "x"}},
                             .day = "1970-01-01"};
  const auto writes = [&](const Result<std::vector<TextSegment>>& segments) {
    if (!segments.ok()) return false;
    std::string text;
    for (const TextSegment& segment : *segments) text += segment.text;
    const std::size_t before = text.find(kBefore);
    return before != text.npos && text.find(kLate, before) != text.npos;
  };
  if (own_ && !writes(RenderOwn(talk, true))) return false;
  if (knows_tools_) {  // some count turns without those of tools
    Conversation with_call = talk;
    with_call.messages[1].more =
        R"({"tool_calls":[{"id":"call00001","type":"function","function":{"name":"f","arguments":{}}}]})";
    with_call.messages[2] = {
        .role = "tool", .content = kBefore, .more = R"({"tool_call_id":"call00001"})"};
    if (!writes(RenderOwn(with_call, true))) return false;
  }
  return !format_ || writes(RenderChat(*format_, talk.messages, true));
}

bool ChatPrompts::WritesCalls(bool null_content) const {
  constexpr const char* kName = "a_tool_that_was_called";
  jinja::ChatPrompt prompt = special_;
  const Json call = {{"id", "call00001"},
                     {"type", "function"},
                     {"function", Json{{"name", kName}, {"arguments", Json::Object()}}}};
  prompt.messages =
      Json::Array({Json{{"role", "user"}, {"content", "x"}},
                   Json{{"role", "assistant"},
                        {"content", null_content ? Json() : Json("")},
                        {"tool_calls", Json::Array({call})}},
                   Json{{"role", "tool"}, {"content", "x"}, {"tool_call_id", "call00001"}}});
  const auto segments = RenderChatPrompt(*own_, prompt, kLimits);
  if (!segments.ok()) return false;
  return std::ranges::any_of(*segments, [&](const TextSegment& segment) {
    return segment.text.find(kName) != std::string::npos;
  });
}

Result<std::vector<TextSegment>> ChatPrompts::RenderOwn(const Conversation& chat,
                                                        bool begins_answer) const {
  jinja::ChatPrompt prompt = special_;
  TROUPE_ASSIGN_OR_RETURN(prompt.messages, jinja::MessagesToJson(chat.messages));
  TROUPE_ASSIGN_OR_RETURN(prompt.tools, ReadPart("tools", chat.tools));
  TROUPE_ASSIGN_OR_RETURN(prompt.options, ReadPart("chat_template_kwargs", chat.options));
  if (!prompt.options.IsNull() && !prompt.options.IsObject()) {
    return InvalidArgument("chat_template_kwargs: expected a JSON object");
  }
  if (prompt.options.IsNull()) prompt.options = Json::Object();
  if (wants_short_ids_) prompt.messages = WithShortIds(std::move(prompt.messages));
  if (style_.calls.numbers_calls) {
    prompt.messages = WithNumberedIds(std::move(prompt.messages), style_.calls.name_prefix);
  }
  if (style_.calls.syntax == CallSyntax::kHarmony) {
    prompt.messages = WithThinking(std::move(prompt.messages));
  }
  for (std::size_t i = 0; calls_need_null_ && i < prompt.messages.size(); ++i) {
    Json& message = prompt.messages[i];
    if (HasCalls(message) && *message.Find("content") == Json("")) message["content"] = Json();
  }
  if (needs_day_) {
    prompt.now = DayIn(chat.day);
    if (!prompt.now) {
      return InvalidArgument(
          "day: '{}', expected one as 2026-11-23: the model's chat template "
          "writes it into every prompt",
          chat.day);
    }
  }
  prompt.add_generation_prompt = begins_answer;
  Result<std::vector<TextSegment>> segments = RenderChatPrompt(*own_, prompt, kLimits);
  if (!segments.ok()) return Status(segments.status()).WithContext("the model's chat template");
  return segments;
}

Result<std::vector<TextSegment>> ChatPrompts::RenderAll(const Conversation& chat,
                                                        bool begins_answer) const {
  const bool has_tools =
      !chat.tools.empty() || std::ranges::any_of(chat.messages, [](const Message& message) {
        return message.role == "tool" || message.more.find("\"tool_calls\"") != std::string::npos;
      });
  if (has_tools && !TemplateWritesTools()) {
    Conversation plain = {.options = chat.options, .day = chat.day};
    TROUPE_ASSIGN_OR_RETURN(const Json tools, ReadPart("tools", chat.tools));
    TROUPE_ASSIGN_OR_RETURN(plain.messages, WriteToolsAsText(chat.messages, tools));
    return RenderAll(plain, begins_answer);
  }
  const bool is_plain =
      !has_tools && chat.options.empty() &&
      std::ranges::all_of(chat.messages, [](const Message& m) { return m.more.empty(); });
  if (own_ && (!is_plain || !format_)) return RenderOwn(chat, begins_answer);
  return RenderChat(*format_, chat.messages, begins_answer);
}

Result<RenderedChat> ChatPrompts::Render(const Conversation& chat) const {
  if (chat.messages.empty()) {
    return InvalidArgument("a chat of no messages, expected at least one");
  }
  if (folds_late_system_) {
    Conversation folded = chat;
    folded.messages = FoldLateSystem(std::move(folded.messages));
    return RenderFolded(folded);
  }
  return RenderFolded(chat);
}

Result<RenderedChat> ChatPrompts::RenderFolded(const Conversation& chat) const {
  RenderedChat rendered;
  const bool goes_on = chat.goes_on && !Trimmed(chat.messages.back().content).empty();
  TROUPE_ASSIGN_OR_RETURN(rendered.segments, RenderAll(chat, !goes_on));
  if (goes_on) {
    TROUPE_RETURN_IF_ERROR(EndAfter(chat.messages.back().content, rendered.segments));
  }
  if (!style_.reasoning_open.empty() && !rendered.segments.empty()) {
    const TextSegment& last = rendered.segments.back();
    rendered.opens_reasoning =
        Trimmed(last.text).ends_with(style_.reasoning_open) && (last.is_template || goes_on);
  }
  return rendered;
}

std::vector<std::string> ChatPrompts::StopStrings() const {
  return format_ ? ChatStopStrings(*format_) : std::vector<std::string>();
}

}  // namespace troupe
