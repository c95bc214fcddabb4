// A folder for one test, removed with all it holds when the test ends. For tests only.
#pragma once

#include <cstddef>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>

#include "base/check.h"

namespace troupe {

class TempFolder {
 public:
  TempFolder() {
    std::string name = (std::filesystem::temp_directory_path() / "troupe_test.XXXXXX").string();
    TROUPE_CHECK(::mkdtemp(name.data()) != nullptr);
    path_ = name;
  }
  ~TempFolder() { std::filesystem::remove_all(path_); }
  TempFolder(const TempFolder&) = delete;
  TempFolder& operator=(const TempFolder&) = delete;

  const std::filesystem::path& path() const { return path_; }
  std::string PathOf(std::string_view name) const { return (path_ / name).string(); }

  std::string Write(std::string_view name, std::string_view contents) const {
    std::ofstream(PathOf(name), std::ios::binary) << contents;
    return PathOf(name);
  }
  std::string Read(std::string_view name) const {
    std::ifstream in(PathOf(name), std::ios::binary | std::ios::ate);
    if (!in) return {};
    std::string contents(static_cast<std::size_t>(in.tellg()), '\0');
    in.seekg(0).read(contents.data(), static_cast<std::streamsize>(contents.size()));
    return contents;
  }
  std::size_t Count() const {
    return static_cast<std::size_t>(std::distance(std::filesystem::directory_iterator(path_), {}));
  }

 private:
  std::filesystem::path path_;
};

}  // namespace troupe
