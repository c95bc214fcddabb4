// What the handles of the fake driver stand for, and what each call does first.
#pragma once

#include <cuda.h>

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>

#include "fake_cuda/card_memory.h"
#include "fake_cuda/programs.h"
#include "fake_cuda/ptx.h"
#include "fake_cuda/stream.h"
#include "gpu/fake_cuda_for_test.h"

struct CUctx_st {
  CUdevice device = 0;
  std::mutex mu;  // guards what follows
  int retained = 0;
  troupe::FakeCardMemory memory;
  std::set<CUstream> streams;
};

struct CUstream_st {
  CUcontext context = nullptr;
  troupe::FakeStream work;
};

struct CUevent_st {
  troupe::FakeMarkPtr mark;  // of the last record; null: there was none
};

struct CUfunc_st {
  troupe::PtxEntry entry;
  const troupe::FakeKernel* kernel = nullptr;
};

struct CUmod_st {
  std::string program;
  std::map<std::string, CUfunc_st> functions;
};

namespace troupe {

inline constexpr int kMostFakeCards = 8;

FakeCuda& TheFakeCuda();
CUctx_st& FakeContextOf(CUdevice device);
bool IsFakeCard(CUdevice device);

void SetFakeContext(CUcontext context);  // of this thread
// That of this thread, or why a call that needs it gives an error.
CUresult CurrentFakeContext(CUcontext& context);
// What the process has lost its cards by: from then on every call that works with one gives this.
CUresult LostBy();
// That of this thread, where the process has lost no card.
CUresult SoundFakeContext(CUcontext& context);

void WaitWhile(const std::atomic<bool>& hangs);

// Hands a piece of work to a stream. It may fail, and takes the card with it then.
void AddFakeWork(CUstream stream, std::function<CUresult()> work);

}  // namespace troupe
