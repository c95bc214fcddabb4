// Questions with answers to choose from, read from JSON lines: the layouts of published task sets
// (docs/formats/tasks.md), told apart by the fields of a line. Turns each into texts whose
// likelihood decides; knows no tokens and no model.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace troupe {

// What follows is scored, what stands before it is only read.
struct TaskOption {
  std::string context, continuation;

  bool operator==(const TaskOption&) const = default;
};

// With one option alone the question is whether each of its tokens is the likeliest.
struct TaskItem {
  std::size_t line = 0;  // of the file, from 1
  std::vector<TaskOption> options;
  std::size_t gold = 0;  // the right one

  bool operator==(const TaskItem&) const = default;
};

struct TaskFile {
  std::string path;
  std::vector<TaskItem> items;
};

// Plain, or compressed where the name ends in ".zst". An error names file, line, what was found and
// what was expected.
Result<TaskFile> ReadTaskFile(const std::string& path);
Result<TaskFile> ParseTaskFile(const std::string& path, std::string_view text);

}  // namespace troupe
