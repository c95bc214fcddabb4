#include "troupe/options.h"

#include <fmt/format.h>

#include <filesystem>
#include <system_error>
#include <vector>

namespace troupe {
namespace {

std::vector<std::string> AllTypeNames() {
  std::vector<std::string> names;
  for (const TensorTypeInfo& info : AllTensorTypes()) names.emplace_back(info.name);
  return names;
}

// An hour's run should not end with a file that cannot be written.
Status CheckFolder(const std::string& path) {
  if (path == "-") return OkStatus();
  const std::filesystem::path folder = std::filesystem::path(path).parent_path();
  std::error_code error;
  if (folder.empty() || std::filesystem::is_directory(folder, error)) return OkStatus();
  return InvalidArgument("{}: there is no folder {}", path, folder.string());
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

Option& AddJsonOption(Options& options, std::string& path) {
  return options.Add("--json", path, "Write the results as JSON to this file (- for stdout)")
      .Check(CheckFolder)
      .Type("FILE");
}

}  // namespace troupe
