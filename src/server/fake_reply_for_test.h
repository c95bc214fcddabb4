// A reply that keeps what it is told, and a client that leaves when a test says so.
#pragma once

#include <gtest/gtest.h>

#include <condition_variable>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include "server/http/http_reply.h"

namespace troupe {

class FakeReply final : public HttpReply {
 public:
  void Send(HttpResponse response) override {
    const std::lock_guard lock(mu_);
    EXPECT_FALSE(head_) << "it has begun";
    head_ = std::move(response);
    body_ = head_->body;
    ended_ = true;
    changed_.notify_all();
  }
  void Begin(HttpResponse head) override {
    const std::lock_guard lock(mu_);
    EXPECT_FALSE(head_) << "it has begun";
    head_ = std::move(head);
  }
  bool Write(std::string_view bytes) override {
    const std::lock_guard lock(mu_);
    if (gone_) return false;
    body_ += bytes;
    changed_.notify_all();
    return true;
  }
  void End() override {
    const std::lock_guard lock(mu_);
    ended_ = true;
    changed_.notify_all();
  }
  void Break(int status) override {
    {
      const std::lock_guard lock(mu_);
      EXPECT_TRUE(may_break);
      broken_ = status;
    }
    End();
  }
  bool MayBreak() const override { return may_break; }
  void Note(HttpUse use) override {
    const std::lock_guard lock(mu_);
    use_ = std::move(use);
  }
  void WhenGone(std::function<void()> call) override {
    {
      const std::lock_guard lock(mu_);
      if (!gone_) {
        when_gone_ = std::move(call);
        return;
      }
    }
    call();
  }

  void WhenDoubted(std::function<bool()> call) override {
    const std::lock_guard lock(mu_);
    when_doubted_ = std::move(call);
  }
  bool Doubt() {
    std::function<bool()> call;
    {
      const std::lock_guard lock(mu_);
      call = when_doubted_;
    }
    return call && call();
  }

  // The client leaves.
  void Leave() {
    std::function<void()> call;
    {
      const std::lock_guard lock(mu_);
      gone_ = true;
      call = std::exchange(when_gone_, nullptr);
    }
    if (call) call();
  }
  // Until that has come, or the response has ended.
  void WaitFor(std::string_view text) {
    std::unique_lock lock(mu_);
    changed_.wait(lock, [&] { return ended_ || body_.find(text) != body_.npos; });
  }
  void WaitForEnd() {
    std::unique_lock lock(mu_);
    changed_.wait(lock, [&] { return ended_; });
  }

  int status() const { return head().status; }
  HttpResponse head() const {
    const std::lock_guard lock(mu_);
    return head_.value_or(HttpResponse{.status = 0});
  }
  // The status with which it was broken off; 0: it was not.
  int broken() const {
    const std::lock_guard lock(mu_);
    return broken_;
  }
  HttpUse use() const {
    const std::lock_guard lock(mu_);
    return use_;
  }
  std::string body() const {
    const std::lock_guard lock(mu_);
    return body_;
  }

  bool may_break = true;  // set before the request

 private:
  mutable std::mutex mu_;
  std::condition_variable changed_;
  std::optional<HttpResponse> head_;
  std::string body_;
  bool ended_ = false, gone_ = false;
  int broken_ = 0;
  HttpUse use_;
  std::function<void()> when_gone_;
  std::function<bool()> when_doubted_;
};

}  // namespace troupe
