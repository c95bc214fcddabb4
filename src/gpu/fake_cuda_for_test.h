// What a test may ask of the driver of CUDA that computes on the processor (tests/fake_cuda),
// beside the driver API: what its device is, which faults it has, and what lives of what was made.
// It is loaded as libcuda.so.1, by who has its folder in LD_LIBRARY_PATH, and no card is used.
#pragma once

#include <dlfcn.h>

#include <atomic>
#include <cstdint>

namespace troupe {

struct FakeCuda {
  std::atomic<int> devices{1};
  std::atomic<int> capability{120};  // 10 x major + minor
  std::atomic<std::uint64_t> memory{std::uint64_t{2} << 30};
  std::atomic<std::uint64_t> taken{0};             // of it by another process
  std::atomic<int> init_error{0}, count_error{0};  // of cuInit, and of counting: a CUresult
  std::atomic<bool> init_hangs{false}, compiling_hangs{false}, work_hangs{false};
  // Of compiling: as a driver that is older than nvcc, a CUresult.
  std::atomic<int> compiling_error{0};
  // Pieces of work that are done before one fails, by this CUresult; negative: none does. The
  // process has lost its cards by it, as with the real driver: a new context does not help.
  std::atomic<int> work_left{-1}, work_error{719};
  std::atomic<int> lost{0};               // what by; 0, for the next test, is a new process
  std::atomic<int> copies_take_us{0};     // beside what they take
  std::atomic<bool> records_fail{false};  // events cannot be recorded

  // What was made and not given back.
  std::atomic<int> contexts{0}, streams{0}, events{0}, modules{0}, buffers{0}, host_buffers{0};
  // What was done since the library was loaded.
  std::atomic<std::uint64_t> launches{0}, copies_in{0}, copies_out{0}, waits{0};
};

// Null where the driver is another one, or there is none.
inline FakeCuda* FindFakeCuda() {
  void* const library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return nullptr;
  void* const find = dlsym(library, "TroupeFakeCuda");
  return find == nullptr ? nullptr : reinterpret_cast<FakeCuda* (*)()>(find)();
}

}  // namespace troupe
