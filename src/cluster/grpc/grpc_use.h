// gRPC as a library that several parts of a process use: its log is kept from the program's output,
// and its threads have ended before the process does. Channels and calls are their users' matter.
#pragma once

namespace troupe {

// Keeps gRPC's log from the program's output; all of it that users should know comes as a Status.
// What it says as it stops the program for a bug is a warning of ours. Before the first use of gRPC
// in a process; again does no harm.
void QuietGrpc();

// Held for as long as anything of gRPC is: the first member of what uses it. As the last one in the
// process goes it waits until gRPC's own threads have ended, 4 s at most. gRPC ends them by and by,
// after the pause of a channel that failed to connect: were the process to end before, they would
// run on while OpenSSL takes itself down.
class GrpcUse {
 public:
  GrpcUse();
  ~GrpcUse();
  GrpcUse(const GrpcUse&) = delete;
  GrpcUse& operator=(const GrpcUse&) = delete;
};

}  // namespace troupe
