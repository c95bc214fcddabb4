#include "text/draft/drafters.h"

#include <array>
#include <utility>

#include "text/draft/control_drafter.h"
#include "text/draft/grammar_drafter.h"
#include "text/draft/lookup_drafter.h"

namespace troupe {
namespace {

constexpr std::array<std::pair<std::string_view, DraftChoice>, 9> kChoices = {{
    {"auto", {.lookup = true, .grammar = true, .model = true, .heads = true}},
    {"off", {}},
    {"lookup", {.lookup = true}},
    {"grammar", {.grammar = true}},
    {"draft", {.model = true}},
    {"heads", {.heads = true}},
    {"resident", {.resident = true}},
    {"wrong", {.wrong = true}},
    {"random", {.random = true}},
}};

}  // namespace

Result<DraftChoice> ParseDraftChoice(std::string_view name) {
  std::string names;
  for (const auto& [known, choice] : kChoices) {
    if (known == name) return choice;
    names += names.empty() ? "" : ", ";
    names += known;
  }
  return InvalidArgument("drafts of '{}', expected one of {}", name, names);
}

std::vector<std::string> DraftChoiceNames() {
  std::vector<std::string> names;
  for (const auto& [name, choice] : kChoices) names.emplace_back(name);
  return names;
}

std::vector<std::unique_ptr<Drafter>> MakeDrafters(
    const DraftChoice& choice, std::size_t tokens,
    const std::shared_ptr<const TokenConstraint>& constraint) {
  using Kind = ControlDrafter::Kind;
  std::vector<std::unique_ptr<Drafter>> drafters;
  if (choice.grammar && constraint != nullptr) {
    drafters.push_back(std::make_unique<GrammarDrafter>(constraint));
  }
  if (choice.lookup) drafters.push_back(std::make_unique<LookupDrafter>(tokens));
  if (choice.wrong) drafters.push_back(std::make_unique<ControlDrafter>(Kind::kWrong));
  if (choice.random) drafters.push_back(std::make_unique<ControlDrafter>(Kind::kRandom));
  return drafters;
}

Bytes DrafterBytes(const DraftChoice& choice, std::size_t tokens) {
  return choice.lookup ? LookupDrafter::BytesFor(tokens) : Bytes();
}

}  // namespace troupe
