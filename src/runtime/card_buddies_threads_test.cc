// The text of the device's substitution (gpu/buddies.cl) as C++, an item a thread: whichever of
// them comes first to an expert that several slots want, the answers are the policy's. A driver
// that runs the items of a group one after the other, as PoCL does, cannot show that.
#include <gtest/gtest.h>

#include <atomic>
#include <barrier>
#include <bit>
#include <thread>
#include <vector>

#include "base/exact_exp.h"
#include "base/exact_log.h"
#include "runtime/card_buddies_for_test.h"
#include "testing/test_seed.h"

namespace troupe {
namespace {

constexpr std::uint32_t kItems = 8, kMostExperts = 32;
constexpr auto kExpSeries = ExactExpNumbers::kCoefficients;
constexpr auto kLogSeries = ExactLogNumbers::kCoefficients;

thread_local std::uint32_t group_of_thread = 0, item_of_thread = 0;
std::barrier all_items(kItems);

namespace as_threads {

using uint = std::uint32_t;
using ulong = std::uint64_t;

uint SwapIf(uint* word, uint from, uint to) {
  std::atomic_ref(*word).compare_exchange_strong(from, to);
  return from;
}

// What names_opencl.cl and kernel_source.cc define for a device.
#define KERNEL inline
#define ITEMS_ARE(count)
#define DEVICE inline
#define GLOBAL
#define LOCAL static
#define CONSTANT const
#define GROUP(dimension) group_of_thread
#define ITEM item_of_thread
#define WAIT_FOR_GROUP() all_items.arrive_and_wait()
#define COUNT_OF_BITS(word) static_cast<uint>(std::popcount(word))
#define COUNT(counter) ((void)std::atomic_ref(*(counter)).fetch_add(1))
#define LOCAL_OR(word, bits) ((void)std::atomic_ref(*(word)).fetch_or(bits))
#define LOCAL_SWAP(word, from, to) SwapIf(word, from, to)
#define DOUBLE_OF(bits) std::bit_cast<double>(bits)
#define BITS_OF_DOUBLE(number) std::bit_cast<ulong>(number)
#define BUDDY_ITEMS kItems
#define BUDDY_EXPERTS kMostExperts
#define EXP64_LEAST ExactExpNumbers::kLeast
#define EXP64_LOG2E ExactExpNumbers::kLog2E
#define EXP64_LN2_HIGH ExactExpNumbers::kLn2High
#define EXP64_LN2_LOW ExactExpNumbers::kLn2Low
#define EXP64_COUNT 14u
#define EXP_TERM(k) kExpSeries[k]
#define EXP64_COEFFICIENTS                                                                   \
  EXP_TERM(0), EXP_TERM(1), EXP_TERM(2), EXP_TERM(3), EXP_TERM(4), EXP_TERM(5), EXP_TERM(6), \
      EXP_TERM(7), EXP_TERM(8), EXP_TERM(9), EXP_TERM(10), EXP_TERM(11), EXP_TERM(12),       \
      EXP_TERM(13)
#define LOG64_ROOT_OF_TWO ExactLogNumbers::kRootOfTwo
#define LOG64_LN2_HIGH ExactLogNumbers::kLn2High
#define LOG64_LN2_LOW ExactLogNumbers::kLn2Low
#define LOG64_COUNT 7u
#define LOG_TERM(k) kLogSeries[k]
#define LOG64_COEFFICIENTS \
  LOG_TERM(0), LOG_TERM(1), LOG_TERM(2), LOG_TERM(3), LOG_TERM(4), LOG_TERM(5), LOG_TERM(6)
#define BETA_CLOSED 0
#define TAU_CLOSED 1
#define GAMMA_CLOSED 2
#define RHO_CLOSED 3
#define NO_LIST 4
#define NONE_RESIDENT 5
#define SUBSTITUTED 6
#include "gpu/buddies.cl"

}  // namespace as_threads

std::vector<std::uint32_t> AnswersOfThreads(const RoutedForCard& routed, const GpuBuddyLists& lists,
                                            const GpuBuddyRules& rules) {
  std::vector<std::uint32_t> answers(routed.chosen.size()), counts(kGpuBuddyCounts);
  const auto tokens = static_cast<std::uint32_t>(routed.chosen.size() / routed.top_k);
  const float* const scores = routed.scores.empty() ? nullptr : routed.scores.data();
  const auto bits = [](double number) { return std::bit_cast<std::uint64_t>(number); };
  std::vector<std::thread> items;
  for (std::uint32_t item = 0; item < kItems; ++item) {
    items.emplace_back([&, item] {
      item_of_thread = item;
      for (group_of_thread = 0; group_of_thread < tokens; ++group_of_thread) {
        as_threads::AnswerByBuddies(
            routed.experts, routed.top_k, tokens, routed.chosen.data(), routed.weights.data(),
            scores, routed.resident.data(), routed.missing.data(), lists.begins.data(), 0,
            lists.experts.data(), lists.shares.data(), rules.best_first, rules.rho, rules.rank,
            bits(rules.eta), bits(rules.tau), bits(rules.temperature), bits(rules.gamma),
            bits(rules.beta), rules.budget, answers.data(), counts.data());
        all_items.arrive_and_wait();  // groups have their memory one after the other
      }
    });
  }
  for (std::thread& item : items) item.join();
  return answers;
}

TEST(CardBuddiesThreads, DecideAsThePolicyDoesWhoeverComesFirst) {
  Rng rng(TestSeed());
  std::uint64_t substituted = 0;
  for (int round = 0; round < 400; ++round) {
    const LayerForTest layer = RandomLayer(rng);
    const auto lists = RandomBuddies(rng, layer.experts, layer.top_k, /*tokens=*/12);
    Buddies::Options options{.gates = {.tau = -1}};
    options.rho = rng.Below(2) == 0 ? kNoLimit : static_cast<std::uint32_t>(rng.Below(4));
    options.eta = rng.Below(2) == 0 ? 0 : 4 * rng.Uniform();
    options.best_first = rng.Below(2) == 0;
    SubstitutionChain chain = ChainOf<Buddies>(lists, options);
    const RoutedLayer view = layer.View();
    const std::vector<std::uint32_t> expected = ExpertsOf(chain.Answer(view));
    substituted += chain.counts().substituted;
    ASSERT_EQ(AnswersOfThreads(RoutedForCard(layer), ListsFor(*lists), RulesFor(options)), expected)
        << "round " << round << ", " << ToString(chain);
  }
  EXPECT_GT(substituted, 100u);
}

}  // namespace
}  // namespace troupe
