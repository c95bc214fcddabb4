// A system that starts no more threads while this lives, as under a limit of processes: the stack
// that new ones are to have fits into no address space. Threads that run are not touched.
#pragma once

#include <gtest/gtest.h>
#include <pthread.h>

#include <cstddef>

namespace troupe {

class NoMoreThreads {
 public:
  NoMoreThreads() {
    EXPECT_EQ(pthread_getattr_default_np(&before_), 0);
    pthread_attr_t none;
    EXPECT_EQ(pthread_attr_init(&none), 0);
    EXPECT_EQ(pthread_attr_setstacksize(&none, std::size_t{1} << 56), 0);
    EXPECT_EQ(pthread_setattr_default_np(&none), 0);
    pthread_attr_destroy(&none);
  }
  ~NoMoreThreads() {
    EXPECT_EQ(pthread_setattr_default_np(&before_), 0);
    pthread_attr_destroy(&before_);
  }
  NoMoreThreads(const NoMoreThreads&) = delete;
  NoMoreThreads& operator=(const NoMoreThreads&) = delete;

 private:
  pthread_attr_t before_;
};

}  // namespace troupe
