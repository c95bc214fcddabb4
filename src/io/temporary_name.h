// Names of unfinished files, next to the files they will replace, and the removal of those whose
// writer was killed. The writer of a temporary holds a lock on it. The lock ends with the process,
// so the next writer of the same path can tell which temporaries are abandoned.
#pragma once

#include <string>

#include "base/fd.h"
#include "base/status.h"

namespace troupe {

std::string FolderOf(const std::string& path);

// PATH.HOST-PID-N.troupe-tmp: different for every writer of every process of every machine that
// shares the folder, so that two writers of one path do not meet.
std::string TemporaryName(const std::string& path);

// Removes the temporaries of `path` that no process on this machine has locked. Those of other
// machines stay, since their locks may be invisible here. Where files cannot be locked it removes
// none.
void RemoveAbandonedTemporaries(const std::string& path);

// Keeps other processes from treating the file as abandoned. False if one already did, so that it
// has no name any more. Without effect where files cannot be locked.
bool HoldTemporary(const UniqueFd& file);

}  // namespace troupe
