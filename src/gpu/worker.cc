#include "gpu/worker.h"

#include <algorithm>
#include <deque>
#include <map>
#include <system_error>
#include <utility>

#include "base/check.h"
#include "base/mutex.h"
#include "gpu/driver_call.h"

namespace troupe {
namespace {

// How often copies under way are looked at while there is nothing else to do.
constexpr Nanos kLook = 100'000;
constexpr std::uint32_t kLeastTier = 2;

Bytes BytesOfRows(std::uint64_t rows, std::uint32_t width) {
  return Bytes(rows * width * sizeof(float));
}

std::span<float> Floats(GpuHostMemory& memory) {
  return {reinterpret_cast<float*>(memory.bytes().data()), memory.bytes().size() / sizeof(float)};
}

}  // namespace

struct GpuWorker::State {
  struct Job {
    JobId id = 0;                        // 0: a copy that nobody waits for
    std::uint32_t rows = 0;              // that were set before it
    bool sets_rows = false;              // and no job before has brought there
    std::vector<Ask> asks;               // one where something is copied first
    std::optional<std::size_t> staging;  // that holds the bytes
    std::uint32_t slot = 0;              // that they go to
    Bytes bytes;
  };

  struct JobEnd {
    Status status;
    double seconds = 0;
  };

  struct CopyUnderWay {
    GpuEventPtr event;
    std::uint32_t slot = 0;
    std::size_t staging = 0;
    Nanos begun = 0;
  };

  explicit State(TestedGpu tested) : gpu(std::move(tested)) {}

  void Run();

  TestedGpu gpu;
  GpuWorkerShape shape;
  std::optional<GpuExpertMlp> mlp;
  std::vector<std::unique_ptr<GpuBuffer>> slots;
  std::unique_ptr<GpuHostMemory> x, out;
  std::vector<std::unique_ptr<GpuHostMemory>> staging;
  MonotonicClock clock;

  // Of the caller's thread.
  std::uint32_t rows = 0;
  bool rows_are_new = false;
  std::optional<std::size_t> staged;

  Mutex mu;
  CondVar begun, ended;
  std::deque<Job> jobs TROUPE_GUARDED_BY(mu);
  std::map<JobId, JobEnd> ends TROUPE_GUARDED_BY(mu);
  JobId last TROUPE_GUARDED_BY(mu) = 0;
  std::vector<bool> staging_used TROUPE_GUARDED_BY(mu);
  std::vector<Copied> copied TROUPE_GUARDED_BY(mu);
  Status status TROUPE_GUARDED_BY(mu);
  bool stopping TROUPE_GUARDED_BY(mu) = false;
  bool over TROUPE_GUARDED_BY(mu) = false;

 private:
  std::optional<Job> NextJob(bool copies_under_way);
  Result<GpuEventPtr> CopyIn(GpuLane lane, const Job& job);
  Status Answer(const Job& job);
  void DoCopy(const Job& job, std::vector<CopyUnderWay>& copies);
  void DoJob(const Job& job);
  void LookAtCopies(std::vector<CopyUnderWay>& copies);
  // What was handed in before an earlier job failed is not begun.
  Status StatusNow() {
    MutexLock lock(mu);
    return status;
  }
  bool Stopping() {
    MutexLock lock(mu);
    return stopping;
  }
  void Fail(const Status& why) TROUPE_REQUIRES(mu) {
    if (status.ok()) status = why;
  }
};

// Nothing: there are copies to look at, or it is to end.
std::optional<GpuWorker::State::Job> GpuWorker::State::NextJob(bool copies_under_way) {
  MutexLock lock(mu);
  if (jobs.empty() && !stopping && copies_under_way) begun.WaitFor(mu, kLook);
  while (jobs.empty() && !stopping && !copies_under_way) begun.Wait(mu);
  if (jobs.empty() || stopping) return std::nullopt;
  Job job = std::move(jobs.front());
  jobs.pop_front();
  return job;
}

Result<GpuEventPtr> GpuWorker::State::CopyIn(GpuLane lane, const Job& job) {
  return gpu.device->CopyIn(lane, staging[*job.staging]->bytes().first(job.bytes.count()),
                            *slots[job.slot], Bytes(0), {});
}

Status GpuWorker::State::Answer(const Job& job) {
  std::vector<GpuEventPtr> events;
  const auto begin = [&]() -> Status {
    std::vector<GpuEventPtr> after;
    if (job.sets_rows) {
      TROUPE_ASSIGN_OR_RETURN(GpuEventPtr set, mlp->SetRows(Floats(*x).first(std::size_t{job.rows} *
                                                                             shape.experts.width)));
      events.push_back(std::move(set));
    }
    if (job.staging) {
      TROUPE_ASSIGN_OR_RETURN(GpuEventPtr there, CopyIn(GpuLane::kDemand, job));
      events.push_back(there);
      after.push_back(std::move(there));
    }
    for (const Ask& ask : job.asks) {
      GpuMlp expert = ask.expert;
      const GpuBuffer* const slot = slots[ask.slot].get();
      expert.gate.memory = expert.up.memory = expert.down.memory = slot;
      const GpuBuffer* const biases = ask.has_biases ? slot : nullptr;
      expert.gate_bias.memory = expert.up_bias.memory = expert.down_bias.memory = biases;
      const std::size_t width = shape.experts.width;
      TROUPE_ASSIGN_OR_RETURN(
          GpuEventPtr ran,
          mlp->Run(expert, ask.rows,
                   Floats(*out).subspan(ask.first_answer * width, ask.rows.size() * width), after));
      events.push_back(std::move(ran));
    }
    return OkStatus();
  };
  Status answered = begin();
  for (const GpuEventPtr& event : events) {
    Status done = event->Wait();
    if (answered.ok()) answered = std::move(done);
  }
  return answered;
}

void GpuWorker::State::DoJob(const Job& job) {
  const Nanos start = clock.Now();
  Status answered = StatusNow();
  if (answered.ok()) answered = Answer(job);
  const double seconds = static_cast<double>(clock.Now() - start) * 1e-9;
  MutexLock lock(mu);
  if (!answered.ok()) Fail(answered);
  if (job.staging) staging_used[*job.staging] = false;
  ends[job.id] = {status, seconds};
  ended.NotifyAll();
}

void GpuWorker::State::DoCopy(const Job& job, std::vector<CopyUnderWay>& copies) {
  const Nanos start = clock.Now();
  const Status so_far = StatusNow();
  Result<GpuEventPtr> event = so_far.ok() ? CopyIn(GpuLane::kPrefetch, job) : so_far;
  if (event.ok()) {
    copies.push_back({*std::move(event), job.slot, *job.staging, start});
    return;
  }
  MutexLock lock(mu);
  Fail(event.status());
  staging_used[*job.staging] = false;
}

void GpuWorker::State::LookAtCopies(std::vector<CopyUnderWay>& copies) {
  std::erase_if(copies, [&](const CopyUnderWay& copy) {
    if (!copy.event->Ended()) return false;
    const Status well = copy.event->Wait();
    MutexLock lock(mu);
    staging_used[copy.staging] = false;
    if (well.ok()) {
      copied.push_back({copy.slot, static_cast<double>(clock.Now() - copy.begun) * 1e-9});
    } else {
      Fail(well);
    }
    return true;
  });
}

void GpuWorker::State::Run() {
  std::vector<CopyUnderWay> copies;
  while (!Stopping()) {
    if (const std::optional<Job> job = NextJob(!copies.empty())) {
      if (job->id == 0) {
        DoCopy(*job, copies);
      } else {
        DoJob(*job);
      }
    }
    LookAtCopies(copies);
  }
  for (const CopyUnderWay& copy : copies) (void)copy.event->Wait();
  MutexLock lock(mu);
  over = true;
  ended.NotifyAll();
}

Bytes GpuWorker::DeviceBytes(const GpuWorkerShape& shape) {
  return GpuExpertMlp::BytesFor(shape.experts);
}

Bytes GpuWorker::HostBytes(const GpuWorkerShape& shape) {
  return BytesOfRows(shape.experts.rows, shape.experts.width) +
         BytesOfRows(shape.answers, shape.experts.width) + shape.staging * shape.slot;
}

Result<std::unique_ptr<GpuWorker>> GpuWorker::Create(TestedGpu gpu, const GpuWorkerShape& shape,
                                                     Nanos longest) {
  TROUPE_CHECK(shape.slots >= kLeastTier && shape.staging > 0);
  auto state = std::make_shared<State>(std::move(gpu));
  GpuDevice& device = *state->gpu.device;
  state->shape = shape;
  TROUPE_ASSIGN_OR_RETURN(state->mlp, GpuExpertMlp::Create(*state->gpu.kernels, shape.experts));
  for (std::uint32_t slot = 0; slot < shape.slots; ++slot) {
    Result<std::unique_ptr<GpuBuffer>> buffer = device.Allocate(shape.slot);
    if (!buffer.ok()) {
      // What others hold of the device is theirs.
      const bool full = buffer.status().code() == Code::kResourceExhausted;
      if (!full || slot < kLeastTier) return buffer.status();
      break;
    }
    state->slots.push_back(*std::move(buffer));
  }
  const std::uint32_t width = shape.experts.width;
  TROUPE_ASSIGN_OR_RETURN(state->x, device.AllocateHost(BytesOfRows(shape.experts.rows, width)));
  TROUPE_ASSIGN_OR_RETURN(state->out, device.AllocateHost(BytesOfRows(shape.answers, width)));
  for (std::uint32_t i = 0; i < shape.staging; ++i) {
    TROUPE_ASSIGN_OR_RETURN(auto staging, device.AllocateHost(shape.slot));
    state->staging.push_back(std::move(staging));
  }
  {
    MutexLock lock(state->mu);
    state->staging_used.assign(shape.staging, false);
  }
  std::thread thread;
  try {
    thread = std::thread([state] { state->Run(); });
  } catch (const std::system_error&) {
    return Error(Code::kResourceExhausted, "{}: the system gives no thread for it",
                 device.info().name);
  }
  return std::unique_ptr<GpuWorker>(new GpuWorker(std::move(state), std::move(thread), longest));
}

GpuWorker::GpuWorker(std::shared_ptr<State> state, std::thread thread, Nanos longest)
    : state_(std::move(state)),
      thread_(std::move(thread)),
      name_(state_->gpu.device->info().name),
      longest_(longest) {}

// A thread that hangs would take this one with it. It keeps the state for as long as it runs.
GpuWorker::~GpuWorker() {
  if (Stop()) {
    thread_.join();
  } else {
    thread_.detach();
    NoteHungDriver();
  }
}

bool GpuWorker::Stop() {
  MutexLock lock(state_->mu);
  state_->stopping = true;
  state_->begun.NotifyAll();
  // What was given up has had its time.
  const bool hangs = state_->status.code() == Code::kDeadlineExceeded;
  const Nanos end = state_->clock.Now() + (hangs ? 0 : longest_);
  while (!state_->over && state_->clock.Now() < end) {
    state_->ended.WaitFor(state_->mu, end - state_->clock.Now());
  }
  return state_->over;
}

std::uint32_t GpuWorker::slots() const { return static_cast<std::uint32_t>(state_->slots.size()); }

const GpuWorkerShape& GpuWorker::shape() const { return state_->shape; }

std::span<float> GpuWorker::SetRows(std::uint32_t count) {
  TROUPE_CHECK(count > 0 && count <= state_->shape.experts.rows);
  MutexLock lock(state_->mu);
  TROUPE_CHECK(!state_->status.ok() || state_->ends.size() == state_->last);
  state_->last = 0;
  state_->ends.clear();
  state_->rows = count;
  state_->rows_are_new = true;
  return Floats(*state_->x).first(std::size_t{count} * state_->shape.experts.width);
}

GpuWorker::JobId GpuWorker::Begin(std::vector<Ask> asks) {
  return Add(std::move(asks), std::nullopt, Bytes(0));
}

GpuWorker::JobId GpuWorker::BeginWithCopy(Ask ask, Bytes bytes) {
  TROUPE_CHECK(state_->staged);
  std::vector<Ask> asks;
  asks.push_back(std::move(ask));
  return Add(std::move(asks), std::exchange(state_->staged, std::nullopt), bytes);
}

GpuWorker::JobId GpuWorker::Add(std::vector<Ask> asks, std::optional<std::size_t> stage,
                                Bytes bytes) {
  TROUPE_CHECK(!asks.empty() && state_->rows > 0 && bytes <= state_->shape.slot);
  for (const Ask& ask : asks) {
    TROUPE_CHECK(ask.slot < state_->slots.size());
    TROUPE_CHECK(ask.first_answer + ask.rows.size() <= state_->shape.answers);
  }
  MutexLock lock(state_->mu);
  const JobId id = ++state_->last;
  if (!state_->status.ok()) {
    state_->ends[id] = {state_->status, 0};
    return id;
  }
  if (stage) state_->staging_used[*stage] = true;
  const std::uint32_t slot = asks.front().slot;
  state_->jobs.push_back({.id = id,
                          .rows = state_->rows,
                          .sets_rows = std::exchange(state_->rows_are_new, false),
                          .asks = std::move(asks),
                          .staging = stage,
                          .slot = slot,
                          .bytes = bytes});
  state_->begun.NotifyOne();
  return id;
}

std::optional<Status> GpuWorker::Ended(JobId job) {
  MutexLock lock(state_->mu);
  const auto end = state_->ends.find(job);
  if (end == state_->ends.end()) return std::nullopt;
  return end->second.status;
}

Status GpuWorker::Wait(JobId job) {
  MutexLock lock(state_->mu);
  const Nanos end = state_->clock.Now() + longest_;
  while (!state_->ends.contains(job)) {
    if (state_->status.code() == Code::kDeadlineExceeded) return state_->status;
    const Nanos left = end - state_->clock.Now();
    if (left <= 0) {
      state_->status = Error(Code::kDeadlineExceeded, "no answer within {:.1f} s",
                             static_cast<double>(longest_) * 1e-9);
      return state_->status;
    }
    state_->ended.WaitFor(state_->mu, left);
  }
  return state_->ends.at(job).status;
}

double GpuWorker::SecondsOf(JobId job) const {
  MutexLock lock(state_->mu);
  return state_->ends.at(job).seconds;
}

std::span<const float> GpuWorker::answers() const { return Floats(*state_->out); }

std::span<std::byte> GpuWorker::Stage() {
  MutexLock lock(state_->mu);
  if (!state_->status.ok()) return {};
  for (std::size_t i = 0; i < state_->staging_used.size(); ++i) {
    if (state_->staging_used[i]) continue;
    state_->staged = i;
    return state_->staging[i]->bytes();
  }
  return {};
}

void GpuWorker::BeginCopy(std::uint32_t slot, Bytes bytes) {
  TROUPE_CHECK(state_->staged && slot < state_->slots.size() && bytes <= state_->shape.slot);
  const std::size_t stage = *std::exchange(state_->staged, std::nullopt);
  MutexLock lock(state_->mu);
  if (!state_->status.ok()) return;
  state_->staging_used[stage] = true;
  state_->jobs.push_back({.staging = stage, .slot = slot, .bytes = bytes});
  state_->begun.NotifyOne();
}

std::vector<GpuWorker::Copied> GpuWorker::TakeCopied() {
  MutexLock lock(state_->mu);
  return std::exchange(state_->copied, {});
}

std::uint32_t GpuWorker::copies_under_way() const {
  MutexLock lock(state_->mu);
  return static_cast<std::uint32_t>(std::ranges::count(state_->staging_used, true));
}

Status GpuWorker::status() const {
  MutexLock lock(state_->mu);
  return state_->status;
}

}  // namespace troupe
