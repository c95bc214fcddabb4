#include "troupe/serve_changes.h"

#include <fmt/format.h>

#include <algorithm>

#include "troupe/option_table.h"
#include "troupe/sampler_flags.h"

namespace troupe {

bool ServeChanges::Has(std::string_view name) const {
  return std::ranges::find(names, name) != names.end();
}

std::string ServeChanges::Text() const {
  return names.empty() ? "nothing" : fmt::format("{}", fmt::join(names, ", "));
}

std::vector<std::string> OptionsWithoutModel() {
  std::vector<std::string> names = {
      "access-log", "allow-host",      "api-keys",   "cache-per-key", "cors",
      "drain-s",    "explain",         "log-format", "most-tokens",   "name",
      "pass-ms",    "pooling",         "queue",      "reload-wait-s", "request-s",
      "silence-s",  "tls-certificate", "tls-key",    "tokens"};
  SamplerFlags sampler;
  Options sampling("sampling");
  sampler.AddTo(sampling);
  for (const Option& option : sampling.all()) names.push_back(option.long_name().substr(2));
  return names;
}

ServeChanges ChangesBetween(const FileOptions& before, const FileOptions& after) {
  const std::vector<std::string> without_model = OptionsWithoutModel();
  FileOptions all = before;
  all.insert(after.begin(), after.end());
  ServeChanges changes;
  for (const auto& [name, values] : all) {
    const auto was = before.find(name), is = after.find(name);
    if (was != before.end() && is != after.end() && was->second == is->second) continue;
    changes.names.push_back(name);
    if (std::ranges::find(without_model, name) == without_model.end()) changes.needs_model = true;
  }
  return changes;
}

}  // namespace troupe
