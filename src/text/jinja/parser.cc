#include "text/jinja/parser.h"

#include <initializer_list>
#include <string>
#include <utility>

#include "text/jinja/expression_parser.h"
#include "text/jinja/token_stream.h"

namespace troupe::jinja {
namespace {

using Names = std::initializer_list<std::string_view>;

class StatementParser {
 public:
  explicit StatementParser(std::vector<Token> tokens)
      : tokens_(std::move(tokens)), expressions_(tokens_) {}

  Result<Block> Run() {
    TROUPE_ASSIGN_OR_RETURN(Block block, ParseBlock({}));
    TROUPE_RETURN_IF_ERROR(expressions_.unknown());
    return block;
  }

 private:
  static Statement Make(Statement::Kind kind, int line) {
    return Statement{.kind = kind, .line = line};
  }

  // Statements up to a tag whose name is one of `ends`, whose "{%" is read; up to the end of the
  // template if there are none.
  Result<Block> ParseBlock(Names ends) {
    const TokenStream::Deeper deeper(tokens_);
    TROUPE_RETURN_IF_ERROR(deeper.Check());
    Block block;
    while (!tokens_.Is(TokenKind::kEnd)) {
      const int line = tokens_.Peek().line;
      if (tokens_.Is(TokenKind::kText)) {
        Statement text = Make(Statement::Kind::kText, line);
        text.text = tokens_.Next().text;
        block.push_back(std::move(text));
      } else if (tokens_.Is(TokenKind::kOutputBegin)) {
        tokens_.Next();
        Statement output = Make(Statement::Kind::kOutput, line);
        TROUPE_ASSIGN_OR_RETURN(output.expr, expressions_.ParseTuple(true));
        TROUPE_RETURN_IF_ERROR(tokens_.ExpectKind(TokenKind::kOutputEnd, "'}}'"));
        block.push_back(std::move(output));
      } else {
        tokens_.Next();  // "{%"
        if (tokens_.IsAnyName(ends)) return block;
        TROUPE_ASSIGN_OR_RETURN(Statement statement, ParseStatement());
        TROUPE_RETURN_IF_ERROR(ExpectTagEnd());
        block.push_back(std::move(statement));
      }
    }
    if (ends.size() == 0) return block;
    return tokens_.Expected(fmt::format("'{}'", *(ends.end() - 1)));
  }

  Status ExpectTagEnd() { return tokens_.ExpectKind(TokenKind::kBlockEnd, "'%}'"); }

  // The block of a tag that has been read up to its end; of those that end it, the last one has
  // been read when it returns.
  Result<Block> ParseBody(Names ends) {
    tokens_.SkipSign(":");
    TROUPE_RETURN_IF_ERROR(ExpectTagEnd());
    return ParseBlock(ends);
  }
  Result<Block> ParseLastBody(std::string_view end) {
    TROUPE_ASSIGN_OR_RETURN(Block body, ParseBody({end}));
    tokens_.Next();
    return body;
  }

  // A body that is a frame of its own in Jinja, where no condition from outside counts.
  template <typename Parse>
  auto InFrame(Parse parse) {
    const int conditions = std::exchange(expressions_.conditions(), 0);
    auto parsed = parse();
    expressions_.conditions() = conditions;
    return parsed;
  }

  Result<Statement> ParseStatement() {
    const int line = tokens_.Peek().line;
    if (!tokens_.Is(TokenKind::kName)) return tokens_.Expected("the name of a tag");
    const std::string name = tokens_.Peek().text;
    if (name == "for") return ParseFor(line);
    if (name == "if") return ParseIf(line);
    if (name == "set") return ParseSet(line);
    if (name == "with") return ParseWith(line);
    if (name == "macro") return ParseMacro(line);
    if (name == "call") return ParseCall(line);
    if (name == "filter") return ParseFilterBlock(line);
    if (name == "print") return ParsePrint(line);
    if (name == "generation") {
      tokens_.Next();
      Statement generation = Make(Statement::Kind::kGeneration, line);
      const int loops = std::exchange(loops_, 0);
      TROUPE_ASSIGN_OR_RETURN(generation.body,
                              InFrame([&] { return ParseLastBody("endgeneration"); }));
      loops_ = loops;
      return generation;
    }
    if (name == "break" || name == "continue") {
      if (loops_ == 0) return tokens_.Expected("that only inside of a loop");
      tokens_.Next();
      return Make(name == "break" ? Statement::Kind::kBreak : Statement::Kind::kContinue, line);
    }
    for (const std::string_view refused : {"include", "import", "from", "extends", "block"}) {
      if (name != refused) continue;
      return Error(Code::kUnimplemented,
                   "line {}: '{}' asks for another template, and a chat template has to be one "
                   "alone",
                   line, name);
    }
    return tokens_.Expected("a tag that is known");
  }

  Result<Target> ParseTargetName() {
    Target target;
    target.line = tokens_.Peek().line;
    if (tokens_.IsAnyName({"true", "false", "none", "True", "False", "None"})) {
      return tokens_.Expected("a name that can have a value");
    }
    TROUPE_ASSIGN_OR_RETURN(target.name, tokens_.ExpectName("a name"));
    return target;
  }

  // A name, or a tuple of targets with or without brackets.
  Result<Target> ParseTarget(bool in_brackets = false) {
    const TokenStream::Deeper deeper(tokens_);
    TROUPE_RETURN_IF_ERROR(deeper.Check());
    Target tuple;
    tuple.line = tokens_.Peek().line;
    tuple.is_tuple = true;
    bool has_comma = false;
    while (true) {
      if (tokens_.SkipSign("(")) {
        TROUPE_ASSIGN_OR_RETURN(Target inner, ParseTarget(true));
        TROUPE_RETURN_IF_ERROR(tokens_.ExpectSign(")"));
        tuple.parts.push_back(std::move(inner));
      } else {
        TROUPE_ASSIGN_OR_RETURN(Target name, ParseTargetName());
        tuple.parts.push_back(std::move(name));
      }
      if (!tokens_.SkipSign(",")) break;
      has_comma = true;
      const bool ends =
          in_brackets ? tokens_.IsSign(")") : tokens_.IsName("in") || tokens_.IsSign("=");
      if (ends) break;
    }
    if (has_comma) return tuple;
    Target only = std::move(tuple.parts[0]);
    return only;
  }

  Result<Statement> ParseFor(int line) {
    tokens_.Next();
    Statement loop = Make(Statement::Kind::kFor, line);
    TROUPE_ASSIGN_OR_RETURN(loop.target, ParseTarget());
    if (!tokens_.SkipName("in")) return tokens_.Expected("'in'");
    TROUPE_ASSIGN_OR_RETURN(loop.expr, expressions_.ParseTuple(false, "recursive"));
    if (tokens_.SkipName("if")) {
      TROUPE_ASSIGN_OR_RETURN(loop.condition, expressions_.ParseExpression());
    }
    if (tokens_.IsName("recursive")) {
      return Error(Code::kUnimplemented, "line {}: a recursive loop", line);
    }
    ++loops_;
    TROUPE_ASSIGN_OR_RETURN(loop.body, InFrame([&] { return ParseBody({"else", "endfor"}); }));
    --loops_;
    if (tokens_.Next().text == "else") {
      TROUPE_ASSIGN_OR_RETURN(loop.otherwise, InFrame([&] { return ParseLastBody("endfor"); }));
    }
    return loop;
  }

  Result<Statement> ParseIf(int line) {
    Statement choice = Make(Statement::Kind::kIf, line);
    ++expressions_.conditions();
    while (true) {
      tokens_.Next();  // if, elif
      Statement::Branch branch;
      TROUPE_ASSIGN_OR_RETURN(branch.condition, expressions_.ParseTuple(false));
      TROUPE_ASSIGN_OR_RETURN(branch.body, ParseBody({"elif", "else", "endif"}));
      choice.branches.push_back(std::move(branch));
      if (tokens_.IsName("elif")) continue;
      if (tokens_.Next().text == "else") {
        Statement::Branch otherwise;
        TROUPE_ASSIGN_OR_RETURN(otherwise.body, ParseLastBody("endif"));
        choice.branches.push_back(std::move(otherwise));
      }
      break;
    }
    --expressions_.conditions();
    return choice;
  }

  Result<Statement> ParseSet(int line) {
    tokens_.Next();
    Statement set = Make(Statement::Kind::kSet, line);
    if (tokens_.Following().kind == TokenKind::kSign && tokens_.Following().text == ".") {
      TROUPE_ASSIGN_OR_RETURN(set.target, ParseTargetName());
      tokens_.Next();
      TROUPE_ASSIGN_OR_RETURN(set.target.attribute, tokens_.ExpectName("the name of an attribute"));
    } else {
      TROUPE_ASSIGN_OR_RETURN(set.target, ParseTarget());
    }
    if (tokens_.SkipSign("=")) {
      TROUPE_ASSIGN_OR_RETURN(set.expr, expressions_.ParseTuple(true));
      return set;
    }
    set.kind = Statement::Kind::kSetBlock;
    TROUPE_ASSIGN_OR_RETURN(set.expr, expressions_.ParseFilters(nullptr, false));
    TROUPE_ASSIGN_OR_RETURN(set.body, InFrame([&] { return ParseLastBody("endset"); }));
    return set;
  }

  Result<Statement> ParseWith(int line) {
    tokens_.Next();
    Statement with = Make(Statement::Kind::kWith, line);
    while (!tokens_.Is(TokenKind::kBlockEnd)) {
      if (!with.assignments.empty()) TROUPE_RETURN_IF_ERROR(tokens_.ExpectSign(","));
      TROUPE_ASSIGN_OR_RETURN(Target target, ParseTarget());
      TROUPE_RETURN_IF_ERROR(tokens_.ExpectSign("="));
      TROUPE_ASSIGN_OR_RETURN(ExprPtr value, expressions_.ParseExpression());
      with.assignments.emplace_back(std::move(target), std::move(value));
    }
    TROUPE_ASSIGN_OR_RETURN(with.body, InFrame([&] { return ParseLastBody("endwith"); }));
    return with;
  }

  Status ParseParameters(Macro& macro) {
    TROUPE_RETURN_IF_ERROR(tokens_.ExpectSign("("));
    while (!tokens_.IsSign(")")) {
      if (!macro.parameters.empty()) TROUPE_RETURN_IF_ERROR(tokens_.ExpectSign(","));
      TROUPE_ASSIGN_OR_RETURN(const Target name, ParseTargetName());
      Macro::Parameter parameter{.name = name.name};
      if (tokens_.SkipSign("=")) {
        TROUPE_ASSIGN_OR_RETURN(parameter.otherwise, expressions_.ParseExpression());
      } else if (!macro.parameters.empty() && macro.parameters.back().otherwise) {
        return tokens_.Expected("a default, as the parameter before has one");
      }
      macro.parameters.push_back(std::move(parameter));
    }
    tokens_.Next();
    return OkStatus();
  }

  // The body of a macro, and what it says of what it takes.
  Status ParseMacroBody(Macro& macro, std::string_view end) {
    const int loops = std::exchange(loops_, 0);
    const auto outer = std::exchange(expressions_.said(), {});
    TROUPE_ASSIGN_OR_RETURN(macro.body, InFrame([&] { return ParseLastBody(end); }));
    const auto inner = expressions_.said();
    macro.uses_caller = inner.caller;
    macro.uses_varargs = inner.varargs;
    macro.uses_kwargs = inner.kwargs;
    expressions_.said() = {outer.caller || inner.caller, outer.varargs || inner.varargs,
                           outer.kwargs || inner.kwargs};
    loops_ = loops;
    return OkStatus();
  }

  Result<Statement> ParseMacro(int line) {
    tokens_.Next();
    Statement statement = Make(Statement::Kind::kMacro, line);
    auto macro = std::make_unique<Macro>();
    TROUPE_ASSIGN_OR_RETURN(statement.target, ParseTargetName());
    macro->name = statement.target.name;
    TROUPE_RETURN_IF_ERROR(ParseParameters(*macro));
    TROUPE_RETURN_IF_ERROR(ParseMacroBody(*macro, "endmacro"));
    statement.macro = std::move(macro);
    return statement;
  }

  Result<Statement> ParseCall(int line) {
    tokens_.Next();
    Statement call = Make(Statement::Kind::kCall, line);
    auto macro = std::make_unique<Macro>();
    macro->name = "caller";
    if (tokens_.IsSign("(")) TROUPE_RETURN_IF_ERROR(ParseParameters(*macro));
    TROUPE_ASSIGN_OR_RETURN(call.expr, expressions_.ParseExpression());
    if (call.expr->kind != Expr::Kind::kCall) return tokens_.Expected("a call before that");
    TROUPE_RETURN_IF_ERROR(ParseMacroBody(*macro, "endcall"));
    call.macro = std::move(macro);
    return call;
  }

  Result<Statement> ParseFilterBlock(int line) {
    tokens_.Next();
    Statement filter = Make(Statement::Kind::kFilterBlock, line);
    TROUPE_ASSIGN_OR_RETURN(filter.expr, expressions_.ParseFilters(nullptr, true));
    TROUPE_ASSIGN_OR_RETURN(filter.body, InFrame([&] { return ParseLastBody("endfilter"); }));
    return filter;
  }

  Result<Statement> ParsePrint(int line) {
    tokens_.Next();
    Statement print = Make(Statement::Kind::kOutput, line);
    TROUPE_ASSIGN_OR_RETURN(print.expr, expressions_.ParseExpression());
    return print;
  }

  TokenStream tokens_;
  ExpressionParser expressions_;
  int loops_ = 0;  // around the place, within the innermost macro
};

}  // namespace

Result<Block> ParseTemplate(std::string_view source) {
  if (source.size() > kLargestTemplate) {
    return Error(Code::kResourceExhausted, "a template of {} bytes, at most {} allowed",
                 source.size(), kLargestTemplate);
  }
  TROUPE_ASSIGN_OR_RETURN(std::vector<Token> tokens, Tokenize(source));
  return StatementParser(std::move(tokens)).Run();
}

}  // namespace troupe::jinja
