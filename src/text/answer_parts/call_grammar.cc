#include "text/answer_parts/call_grammar.h"

#include <utility>
#include <vector>

#include "text/answer_parts/tagged_arguments.h"
#include "text/grammar/anchored_start.h"
#include "text/grammar/grammar_builder.h"
#include "text/grammar/json_schema.h"
#include "text/grammar/lazy_grammar.h"

namespace troupe {
namespace {

using Sequence = GrammarSequence;

GrammarItem Text(std::string_view text) { return GrammarItem::Text(text); }
GrammarItem Maybe(std::string_view text) { return Text(text).Times(0, 1); }
GrammarItem Maybe(const GrammarItem& item) { return item.Times(0, 1); }
GrammarItem Any(const GrammarItem& item) { return item.Times(0, kUnbounded); }

class CallCompiler {
 public:
  CallCompiler(const AnswerStyle& style, const ToolSet& tools, const CallRules& rules)
      : style_(style), marks_(style.calls), tools_(tools), rules_(rules) {}

  Result<Grammar> Compile() {
    if (tools_.empty()) return Take({Reasoning(), Otherwise()});
    const bool is_free = !rules_.must_call && !rules_.otherwise;
    if (is_free && IsBare()) return FreeUnlessBareCall();
    TROUPE_ASSIGN_OR_RETURN(const GrammarItem rest, RestOfCalls());
    if (is_free) {
      return AfterTriggers(std::move(builder_).Take(rest.rule), Triggers(),
                           {.repeats = rules_.parallel});
    }
    const GrammarItem again =
        rules_.parallel && !RestHasAll()
            ? Any(builder_.Add("again", {{Maybe("\n"), Text(FirstMark()), rest}}))
            : Text("");
    std::vector<Sequence> alternatives = {{Text(FirstMark()), rest, again}};
    if (!rules_.must_call) alternatives.push_back({Otherwise()});
    return Take({Reasoning(), builder_.Add("answer", std::move(alternatives))});
  }

 private:
  Result<Grammar> Take(Sequence root) {
    const GrammarItem item = builder_.Add("answer-with-reasoning", {std::move(root)});
    return std::move(builder_).Take(item.rule);
  }

  // An answer that begins with a call of a tool goes on with its arguments.
  Result<Grammar> FreeUnlessBareCall() {
    // After reasoning it begins where the reasoning has ended.
    std::vector<std::string> before = {""};
    if (rules_.starts_in_reasoning) before = {"", "\n", "\n\n"};
    std::vector<AnchoredStart> starts;
    for (const Tool& tool : tools_.all()) {
      TROUPE_ASSIGN_OR_RETURN(Sequence arguments, BareArguments(tool));
      const GrammarItem rest = builder_.Add("rest-of-call", {std::move(arguments)});
      for (const std::string& blanks : before) {
        for (const std::string& mark : {std::string(), marks_.open}) {
          for (const char* name : {"{\"name\": ", "{\"name\":"}) {
            starts.push_back({blanks + mark + name + Json(tool.name).Dump(), rest});
          }
        }
      }
    }
    const GrammarItem root = FreeUnlessStarted(starts, builder_);
    Grammar grammar = std::move(builder_).Take(root.rule);
    if (!rules_.starts_in_reasoning) return grammar;
    return AfterTriggers(std::move(grammar), {&style_.reasoning_close, 1}, {.repeats = false});
  }

  // What follows the name.
  Result<Sequence> BareArguments(const Tool& tool) {
    TROUPE_ASSIGN_OR_RETURN(const GrammarItem arguments, ArgumentsOf(tool));
    return Sequence{Text(","),  Maybe(" "), Text("\"parameters\":"),
                    Maybe(" "), arguments,  Text("}")};
  }

  bool IsHarmony() const { return marks_.syntax == CallSyntax::kHarmony; }
  bool IsBare() const { return marks_.syntax == CallSyntax::kBare; }
  // Whether what follows the first mark holds all the calls of an answer.
  bool RestHasAll() const {
    return IsHarmony() || IsBare() || marks_.is_list ||
           (!marks_.section_open.empty() && !marks_.one_in_section);
  }

  std::string FirstMark() const {
    if (IsBare()) return {};
    return IsHarmony() ? "<|channel|>commentary to=functions." : marks_.first();
  }
  std::vector<std::string> Triggers() const {
    if (!IsHarmony()) return {FirstMark()};
    return {FirstMark(), "<|channel|>analysis to=functions.", "<|start|>assistant to=functions."};
  }

  GrammarItem Reasoning() {
    if (IsHarmony()) {
      return Maybe(builder_.Add(
          "reasoning", {{Text("<|channel|>analysis<|message|>"),
                         builder_.AddGrammar(TextUntil("<|end|>")), Text("<|start|>assistant")}}));
    }
    if (style_.reasoning_close.empty()) return Text("");
    const GrammarItem rest = builder_.Add(
        "reasoning",
        {{builder_.AddGrammar(TextUntil(style_.reasoning_close)), Text("\n").Times(0, 2)}});
    if (rules_.starts_in_reasoning) return rest;
    return Maybe(builder_.Add("own-reasoning", {{Text(style_.reasoning_open), rest}}));
  }

  GrammarItem Otherwise() {
    const GrammarItem text =
        rules_.otherwise ? builder_.AddGrammar(*rules_.otherwise) : Any(AnyCharacter());
    if (!IsHarmony()) return text;
    return builder_.Add("final", {{Text("<|channel|>final"), Maybe(" <|constrain|>json"),
                                   Text("<|message|>"), text}});
  }
  static GrammarItem Digits() { return GrammarItem::Set({{'0', '9'}}).Times(1, 6); }
  static GrammarItem AnyCharacter() { return GrammarItem::Set({{0, kLastCodePoint}}); }

  // What may follow the first mark.
  Result<GrammarItem> RestOfCalls() {
    std::vector<Sequence> calls;
    for (const Tool& tool : tools_.all()) {
      if (!rules_.only.empty() && tool.name != rules_.only) continue;
      TROUPE_ASSIGN_OR_RETURN(Sequence call, CallOf(tool));
      calls.push_back(std::move(call));
    }
    if (calls.empty()) {
      return InvalidArgument("tool_choice: there is no tool '{}'", rules_.only);
    }
    const GrammarItem call = builder_.Add("call", std::move(calls));
    const auto more = [&](const Sequence& sequence) {
      return rules_.parallel ? Any(builder_.Add("more-calls", {sequence})) : Text("");
    };
    if (marks_.is_list) {
      return builder_.Add(
          "calls", {{Maybe("\n"), Text("["), call, more({Text(","), Maybe(" "), call}), Text("]"),
                     Maybe("\n"), Text(marks_.close)}});
    }
    if (marks_.syntax == CallSyntax::kJson) {
      return builder_.Add("calls", {{Maybe("\n"), call, Maybe("\n"), Text(marks_.close)}});
    }
    if (IsBare()) return builder_.Add("bare-call", {{Maybe(marks_.open), call}});
    if (marks_.section_open.empty()) return call;
    const GrammarItem open = Text(marks_.open);
    const GrammarItem others = marks_.one_in_section ? Text("") : more({Maybe("\n"), open, call});
    return builder_.Add(
        "calls", {{Maybe("\n"), open, call, others, Maybe("\n"), Text(marks_.section_close)}});
  }

  // From after its mark to its end.
  Result<Sequence> CallOf(const Tool& tool) {
    if (marks_.syntax == CallSyntax::kTagged) return TaggedCall(tool);
    if (IsBare()) {
      TROUPE_ASSIGN_OR_RETURN(Sequence call, BareArguments(tool));
      call.insert(call.begin(), {Text("{\"name\":"), Maybe(" "), Text(Json(tool.name).Dump())});
      return call;
    }
    TROUPE_ASSIGN_OR_RETURN(const GrammarItem arguments, ArgumentsOf(tool));
    if (IsHarmony()) {
      const GrammarItem kind =
          builder_.Add("kind", {{Text(" "), Maybe("<|constrain|>"), Text("json")}});
      return Sequence{Text(tool.name), Maybe("<|channel|>commentary"), Maybe(kind),
                      Text("<|message|>"), arguments};
    }
    if (marks_.syntax == CallSyntax::kNamed) {
      const GrammarItem number =
          marks_.numbers_calls ? builder_.Add("number", {{Text(":"), Digits()}}) : Text("");
      return Sequence{Text(marks_.name_prefix + tool.name), number, Text(marks_.name_end),
                      arguments, Text(marks_.close)};
    }
    const GrammarItem id = builder_.Add(
        "id", {{Text(","), Maybe(" "), Text("\"id\":"), Maybe(" "), Text("\""),
                GrammarItem::Set({{'0', '9'}, {'A', 'Z'}, {'a', 'z'}}).Times(9, 9), Text("\"")}});
    return Sequence{Text("{\"name\":"),
                    Maybe(" "),
                    Text(Json(tool.name).Dump() + ","),
                    Maybe(" "),
                    Text("\"arguments\":"),
                    Maybe(" "),
                    arguments,
                    marks_.is_list ? Maybe(id) : Text(""),
                    Text("}")};
  }

  Result<GrammarItem> ArgumentsOf(const Tool& tool) {
    Json schema = tool.parameters;
    if (schema.Find("type") == nullptr) schema["type"] = "object";
    return Values(schema, tool, "object");
  }

  // Those of a schema, or any that the rule for JSON has.
  Result<GrammarItem> Values(const Json& schema, const Tool& tool, std::string_view any) {
    const Result<Grammar> grammar = CompileJsonSchema(schema);
    if (grammar.ok()) return builder_.AddGrammar(*grammar);
    if (!tool.is_strict) return builder_.Json(any);
    return Status(grammar.status()).WithContext(fmt::format("tools: '{}'", tool.name));
  }

  Result<Sequence> TaggedCall(const Tool& tool) {
    TROUPE_ASSIGN_OR_RETURN(const GrammarItem arguments, tagged_.Of(tool));
    return Sequence{Text(tool.name + marks_.name_end), Maybe("\n"), arguments};
  }

  const AnswerStyle& style_;
  const CallMarks& marks_;
  const ToolSet& tools_;
  const CallRules& rules_;
  GrammarBuilder builder_;
  TaggedArguments tagged_{marks_, builder_};
};

}  // namespace

Result<Grammar> CallGrammar(const AnswerStyle& style, const ToolSet& tools,
                            const CallRules& rules) {
  return CallCompiler(style, tools, rules).Compile();
}

}  // namespace troupe
