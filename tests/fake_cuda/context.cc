#include "fake_cuda/context.h"

#include <array>
#include <chrono>
#include <thread>

namespace troupe {
namespace {

thread_local CUcontext context_of_thread = nullptr;

// Whether this piece of work is to be done; false: it is the one that the card is lost by.
bool TakeWork(std::atomic<int>& left) {
  int now = left;
  while (now > 0 && !left.compare_exchange_weak(now, now - 1)) {
  }
  return now != 0;
}

}  // namespace

FakeCuda& TheFakeCuda() {
  static FakeCuda fake;
  return fake;
}

CUctx_st& FakeContextOf(CUdevice device) {
  static std::array<CUctx_st, kMostFakeCards> contexts;
  CUctx_st& context = contexts[static_cast<std::size_t>(device)];
  context.device = device;
  return context;
}

bool IsFakeCard(CUdevice device) { return device >= 0 && device < TheFakeCuda().devices; }

void SetFakeContext(CUcontext context) { context_of_thread = context; }

CUresult CurrentFakeContext(CUcontext& context) {
  context = context_of_thread;
  if (context == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  const std::lock_guard lock(context->mu);
  return context->retained > 0 ? CUDA_SUCCESS : CUDA_ERROR_CONTEXT_IS_DESTROYED;
}

CUresult SoundFakeContext(CUcontext& context) {
  const CUresult current = CurrentFakeContext(context);
  return current == CUDA_SUCCESS ? LostBy() : current;
}

CUresult LostBy() { return static_cast<CUresult>(TheFakeCuda().lost.load()); }

void WaitWhile(const std::atomic<bool>& hangs) {
  while (hangs) std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

void AddFakeWork(CUstream stream, std::function<CUresult()> work) {
  stream->work.Add([work = std::move(work)] {
    WaitWhile(TheFakeCuda().work_hangs);
    if (LostBy() != CUDA_SUCCESS) return;
    const bool sound = TakeWork(TheFakeCuda().work_left);
    const CUresult done = sound ? work() : static_cast<CUresult>(TheFakeCuda().work_error.load());
    if (done != CUDA_SUCCESS) TheFakeCuda().lost = done;
  });
}

}  // namespace troupe
