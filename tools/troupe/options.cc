#include "troupe/options.h"

#include <fmt/format.h>

#include <string>
#include <vector>

#include "fetch/model_folder.h"
#include "troupe/output_path.h"

namespace troupe {
namespace {

std::vector<std::string> AllTypeNames() {
  std::vector<std::string> names;
  for (const TensorTypeInfo& info : AllTensorTypes()) names.emplace_back(info.name);
  return names;
}

}  // namespace

Option& AddTypeOption(Options& options, const std::string& name, TensorType& type,
                      const std::string& help) {
  const std::vector<std::string> names = AllTypeNames();
  return options.Add(name, type, fmt::format("{}: {}", help, fmt::join(names, ", ")))
      .Suggest(names)
      .Type("TYPE");
}

Option& AddTypeOption(Options& options, const std::string& name, std::optional<TensorType>& type,
                      const std::string& help) {
  return options.Add(name, type, help).Suggest(AllTypeNames()).Type("TYPE");
}

Option& AddThreadsOption(Options& options, std::size_t& threads) {
  constexpr int kMostThreads = 1024;
  return options.Add("-t,--threads", threads, "Number of threads (one for each available CPU)")
      .Between(1, kMostThreads)
      .Type("N");
}

Option& AddModelOption(Options& options, const std::string& names, std::string& path,
                       const std::string& help) {
  const auto take = [&path](const std::string& text) {
    TROUPE_ASSIGN_OR_RETURN(path, ModelPathFor(text));
    return OkStatus();
  };
  return options.AddParsed(names, take, help).NamesModels().Type("FILE");
}

Option& AddOutputOption(Options& options, const std::string& names, std::string& path,
                        const std::string& help) {
  return options.Add(names, path, help).Check(CheckOutputFile).Type("FILE");
}

Option& AddJsonOption(Options& options, std::string& path) {
  return options.Add("--json", path, "Write the results as JSON to this file (- for stdout)")
      .Check(CheckOutput)
      .Type("FILE");
}

}  // namespace troupe
