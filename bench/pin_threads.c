// Preloaded into llama.cpp's process: gives each thread of its CPU backend a processor of its own.
//
// The peer's build has no thread pool that lives from one decode to the next: every call creates
// its threads anew, and they wait for each other in spin loops at each operation's barriers. A
// scheduler that puts two of them on one processor, as Linux often does with threads that have no
// history, makes one spin through its time slice while the other, which it waits for, cannot run:
// that alone has been seen to cost llama.cpp two thirds of its speed. Beating an unlucky schedule
// proves nothing, so the comparison counts whichever of the two is faster.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <sched.h>
#include <stddef.h>
#include <string.h>

typedef int (*CreateFunction)(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*);

// The processors this process may use, as they were before anything was pinned.
static cpu_set_t allowed;
static int allowed_count;

__attribute__((constructor)) static void RememberAllowed(void) {
  if (sched_getaffinity(0, sizeof(allowed), &allowed) == 0) allowed_count = CPU_COUNT(&allowed);
}

// The set that holds only the nth allowed processor, counted around.
static cpu_set_t Nth(int n) {
  cpu_set_t one;
  CPU_ZERO(&one);
  n %= allowed_count;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (CPU_ISSET(cpu, &allowed) && n-- == 0) CPU_SET(cpu, &one);
  }
  return one;
}

static int CalledFromCpuBackend(const void* caller) {
  Dl_info info;
  return dladdr(caller, &info) != 0 && info.dli_fname != NULL &&
         strstr(info.dli_fname, "libggml-cpu") != NULL;
}

// Stands before the C library's function of this name. The thread that calls computes as well: it
// takes the first processor, those that it creates take the others in turn.
int pthread_create(pthread_t* thread, const pthread_attr_t* attributes, void* (*start)(void*),
                   void* argument) {
  static __thread int created;
  static CreateFunction create;
  if (create == NULL) create = (CreateFunction)dlsym(RTLD_NEXT, "pthread_create");
  if (attributes != NULL || allowed_count < 2 ||
      !CalledFromCpuBackend(__builtin_return_address(0))) {
    return create(thread, attributes, start, argument);
  }
  if (created == 0) {
    const cpu_set_t first = Nth(0);
    pthread_setaffinity_np(pthread_self(), sizeof(first), &first);
  }
  const cpu_set_t own = Nth(1 + created++ % (allowed_count - 1));
  pthread_attr_t pinned;
  pthread_attr_init(&pinned);
  pthread_attr_setaffinity_np(&pinned, sizeof(own), &own);
  const int result = create(thread, &pinned, start, argument);
  pthread_attr_destroy(&pinned);
  return result;
}
