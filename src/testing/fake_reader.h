// AsyncReader for tests: answers come from memory, in an order, with delays and faults that the
// test scripts. Nothing here waits; a Collect that could only wait gives the next answer in line,
// so that a test of a loop that would block for ever fails instead.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "io/async_reader.h"

namespace troupe {

class FakeReader final : public AsyncReader {
 public:
  enum class Fault {
    kNone,
    kError,    // EIO
    kShort,    // half of what was asked for
    kEnd,      // nothing, as past the end of the file
    kCorrupt,  // all bytes, one of them changed
    kGone      // ENODEV, and for every later request too
  };
  // What happens to a request; called once each, at Submit.
  using Script = std::function<Fault(const ReadRequest&)>;

  explicit FakeReader(std::size_t depth) : depth_(depth) {}

  void AddFile(int fd, std::span<const std::byte> bytes) { files_[fd] = bytes; }
  void SetScript(Script script) { script_ = std::move(script); }
  // While held, Collect gives nothing unless it is asked to wait: a slow medium.
  void Hold(bool held) { held_ = held; }
  // Answers in the reverse order of submission from now on.
  void Reverse(bool reverse) { reverse_ = reverse; }

  std::size_t submitted() const { return submitted_; }
  std::uint64_t bytes_read() const { return bytes_read_; }
  // (fd, offset) of every request, in the order of submission.
  const std::vector<std::pair<int, std::uint64_t>>& log() const { return log_; }

  std::string_view name() const override { return "fake"; }
  std::size_t depth() const override { return depth_; }
  std::size_t under_way() const override { return waiting_.size(); }
  void Submit(std::span<const ReadRequest> requests) override;
  void Collect(std::vector<ReadAnswer>& answers, std::optional<Nanos> wait) override;

 private:
  struct Waiting {
    ReadRequest request;
    Fault fault;
  };

  // Fills the target: it keeps its old bytes until then, as with a real medium.
  ReadAnswer Answer(const ReadRequest& request, Fault fault);

  std::size_t depth_;
  std::map<int, std::span<const std::byte>> files_;
  Script script_;
  bool held_ = false, reverse_ = false, gone_ = false;
  std::deque<Waiting> waiting_;
  std::size_t submitted_ = 0;
  std::uint64_t bytes_read_ = 0;
  std::vector<std::pair<int, std::uint64_t>> log_;
};

}  // namespace troupe
