// A stream of gRPC with nothing upon it, to know what a link adds: an end that sends every message
// back, and one that asks again as soon as the last message is back. One thread each. For
// benchmarks only.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "base/clock.h"

namespace troupe {

// Sends back what one caller sends, until that one is gone; `tell` gets the port first.
int AnswerPings(void (*tell)(std::uint16_t port));

class GrpcPing {
 public:
  explicit GrpcPing(std::uint16_t port);  // of another process
  ~GrpcPing();
  GrpcPing(const GrpcPing&) = delete;
  GrpcPing& operator=(const GrpcPing&) = delete;

  // There and back, of an empty message each time. False: the other end is gone.
  bool Run(int times, std::vector<Nanos>& taken);

 private:
  struct Call;
  std::unique_ptr<Call> call_;
};

}  // namespace troupe
