// A reader that fails some of what it is asked, as a test decides read by read, and hands the rest
// to the reader behind it.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "io/async_reader.h"

namespace troupe {

class FailingReader final : public AsyncReader {
 public:
  // `fails` is asked once for every read; `message` is the failures'.
  FailingReader(std::unique_ptr<AsyncReader> behind, std::function<bool()> fails,
                std::string message)
      : behind_(std::move(behind)), fails_(std::move(fails)), message_(std::move(message)) {}

  std::string_view name() const override { return "failing"; }
  std::size_t depth() const override { return behind_->depth(); }
  std::size_t under_way() const override { return behind_->under_way() + failed_.size(); }
  void Submit(std::span<const ReadRequest> requests) override {
    for (const ReadRequest& request : requests) {
      if (fails_()) {
        failed_.push_back(
            {.tag = request.tag, .status = Status(Code::kUnavailable, message_), .bytes = 0});
      } else {
        behind_->Submit({&request, 1});
      }
    }
  }
  void Collect(std::vector<ReadAnswer>& answers, std::optional<Nanos> wait) override {
    behind_->Collect(answers, failed_.empty() ? wait : Nanos{0});
    answers.insert(answers.end(), failed_.begin(), failed_.end());
    failed_.clear();
  }
  bool RegisterMemory(std::span<std::byte> memory) override {
    return behind_->RegisterMemory(memory);
  }
  bool ForgetMemory(std::span<std::byte> memory) override { return behind_->ForgetMemory(memory); }

 private:
  std::unique_ptr<AsyncReader> behind_;
  std::function<bool()> fails_;
  std::string message_;
  std::vector<ReadAnswer> failed_;
};

}  // namespace troupe
