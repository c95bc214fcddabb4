#include "text/grammar/json_schema.h"

#include <algorithm>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "text/grammar/grammar_builder.h"
#include "text/grammar/grammar_facts.h"
#include "text/grammar/number_rules.h"
#include "text/grammar/object_rules.h"
#include "text/grammar/pattern_rules.h"
#include "text/grammar/schema_needs.h"
#include "text/utf8.h"

namespace troupe {
namespace {

constexpr std::size_t kMostSchemaRules = 40'000;

std::size_t CharactersIn(const std::string& text) {
  return static_cast<std::size_t>(
      std::ranges::count_if(text, [](char c) { return (c & 0xC0) != 0x80; }));
}

class SchemaCompiler {
 public:
  explicit SchemaCompiler(const Json& document) : document_(document), reader_(document) {}

  Result<Grammar> Compile(const Schemas& of) {
    if (!document_.IsObject() && !document_.IsBool()) {
      return InvalidArgument("schema '#': expected an object, true or false");
    }
    TROUPE_ASSIGN_OR_RETURN(const GrammarItem root, RuleFor(of));
    // Rules are made one after the other and not within each other: schemas may refer to
    // themselves.
    while (!undefined_.empty()) {
      const auto [rule, schemas] = std::move(undefined_.front());
      undefined_.pop_front();
      TROUPE_ASSIGN_OR_RETURN(std::vector<SchemaNeeds> choices, reader_.Read(schemas));
      std::vector<GrammarSequence> alternatives;
      for (const SchemaNeeds& needs : choices) {
        TROUPE_RETURN_IF_ERROR(AddTexts(needs, alternatives));
      }
      builder_.Define(rule, std::move(alternatives));
      if (builder_.rules() > kMostSchemaRules) {
        return Error(Code::kResourceExhausted, "the schema takes more than {} rules",
                     kMostSchemaRules);
      }
    }
    Grammar grammar = std::move(builder_).Take(root.rule);
    if (!FindFacts(grammar).productive[grammar.root]) {
      return InvalidArgument("schema '#': no value satisfies it");
    }
    TROUPE_RETURN_IF_ERROR(Validate(grammar));
    return grammar;
  }

 private:
  Result<GrammarItem> RuleFor(Schemas schemas) {
    std::erase_if(schemas, [](const Json* schema) { return schema->IsBool() && schema->AsBool(); });
    if (schemas.empty()) return builder_.Json("value");
    Schemas key = schemas;
    std::ranges::sort(key, std::less<>());
    const auto known = rules_.find(key);
    if (known != rules_.end()) return GrammarItem::Rule(known->second);
    const RuleId rule = builder_.Declare("schema");
    rules_.emplace(std::move(key), rule);
    undefined_.emplace_back(rule, std::move(schemas));
    return GrammarItem::Rule(rule);
  }

  Status AddTexts(const SchemaNeeds& needs, std::vector<GrammarSequence>& out) {
    if (needs.values) return AddValues(needs, out);
    const auto add = [&](GrammarItem item) { out.push_back({std::move(item)}); };
    if ((needs.types & kJsonNull) != 0) add(GrammarItem::Text("null"));
    if ((needs.types & kJsonBoolean) != 0) add(builder_.Json("boolean"));
    if ((needs.types & kJsonInteger) != 0) AddNumbers(needs, out);
    if ((needs.types & kJsonString) != 0) {
      TROUPE_ASSIGN_OR_RETURN(GrammarItem text, AddString(needs));
      add(std::move(text));
    }
    if ((needs.types & kJsonArray) != 0) {
      TROUPE_ASSIGN_OR_RETURN(GrammarItem array, AddArray(needs));
      add(std::move(array));
    }
    if ((needs.types & kJsonObject) != 0) {
      TROUPE_ASSIGN_OR_RETURN(GrammarItem object, AddObjectOf(needs));
      add(std::move(object));
    }
    return OkStatus();
  }

  // Those of the listed values that are valid beside the other keywords.
  Status AddValues(const SchemaNeeds& needs, std::vector<GrammarSequence>& out) {
    for (const Json& value : *needs.values) {
      const unsigned type = TypeOf(value);
      if ((type & needs.types) == 0) continue;
      bool fits = true;
      bool is_known = true;
      if (type == kJsonString) {
        const std::size_t length = CharactersIn(value.AsString());
        fits = length >= needs.least_length && length <= needs.most_length.value_or(kUnbounded);
        is_known = !needs.pattern && !needs.format;
      } else if ((type & (kJsonInteger | kJsonFraction)) != 0 && (needs.least || needs.most)) {
        const auto number = DecimalOf(value);
        is_known = number.has_value();
        fits = is_known && IsBetween(*number, needs);
      } else if (type == kJsonArray) {
        is_known = needs.arrays.empty() && needs.least_items == 0 && !needs.most_items;
      } else if (type == kJsonObject) {
        is_known = needs.objects.empty() && needs.required.empty();
      }
      if (!is_known) {
        return SchemaError(reader_.PointerTo(*needs.origin), "enum",
                           fmt::format("the value {} beside keywords that say more of such values "
                                       "is not supported",
                                       value.Dump().substr(0, 60)));
      }
      if (fits) out.push_back({GrammarItem::Text(value.Dump())});
    }
    return OkStatus();
  }

  static bool IsBetween(const Decimal& number, const SchemaNeeds& needs) {
    if (needs.least) {
      const int order = Compare(number, needs.least->value);
      if (order < 0 || (order == 0 && needs.least->is_exclusive)) return false;
    }
    if (needs.most) {
      const int order = Compare(number, needs.most->value);
      if (order > 0 || (order == 0 && needs.most->is_exclusive)) return false;
    }
    return true;
  }

  void AddNumbers(const SchemaNeeds& needs, std::vector<GrammarSequence>& out) {
    const bool has_fractions = (needs.types & kJsonFraction) != 0;
    if (!needs.least && !needs.most) {
      out.push_back({builder_.Json(has_fractions ? "number" : "integer")});
      return;
    }
    out.push_back(
        {builder_.Add("number", has_fractions ? NumbersBetween(needs.least, needs.most)
                                              : IntegersBetween(needs.least, needs.most))});
  }

  Result<GrammarItem> AddString(const SchemaNeeds& needs) {
    const bool has_length = needs.least_length > 0 || needs.most_length.has_value();
    const int rules = (has_length ? 1 : 0) + (needs.pattern ? 1 : 0) + (needs.format ? 1 : 0);
    if (rules > 1) {
      return SchemaError(reader_.PointerTo(*needs.origin), needs.pattern ? "pattern" : "format",
                         "pattern, format and a length together are not supported");
    }
    if (rules == 0) return builder_.Json("string");
    GrammarItem content =
        builder_.Json("char").Times(needs.least_length, needs.most_length.value_or(kUnbounded));
    if (needs.most_length.value_or(kUnbounded) < needs.least_length) {
      return builder_.Add("string", {});
    }
    if (needs.format) content = builder_.Json(*needs.format);
    if (needs.pattern) {
      const auto pattern = AddPattern(*needs.pattern, builder_);
      if (!pattern.ok()) {
        return SchemaError(reader_.PointerTo(*needs.origin), "pattern", pattern.status().message());
      }
      content = *pattern;
    }
    const GrammarItem quote = GrammarItem::Text("\"");
    return builder_.Add("string", {{quote, content, quote}});
  }

  Result<GrammarItem> AddArray(const SchemaNeeds& needs) {
    std::size_t prefix = 0;
    for (const auto& part : needs.arrays) prefix = std::max(prefix, part.prefix.size());
    const std::uint32_t least = needs.least_items;
    const std::uint32_t most = needs.most_items.value_or(kUnbounded);
    if (least > most) return builder_.Add("array", {});
    const GrammarItem blanks = builder_.Json("ws");
    const GrammarItem comma = GrammarItem::Text(",");
    // The items from the last of the prefix to the first: each is followed by what comes after it.
    TROUPE_ASSIGN_OR_RETURN(const GrammarItem rest, RuleFor(needs.SchemasOfItem(prefix)));
    const GrammarItem one_more = builder_.Add("more-items", {{comma, blanks, rest}});
    const auto first_of_rest = static_cast<std::uint32_t>(std::max<std::size_t>(prefix, 1));
    GrammarItem later = GrammarItem::Text("");
    if (most > first_of_rest) {
      later = one_more.Times(least > first_of_rest ? least - first_of_rest : 0,
                             most == kUnbounded ? kUnbounded : most - first_of_rest);
    }
    for (std::size_t i = prefix; i-- > 1;) {
      TROUPE_ASSIGN_OR_RETURN(const GrammarItem item, RuleFor(needs.SchemasOfItem(i)));
      std::vector<GrammarSequence> alternatives;
      if (i < most) alternatives.push_back({comma, blanks, item, later});
      if (i >= least) alternatives.push_back({});
      later = builder_.Add("items", std::move(alternatives));
    }
    const GrammarItem open = GrammarItem::Text("[");
    const GrammarItem close = GrammarItem::Text("]");
    std::vector<GrammarSequence> alternatives;
    if (least == 0) alternatives.push_back({open, blanks, close});
    if (most > 0) {
      TROUPE_ASSIGN_OR_RETURN(const GrammarItem item, RuleFor(needs.SchemasOfItem(0)));
      alternatives.push_back({open, blanks, item, later, blanks, close});
    }
    return builder_.Add("array", std::move(alternatives));
  }

  Result<GrammarItem> AddObjectOf(const SchemaNeeds& needs) {
    std::vector<PropertyRule> properties;
    for (const std::string& name : needs.PropertyNames()) {
      TROUPE_ASSIGN_OR_RETURN(const GrammarItem value, RuleFor(needs.SchemasOf(name)));
      properties.push_back({name, value, needs.Requires(name)});
    }
    std::optional<GrammarItem> additional;
    if (const auto schemas = needs.AdditionalSchemas()) {
      TROUPE_ASSIGN_OR_RETURN(additional, RuleFor(*schemas));
    }
    return AddObject(properties, additional, builder_);
  }

  const Json& document_;
  SchemaReader reader_;
  GrammarBuilder builder_;
  std::map<Schemas, RuleId> rules_;  // by schemas in ascending order
  std::deque<std::pair<RuleId, Schemas>> undefined_;
};

}  // namespace

Result<Grammar> CompileJsonSchema(const Json& schema) {
  return CompileJsonSchema(schema, {&schema});
}

Result<Grammar> CompileJsonSchema(const Json& document, const Schemas& schemas) {
  return SchemaCompiler(document).Compile(schemas);
}

}  // namespace troupe
