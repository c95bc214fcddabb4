#include "text/answer_parts/tagged_arguments.h"

#include <fmt/core.h>

#include <utility>

#include "text/grammar/json_schema.h"
#include "text/grammar/lazy_grammar.h"
#include "text/grammar/pattern_rules.h"
#include "text/utf8.h"

namespace troupe {
namespace {

GrammarItem Written(std::string_view text) { return GrammarItem::Text(text); }
GrammarItem MaybeLineEnd() { return Written("\n").Times(0, 1); }

std::size_t LengthOf(std::string_view text) {
  std::size_t characters = 0;
  for (; !text.empty(); text.remove_prefix(ReadUtf8(text).length)) ++characters;
  return characters;
}

// What can be read of a schema that is not understood: its own properties.
SchemaNeeds OwnProperties(const Json& parameters) {
  SchemaNeeds needs;
  SchemaNeeds::ObjectPart part;
  if (const Json* own = parameters.Find("properties"); own != nullptr && own->IsObject()) {
    for (const Json::Member& member : own->members()) {
      part.properties.emplace_back(member.key, &member.value);
    }
  }
  needs.objects.push_back(std::move(part));
  if (const Json* required = parameters.Find("required");
      required != nullptr && required->IsArray()) {
    for (const Json& name : required->items()) {
      if (name.IsString()) needs.required.push_back(name.AsString());
    }
  }
  return needs;
}

Status OfTool(const Tool& tool, const Status& status) {
  return Status(status).WithContext(fmt::format("tools: '{}'", tool.name));
}

bool IsReadAsText(const Tool& tool, const std::string& name) {
  const Json* const own = tool.parameters.Find("properties");
  const Json* const schema = own == nullptr ? nullptr : own->Find(name);
  return schema != nullptr && IsOnlyText(*schema);
}

}  // namespace

Result<GrammarItem> TaggedArguments::Of(const Tool& tool) {
  SchemaReader reader(tool.parameters);
  Result<std::vector<SchemaNeeds>> choices = reader.Read({&tool.parameters});
  if (!choices.ok()) {
    if (tool.is_strict) return OfTool(tool, choices.status());
    choices = std::vector{OwnProperties(tool.parameters)};
  }
  std::vector<GrammarSequence> calls;
  for (const SchemaNeeds& needs : *choices) {
    if ((needs.types & kJsonObject) == 0) continue;
    TROUPE_ASSIGN_OR_RETURN(const GrammarItem call, ArgumentsOf(tool, reader, needs));
    calls.push_back({call});
  }
  if (calls.empty()) return OfTool(tool, InvalidArgument("no object satisfies its schema"));
  return builder_.Add("tagged-arguments", std::move(calls));
}

Result<GrammarItem> TaggedArguments::ArgumentsOf(const Tool& tool, SchemaReader& reader,
                                                 const SchemaNeeds& needs) {
  GrammarSequence arguments;
  for (const std::string& name : needs.PropertyNames()) {
    TROUPE_ASSIGN_OR_RETURN(const GrammarItem value,
                            Value(tool, reader, name, needs.SchemasOf(name)));
    const GrammarItem argument = builder_.Add(
        "argument", {{Written(marks_.key_open + name + marks_.key_end), value, MaybeLineEnd()}});
    arguments.push_back(needs.Requires(name) ? argument : argument.Times(0, 1));
  }
  arguments.push_back(Written(marks_.close));
  return builder_.Add("arguments", {std::move(arguments)});
}

// From after its key to after its end.
Result<GrammarItem> TaggedArguments::Value(const Tool& tool, SchemaReader& reader,
                                           const std::string& name, const Schemas& schemas) {
  const GrammarItem open = Written(marks_.value_open), end = Written(marks_.value_end);
  // Where a value has a mark of its own, the line may end before it.
  const GrammarItem before = marks_.value_open.empty() ? Written("") : LineOpen();
  const GrammarItem line = marks_.value_open.empty() ? LineOpen() : Written("");
  const GrammarItem line_end = marks_.exact_values ? Written("") : MaybeLineEnd();
  if (IsReadAsText(tool, name)) {
    const Result<std::vector<SchemaNeeds>> choices = reader.Read(schemas);
    if (!choices.ok() && tool.is_strict) return OfTool(tool, choices.status());
    std::optional<std::vector<GrammarSequence>> texts;
    if (choices.ok()) {
      auto found = Texts(*choices, tool.is_strict);
      if (!found.ok()) {
        return OfTool(tool, Status(found.status()).WithContext(fmt::format("'{}'", name)));
      }
      texts = *std::move(found);
    }
    if (!texts) return builder_.Add("value", {{before, open, line, AnyText()}});
    return builder_.Add("value", {{before, open, builder_.Add("texts", *std::move(texts)), end}});
  }
  const Result<Grammar> json = CompileJsonSchema(tool.parameters, schemas);
  if (!json.ok() && tool.is_strict) return OfTool(tool, json.status());
  const GrammarItem value = json.ok() ? builder_.AddGrammar(*json) : builder_.Json("value");
  return builder_.Add("value", {{before, open, line, value, line_end, end}});
}

Result<std::optional<std::vector<GrammarSequence>>> TaggedArguments::Texts(
    const std::vector<SchemaNeeds>& choices, bool is_strict) {
  std::vector<GrammarSequence> texts;
  for (const SchemaNeeds& needs : choices) {
    if ((needs.types & kJsonString) == 0) continue;
    const bool says_length = needs.least_length > 0 || needs.most_length.has_value();
    const bool says_more = needs.values || needs.pattern || needs.format;
    // A length alone would keep marks out of texts that may well have some.
    if (!says_more && (!says_length || !is_strict)) return {std::nullopt};
    if (needs.values) {
      for (const Json& value : *needs.values) {
        if (!value.IsString()) continue;
        const std::size_t length = LengthOf(value.AsString());
        if (length < needs.least_length || length > needs.most_length.value_or(length)) continue;
        if (needs.pattern || needs.format) {
          if (!is_strict) return {std::nullopt};
          return InvalidArgument("listed values beside a pattern or a format are not supported");
        }
        const std::string_view text = value.AsString();
        if (text.find(marks_.value_end) != text.npos) continue;
        texts.push_back(OnLinesOfItsOwn(Written(text)));
        const bool has_line_ends = text.starts_with('\n') || text.ends_with('\n');
        if (!marks_.exact_values && !has_line_ends) texts.push_back({Written(text)});
      }
      continue;
    }
    Result<GrammarSequence> text = TextOf(needs);
    if (!text.ok() && is_strict) return text.status();
    if (!text.ok()) return {std::nullopt};
    texts.push_back(*std::move(text));
  }
  if (!texts.empty()) return {std::move(texts)};
  if (is_strict) return InvalidArgument("no text satisfies its schema");
  return {std::nullopt};
}

Result<GrammarSequence> TaggedArguments::TextOf(const SchemaNeeds& needs) {
  const bool says_length = needs.least_length > 0 || needs.most_length.has_value();
  if ((says_length ? 1 : 0) + (needs.pattern ? 1 : 0) + (needs.format ? 1 : 0) > 1) {
    return InvalidArgument("pattern, format and a length together are not supported");
  }
  if (needs.format) return OnLinesOfItsOwn(builder_.Json(*needs.format));
  // The end's mark must not be among the characters.
  const auto first = static_cast<unsigned char>(marks_.value_end.front());
  const CodePointSet characters = Complement(CodePointSet{{first, first}});
  if (needs.pattern) {
    TROUPE_ASSIGN_OR_RETURN(const GrammarItem content,
                            AddPlainPattern(*needs.pattern, characters, builder_));
    return OnLinesOfItsOwn(content);
  }
  const std::uint32_t most = needs.most_length.value_or(kUnbounded);
  if (needs.least_length > most) return InvalidArgument("no text is both so long and so short");
  return OnLinesOfItsOwn(GrammarItem::Set(characters).Times(needs.least_length, most));
}

// Ends of lines around a value are not a part of it, so that those within it are the text's own.
GrammarSequence TaggedArguments::OnLinesOfItsOwn(GrammarItem content) const {
  if (marks_.exact_values) return {std::move(content)};
  return {Written("\n"), std::move(content), Written("\n")};
}

GrammarItem TaggedArguments::LineOpen() const {
  return marks_.exact_values ? Written("") : MaybeLineEnd();
}

// Up to the end's mark, with it.
GrammarItem TaggedArguments::AnyText() {
  if (!any_text_) any_text_ = builder_.AddGrammar(TextUntil(marks_.value_end));
  return *any_text_;
}

}  // namespace troupe
