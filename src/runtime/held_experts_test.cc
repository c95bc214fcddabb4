#include "runtime/held_experts.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

namespace troupe {
namespace {

constexpr ExpertGrid kGrid{.layers = 2, .experts = 4};

Mlp Marked(std::size_t mark) {
  Mlp mlp;
  mlp.gate.rows = mlp.up.rows = mlp.down.rows = mark;
  return mlp;
}

TEST(HeldExperts, WhatIsHeldIsFoundAndNothingElse) {
  HeldExperts held(kGrid);
  held.Add({1, 2}, Marked(7));
  EXPECT_TRUE(held.Holds({1, 2}));
  EXPECT_FALSE(held.Holds({1, 3}));
  EXPECT_FALSE(held.Find({0, 2}));
  const auto use = held.Find({1, 2});
  ASSERT_TRUE(use);
  EXPECT_EQ(use->weights().gate.rows, 7u);
  EXPECT_EQ(held.count(), 1u);
}

TEST(HeldExperts, WhatWasRemovedIsFreeOnlyWhenNobodyUsesItAnyMore) {
  HeldExperts held(kGrid);
  held.Add({0, 1}, Marked(1));
  {
    const auto first = held.Find({0, 1}), second = held.Find({0, 1});
    held.Remove({0, 1});
    EXPECT_FALSE(held.Find({0, 1}));
    EXPECT_FALSE(held.IsFree({0, 1}));
    EXPECT_EQ(first->weights().up.rows, 1u);
  }
  EXPECT_TRUE(held.IsFree({0, 1}));
  held.Add({0, 1}, Marked(2));
  EXPECT_EQ(held.Find({0, 1})->weights().up.rows, 2u);
  EXPECT_EQ(held.count(), 1u);
}

TEST(HeldExperts, AnExpertNeverChangesWhileSomebodyUsesIt) {
  HeldExperts held(kGrid);
  std::atomic<bool> stop = false;
  std::atomic<std::size_t> uses = 0;
  std::vector<std::thread> readers;
  for (int i = 0; i < 3; ++i) {
    readers.emplace_back([&] {
      while (!stop) {
        const auto use = held.Find({0, 0});
        if (!use) continue;
        const std::size_t mark = use->weights().gate.rows;
        std::this_thread::yield();
        if (use->weights().gate.rows != mark || use->weights().down.rows != mark) std::abort();
        ++uses;
      }
    });
  }
  for (std::size_t mark = 1; mark <= 300 || uses < 100; ++mark) {
    held.Add({0, 0}, Marked(mark));
    std::this_thread::yield();
    held.Remove({0, 0});
    while (!held.IsFree({0, 0})) std::this_thread::yield();
  }
  stop = true;
  for (std::thread& reader : readers) reader.join();
  EXPECT_GE(uses, 100u);
}

}  // namespace
}  // namespace troupe
