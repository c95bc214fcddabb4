#include "server/http/http_outbox.h"

#include <gtest/gtest.h>

#include <thread>

namespace troupe {
namespace {

using Put = HttpOutbox::Put;

std::shared_ptr<UnreadPool> Plenty() { return std::make_shared<UnreadPool>(1 << 20); }
void Ignore() {}

TEST(HttpOutbox, OnlyTheFirstOfAnIdleBoxWakesTheSender) {
  HttpOutbox box(100, Plenty(), Ignore);
  EXPECT_EQ(box.Add("a"), Put::kTakenAndIdle);
  EXPECT_EQ(box.Add("b"), Put::kTaken);
  EXPECT_EQ(box.Take(), "ab");
  EXPECT_EQ(box.Add("c"), Put::kTaken);  // somebody sends
  EXPECT_EQ(box.Take(), "c");
  EXPECT_EQ(box.Take(), "");
  EXPECT_EQ(box.Add("d"), Put::kTakenAndIdle);
}

TEST(HttpOutbox, AClientMayHaveSoMuchToReadAndNoMore) {
  HttpOutbox box(10, Plenty(), Ignore);
  EXPECT_EQ(box.Add("12345678"), Put::kTakenAndIdle);
  EXPECT_EQ(box.Add("123"), Put::kFull);
  EXPECT_EQ(box.Take(), "12345678");
  EXPECT_EQ(box.Add("123"), Put::kFull);  // it is on its way, and not read
  box.Sent(8);
  EXPECT_EQ(box.Add("123"), Put::kTaken);
}

TEST(HttpOutbox, WhoHasMostToReadIsToldToGoWhereAllHaveTooMuch) {
  const auto all = std::make_shared<UnreadPool>(300'000);
  int told = 0;
  HttpOutbox slow(1 << 20, all, [&] { ++told; }), reads(1 << 20, all, Ignore);
  EXPECT_EQ(slow.Add(std::string(250'000, 'x')), Put::kTakenAndIdle);
  EXPECT_EQ(slow.Add(std::string(100'000, 'x')), Put::kFull);  // for its own
  EXPECT_EQ(reads.Add(std::string(100'000, 'x')), Put::kTakenAndIdle);
  EXPECT_EQ(told, 1);
  EXPECT_TRUE(slow.is_let_go());
  EXPECT_FALSE(reads.is_let_go());
  slow.Close();  // which gives back what will never be sent
  EXPECT_EQ(all->unread(), 100'000u);
  for (std::string piece; !(piece = reads.Take()).empty();) reads.Sent(piece.size());
  EXPECT_EQ(all->unread(), 0u);
}

TEST(HttpOutbox, RoomIsGivenBackWhileALargePieceIsOnItsWay) {
  const auto all = std::make_shared<UnreadPool>(1 << 20);
  HttpOutbox box(10, all, Ignore);
  std::string large;
  for (int i = 0; large.size() < 1'000'000; ++i) large += std::to_string(i);
  EXPECT_EQ(box.Add(large), Put::kTakenAndIdle);
  std::string sent;
  for (std::string piece; !(piece = box.Take()).empty();) {
    EXPECT_LE(piece.size(), 80'000u);
    EXPECT_EQ(all->unread(), large.size() - sent.size());
    sent += piece;
    box.Sent(piece.size());
  }
  EXPECT_EQ(sent, large);
  EXPECT_EQ(all->unread(), 0u);
}

TEST(HttpOutbox, OnePieceMayBeLargerThanTheLimit) {
  HttpOutbox box(10, Plenty(), Ignore);
  EXPECT_EQ(box.Add(std::string(100, 'x')), Put::kTakenAndIdle);
}

TEST(HttpOutbox, AClosedBoxTakesNothingAndSaysSoOnce) {
  HttpOutbox box(10, Plenty(), Ignore);
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
  HttpOutbox box(10, Plenty(), Ignore);
  int calls = 0;
  box.WhenClosed([&] { ++calls; });
  box.ForgetWhenClosed();
  box.Close();
  EXPECT_EQ(calls, 0);
}

TEST(HttpOutbox, KeepsTheOrderOfAWriterWhileAnotherThreadSends) {
  const auto memory = Plenty();
  HttpOutbox box(1 << 20, memory, Ignore);
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
  EXPECT_EQ(memory->unread(), 0u);
}

}  // namespace
}  // namespace troupe
