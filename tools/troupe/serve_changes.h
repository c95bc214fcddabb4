// What is different in a configuration that `troupe serve` reads again, and whether the model has
// to be opened anew for it. The command line cannot change, so only the file's options count, by
// how they are written: one that is written otherwise counts as changed even if it means the same.
// Pure.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace troupe {

// The options that a file sets, by their names there, with their values in order.
using FileOptions = std::map<std::string, std::vector<std::string>>;

struct ServeChanges {
  std::vector<std::string> names;  // of options, and of what else has changed
  bool needs_model = false;        // one of them has an effect only on a model that is opened

  bool Has(std::string_view name) const;
  // "api-keys, queue", or "nothing".
  std::string Text() const;

  bool operator==(const ServeChanges&) const = default;
};
ServeChanges ChangesBetween(const FileOptions& before, const FileOptions& after);

// Options that a server adopts while its model stays open. Options of sampling are among them.
std::vector<std::string> OptionsWithoutModel();

}  // namespace troupe
