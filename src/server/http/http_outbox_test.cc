#include "server/http/http_outbox.h"

#include <gtest/gtest.h>

#include <thread>

namespace troupe {
namespace {

using Put = HttpOutbox::Put;

std::shared_ptr<ByteBudget> Plenty() { return std::make_shared<ByteBudget>(1 << 20); }

TEST(HttpOutbox, OnlyTheFirstOfAnIdleBoxWakesTheSender) {
  HttpOutbox box(100, Plenty());
  EXPECT_EQ(box.Add("a"), Put::kTakenAndIdle);
  EXPECT_EQ(box.Add("b"), Put::kTaken);
  EXPECT_EQ(box.Take(), "ab");
  EXPECT_EQ(box.Add("c"), Put::kTaken);  // somebody sends
  EXPECT_EQ(box.Take(), "c");
  EXPECT_EQ(box.Take(), "");
  EXPECT_EQ(box.Add("d"), Put::kTakenAndIdle);
}

TEST(HttpOutbox, AClientMayHaveSoMuchToReadAndNoMore) {
  HttpOutbox box(10, Plenty());
  EXPECT_EQ(box.Add("12345678"), Put::kTakenAndIdle);
  EXPECT_EQ(box.Add("123"), Put::kFull);
  EXPECT_EQ(box.Take(), "12345678");
  EXPECT_EQ(box.Add("123"), Put::kFull);  // it is on its way, and not read
  box.Sent(8);
  EXPECT_EQ(box.Add("123"), Put::kTaken);
}

TEST(HttpOutbox, AllClientsTogetherMayHaveSoMuchToRead) {
  const auto all = std::make_shared<ByteBudget>(20);
  HttpOutbox first(100, all);
  EXPECT_EQ(first.Add("1234567890"), Put::kTakenAndIdle);
  {
    HttpOutbox second(100, all);
    EXPECT_EQ(second.Add("12345678901"), Put::kFull);
    EXPECT_EQ(second.Add("1234567890"), Put::kTakenAndIdle);
    EXPECT_EQ(first.Add("1"), Put::kFull);
  }
  EXPECT_EQ(first.Add("1"), Put::kTaken);  // what the other had to read is gone with it
  EXPECT_EQ(first.Take(), "12345678901");
  first.Sent(11);
  EXPECT_EQ(all->left(), 20u);
}

TEST(HttpOutbox, OnePieceMayBeLargerThanTheLimit) {
  HttpOutbox box(10, Plenty());
  EXPECT_EQ(box.Add(std::string(100, 'x')), Put::kTakenAndIdle);
}

TEST(HttpOutbox, AClosedBoxTakesNothingAndSaysSoOnce) {
  HttpOutbox box(10, Plenty());
  int calls = 0;
  box.WhenClosed([&] { ++calls; });
  box.Add("a");
  box.Close();
  box.Close();
  EXPECT_EQ(calls, 1);
  EXPECT_EQ(box.Add("b"), Put::kGone);
  EXPECT_EQ(box.Take(), "");
  box.WhenClosed([&] { ++calls; });
  EXPECT_EQ(calls, 2);  // at once
}

TEST(HttpOutbox, WhatIsForgottenIsNotCalled) {
  HttpOutbox box(10, Plenty());
  int calls = 0;
  box.WhenClosed([&] { ++calls; });
  box.ForgetWhenClosed();
  box.Close();
  EXPECT_EQ(calls, 0);
}

TEST(HttpOutbox, KeepsTheOrderOfAWriterWhileAnotherThreadSends) {
  const auto memory = std::make_shared<ByteBudget>(1 << 20);
  HttpOutbox box(1 << 20, memory);
  constexpr int kPieces = 20'000;
  std::thread writer([&] {
    for (int i = 0; i < kPieces; ++i) box.Add(std::to_string(i) + ",");
    box.Add("end");
  });
  std::string all;
  while (!all.ends_with("end")) {
    const std::string bytes = box.Take();
    box.Sent(bytes.size());
    all += bytes;
  }
  writer.join();
  std::string expected;
  for (int i = 0; i < kPieces; ++i) expected += std::to_string(i) + ",";
  EXPECT_EQ(all, expected + "end");
  EXPECT_EQ(memory->left(), 1u << 20);
}

}  // namespace
}  // namespace troupe
