// The names that unfinished files have beside the ones they will replace, and what becomes of them
// when their writer was killed: who writes a temporary holds a lock on it, which ends with the
// process, so that the next writer of the same path can tell what nobody writes any more.
#pragma once

#include <string>

#include "base/fd.h"
#include "base/status.h"

namespace troupe {

std::string FolderOf(const std::string& path);

// PATH.HOST-PID-N.troupe-tmp: different for every writer of every process of every machine that
// shares the folder, so that two writers of one path do not meet.
std::string TemporaryName(const std::string& path);

// Removes the temporaries of `path` that nobody on this machine holds; those of other machines,
// whose locks may not be seen, stay. Where files cannot be locked it removes none.
void RemoveAbandonedTemporaries(const std::string& path);

// Keeps others from taking the file for abandoned. False if one had taken it for that already, so
// that it has no name any more. Without effect where files cannot be locked.
bool HoldTemporary(const UniqueFd& file);

}  // namespace troupe
