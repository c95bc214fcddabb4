#include "troupe/node_opener.h"

#include <unistd.h>

#include <cerrno>
#include <filesystem>

namespace troupe {

Status BecomeNodeProgram(const std::vector<std::string>& arguments) {
  std::error_code error;
  const std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe", error);
  if (error) return ErrnoStatus(error.value(), "/proc/self/exe");
  const std::string program = (self.parent_path() / "troupe-node").string();
  std::vector<std::string> words = {"troupe", "serve"};
  words.insert(words.end(), arguments.begin(), arguments.end());
  std::vector<char*> pointers;
  for (std::string& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  ::execv(program.c_str(), pointers.data());
  const int why = errno;
  if (why == ENOENT && !std::filesystem::exists(program, error)) {
    return Error(Code::kNotFound,
                 "nodes of clusters need troupe-node beside troupe, which is not at {}: 'make "
                 "build' or 'make install' builds it",
                 program);
  }
  return ErrnoStatus(why, program).WithContext("what runs nodes of clusters");
}

}  // namespace troupe
