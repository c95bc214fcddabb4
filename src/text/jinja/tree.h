// A template as a tree: expressions and statements, each with its line. The parser makes it and the
// interpreter walks it; nothing changes it.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "text/jinja/value.h"

namespace troupe::jinja {

struct Expr;
using ExprPtr = std::unique_ptr<const Expr>;

struct CallArguments {
  std::vector<ExprPtr> positional;
  std::vector<std::pair<std::string, ExprPtr>> named;
  ExprPtr more_positional;  // *list
  ExprPtr more_named;       // **dict
};

struct Expr {
  enum class Kind {
    kConstant,
    kName,
    kList,
    kTuple,
    kDict,         // operands: key, value, key, value
    kConditional,  // condition, then, otherwise (null if there is none)
    kOr,
    kAnd,
    kNot,
    kCompare,  // a chain: operands, with `signs` between them
    kBinary,   // the operator is the name
    kConcat,
    kNegate,
    kPlus,
    kAttribute,  // operand.name
    kItem,       // operand[operand]
    kSlice,      // operand[from:to:step], each of which may be null
    kCall,       // operand(call)
    kFilter,     // operand | name(call); the operand of a filter block is null
    kTest,       // operand is name(call)
  };
  Kind kind;
  int line = 0;
  int height = 1;  // of the tree below: bounds every recursion over it
  std::string name = {};
  Value constant = {};
  std::vector<ExprPtr> operands = {};
  std::vector<std::string> signs = {};
  CallArguments call = {};
};

// What `set` and `for` give values to.
struct Target {
  int line = 0;
  std::string name = {};
  std::string attribute = {};  // of the namespace `name`; otherwise empty
  bool is_tuple = false;
  std::vector<Target> parts = {};  // of a tuple
};

struct Statement;
using Block = std::vector<Statement>;

struct Macro {
  struct Parameter {
    std::string name;
    ExprPtr otherwise;  // null: undefined if it is not given
  };
  std::string name;
  std::vector<Parameter> parameters;
  Block body;
  // Whether the body says these names, and so takes more than its parameters.
  bool uses_caller = false, uses_varargs = false, uses_kwargs = false;
};

struct Statement {
  enum class Kind {
    kText,      // writes `text`
    kOutput,    // writes the value of `expr`
    kFor,       // target in expr if condition: body, otherwise
    kIf,        // branches
    kSet,       // target = expr
    kSetBlock,  // target = what body writes, through the filter expr if there is one
    kWith,      // assignments, then body
    kMacro,
    kCall,         // the call `expr` with the macro as its caller
    kFilterBlock,  // what body writes, through the filter expr
    kGeneration,   // body: what the assistant writes, which changes nothing here
    kBreak,
    kContinue,
  };
  struct Branch {
    ExprPtr condition;  // null for else
    Block body;
  };
  Kind kind;
  int line = 0;
  std::string text = {};
  ExprPtr expr = {};
  ExprPtr condition = {};
  Target target = {};
  Block body = {};
  Block otherwise = {};
  std::vector<Branch> branches = {};
  std::vector<std::pair<Target, ExprPtr>> assignments = {};
  std::unique_ptr<const Macro> macro = {};
};

}  // namespace troupe::jinja
