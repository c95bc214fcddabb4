// The names that a part of a template sees: its own, then those of the parts around it. A macro
// keeps the scope in which it was made.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "text/jinja/value.h"

namespace troupe::jinja {

struct Scope : std::enable_shared_from_this<Scope> {
  explicit Scope(std::shared_ptr<Scope> outer_scope = nullptr) : outer(std::move(outer_scope)) {}

  const Value* Find(const std::string& name) const {
    for (const Scope* scope = this; scope != nullptr; scope = scope->outer.get()) {
      const auto found = scope->names.find(name);
      if (found != scope->names.end()) return &found->second;
    }
    return nullptr;
  }
  void Set(const std::string& name, Value value) { names.insert_or_assign(name, std::move(value)); }

  std::shared_ptr<Scope> outer;
  std::unordered_map<std::string, Value> names = {};
};

}  // namespace troupe::jinja
