// A thread that hands a device its work and waits for it. Who wants answers waits for the thread,
// and no longer than it likes: a driver that hangs, in a wait or in any other call, takes the
// thread with it and nobody else. Experts lie in numbered slots of the device's memory; which ones,
// and what is worth answering there, is decided elsewhere (expert/card).
//
// All memory that the device reads and writes is the worker's, so that it outlives work that nobody
// waits for any more. After a failure, or a wait that took too long, the device gets nothing more.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "base/bytes.h"
#include "base/clock.h"
#include "base/status.h"
#include "gpu/expert.h"
#include "gpu/usable_gpu.h"

namespace troupe {

struct GpuWorkerShape {
  GpuExpertMlp::Shape experts;
  std::uint32_t answers = 0;  // rows that experts give at most, before they are set anew
  std::uint32_t slots = 0;    // at most: fewer where the device has no room for them
  Bytes slot;
  std::uint32_t staging = 2;  // copies that can be under way
};

class GpuWorker {
 public:
  using JobId = std::uint64_t;

  // An expert that lies in a slot and answers rows of those that were set; the memory
  // of its matrices and biases is the slot's, whatever they say.
  struct Ask {
    std::uint32_t slot = 0;
    GpuMlp expert;
    bool has_biases = false;
    std::vector<std::uint32_t> rows;
    std::size_t first_answer = 0;  // the row of answers() where they begin
  };
  struct Copied {
    std::uint32_t slot = 0;
    double seconds = 0;
  };

  // In the device's memory without slots, and in the host's.
  static Bytes DeviceBytes(const GpuWorkerShape& shape);
  static Bytes HostBytes(const GpuWorkerShape& shape);

  // kResourceExhausted: there is not even room for two slots. Once it is made, nothing is
  // waited for longer than `longest`.
  static Result<std::unique_ptr<GpuWorker>> Create(TestedGpu gpu, const GpuWorkerShape& shape,
                                                   Nanos longest);
  // Waits for the work under way, as long as for any.
  ~GpuWorker();

  const std::string& name() const { return name_; }
  std::uint32_t slots() const;
  const GpuWorkerShape& shape() const;

  // Rows are set and answered layer by layer: while no job is under way `count` rows may be written
  // here, one after the other, for the jobs that begin afterwards.
  std::span<float> SetRows(std::uint32_t count);
  JobId Begin(std::vector<Ask> asks);
  // The same for one expert that is copied into its slot first, from what Stage gave.
  JobId BeginWithCopy(Ask ask, Bytes bytes);
  // How a job has ended; absent: it has not.
  std::optional<Status> Ended(JobId job);
  // kDeadlineExceeded: it takes too long, and nothing more is begun.
  Status Wait(JobId job);
  // That the job has taken since its turn came. Once it has ended well.
  double SecondsOf(JobId job) const;
  std::span<const float> answers() const;

  // Host memory for a slot's bytes; empty: all of it is in use. It is the caller's until the next
  // BeginCopy or BeginWithCopy.
  std::span<std::byte> Stage();
  // Behind what is asked for.
  void BeginCopy(std::uint32_t slot, Bytes bytes);
  // Copies that have ended since the last call, all of them well: where one has failed, status()
  // says so.
  std::vector<Copied> TakeCopied();
  std::uint32_t copies_under_way() const;

  // What the device has failed by; OK while it has not.
  Status status() const;

 private:
  struct State;
  GpuWorker(std::shared_ptr<State> state, std::thread thread, Nanos longest);

  bool Stop();  // whether it has
  JobId Add(std::vector<Ask> asks, std::optional<std::size_t> stage, Bytes bytes);

  std::shared_ptr<State> state_;  // the thread's, too
  std::thread thread_;
  std::string name_;
  Nanos longest_;
};

}  // namespace troupe
