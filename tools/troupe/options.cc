#include "troupe/options.h"

#include <filesystem>
#include <system_error>

#include "base/thread_pool.h"

namespace troupe {
namespace {

std::string TypeNames() {
  std::string names;
  for (const TensorTypeInfo& info : AllTensorTypes()) {
    if (!names.empty()) names += ", ";
    names += info.name;
  }
  return names;
}

// CLI11's convention: an empty string is no complaint.
std::string ComplainAboutType(const std::string& text) {
  if (TensorTypeByName(text)) return {};
  return fmt::format("'{}' is no type; expected one of {}", text, TypeNames());
}

std::string ComplainAboutBytes(const std::string& text) {
  const Result<Bytes> bytes = ParseBytes(text);
  return bytes.ok() ? std::string() : bytes.status().message();
}

// An hour's run should not end with a file that cannot be written.
std::string ComplainAboutFolder(const std::string& path) {
  if (path == "-") return {};
  const std::filesystem::path folder = std::filesystem::path(path).parent_path();
  std::error_code error;
  if (folder.empty() || std::filesystem::is_directory(folder, error)) return {};
  return fmt::format("{}: there is no folder {}", path, folder.string());
}

template <typename T>
CLI::Option* AddType(CLI::App& app, const std::string& name, T& type, const std::string& help) {
  return app
      .add_option_function<std::string>(
          name, [&type](const std::string& text) { type = TensorTypeByName(text).value(); }, help)
      ->check(CLI::Validator(ComplainAboutType, ""))
      ->type_name("TYPE");
}

}  // namespace

CLI::Option* AddTypeOption(CLI::App& app, const std::string& name, TensorType& type,
                           const std::string& help) {
  return AddType(app, name, type, fmt::format("{}: {}", help, TypeNames()));
}

CLI::Option* AddTypeOption(CLI::App& app, const std::string& name, std::optional<TensorType>& type,
                           const std::string& help) {
  return AddType(app, name, type, help);
}

CLI::Option* AddBytesOption(CLI::App& app, const std::string& name, Bytes& bytes,
                            const std::string& help) {
  return app
      .add_option_function<std::string>(
          name, [&bytes](const std::string& text) { bytes = ParseBytes(text).value(); }, help)
      ->check(CLI::Validator(ComplainAboutBytes, ""))
      ->type_name("SIZE");
}

CLI::Option* AddThreadsOption(CLI::App& app, std::size_t& threads) {
  constexpr std::size_t kMostThreads = 1024;
  return app.add_option("--threads", threads, "Threads to use (all CPUs)")
      ->check(Between(std::size_t{1}, kMostThreads))
      ->type_name("N");
}

CLI::Option* AddJsonOption(CLI::App& app, std::string& path) {
  return app.add_option("--json", path, "Write the figures as JSON to this file (- for stdout)")
      ->check(CLI::Validator(ComplainAboutFolder, ""))
      ->type_name("FILE");
}

}  // namespace troupe
