// The simulator against closed forms of queueing theory. The tolerance of a mean over N customers
// of a queue is a few standard errors; those are larger than for independent samples by about (1 +
// rho) / (1 - rho), as customers wait for the same ones before them.
#include <gtest/gtest.h>

#include <cmath>

#include "sim/event_queue.h"
#include "sim/setups_for_test.h"
#include "sim/shared_link.h"
#include "testing/test_seed.h"

namespace troupe {
namespace {

constexpr std::size_t kCustomers = 200'000;
constexpr double kInterval = 1, kService = 0.7;  // rho = 0.7

double Tolerance(double deviation) {
  const double rho = kService / kInterval;
  return 5 * deviation * (1 + rho) / (1 - rho) / std::sqrt(kCustomers);
}

SimulationResult Serve(std::vector<RecordedRequest> requests, double token_seconds) {
  SimulationSetup setup = SingleQueue(token_seconds);
  setup.workload.prompts = requests.size();
  setup.workload.users[0].recorded = std::move(requests);
  EXPECT_TRUE(Validate(setup).ok()) << Validate(setup).message();
  return Simulate(setup).value();
}

TEST(QueueingTest, ExponentialServiceWaitsAsInMM1) {
  Rng rng(TestSeed());
  constexpr double kTokens = 1000;  // of the mean service: rounding up adds half of one
  const SimulationResult result =
      Serve(PoissonRequests(kCustomers, kInterval, rng,
                            [&] {
                              const double tokens = -std::log(1 - rng.Uniform()) * kTokens;
                              return static_cast<std::uint32_t>(std::ceil(tokens));
                            }),
            kService / (kTokens + 0.5));
  const double rho = kService / kInterval;
  const double sojourn = kService / (1 - rho);  // and its deviation: it is exponential
  EXPECT_EQ(result.latency.count(), kCustomers);
  EXPECT_NEAR(result.latency.mean(), sojourn, Tolerance(sojourn));
  EXPECT_NEAR(result.servers[0].wait.mean(), rho * sojourn, Tolerance(sojourn));
  EXPECT_NEAR(result.servers[0].busy_seconds / result.seconds, rho, 0.01);
  // Quantiles of the exponential distribution, within two steps of the histogram.
  EXPECT_NEAR(result.latency.Quantile(0.95), -std::log(0.05) * sojourn, 0.08 * 3 * sojourn);
}

TEST(QueueingTest, ConstantServiceWaitsHalfAsLong) {
  Rng rng(TestSeed());
  const SimulationResult result =
      Serve(PoissonRequests(kCustomers, kInterval, rng, [] { return std::uint32_t{100}; }),
            kService / 100);
  const double rho = kService / kInterval;
  const double wait = rho / (1 - rho) * kService / 2;  // Pollaczek and Khinchine
  EXPECT_NEAR(result.servers[0].wait.mean(), wait, Tolerance(1.2 * wait));
  EXPECT_NEAR(result.latency.mean(), wait + kService, Tolerance(1.2 * wait));
}

TEST(QueueingTest, PoissonUsersComeAsOftenAsTheyShould) {
  SimulationSetup setup = SingleQueue(1e-9);
  setup.workload.prompts = 100'000;
  setup.workload.users[0].phases[0].mean_interval_s = 3;
  EXPECT_NEAR(Simulate(setup)->seconds / 100'000, 3, 5 * 3 / std::sqrt(100'000.0));
}

TEST(QueueingTest, PoissonUsersWaitAsOnlyPoissonArrivalsDo) {
  // The mean time between prompts would be right for any process; how long they wait is not.
  SimulationSetup setup = SingleQueue(kService);
  setup.workload.prompts = kCustomers;
  setup.workload.users[0].phases[0].mean_interval_s = kInterval;
  const double rho = kService / kInterval;
  const double wait = rho / (1 - rho) * kService / 2;
  EXPECT_NEAR(Simulate(setup)->servers[0].wait.mean(), wait, Tolerance(1.2 * wait));
}

TEST(SharedLinkTest, ALoneTransferHasTheWholeLink) {
  SharedLink link(100);
  link.Start(2, 50, 7);
  EXPECT_DOUBLE_EQ(link.NextEnd(), 2.5);
  EXPECT_EQ(link.End(2.5), 7u);
  EXPECT_TRUE(link.idle());
}

TEST(SharedLinkTest, TransfersShareItWhileTheyOverlap) {
  SharedLink link(100);
  link.Start(0, 100, 1);   // alone until 0.5: 50 of 100
  link.Start(0.5, 25, 2);  // shared: 2 ends after 0.5 s, when 1 has 75
  EXPECT_DOUBLE_EQ(link.NextEnd(), 1.0);
  EXPECT_EQ(link.End(1.0), 2u);
  EXPECT_DOUBLE_EQ(link.NextEnd(), 1.25);
  EXPECT_EQ(link.End(1.25), 1u);
}

TEST(SharedLinkTest, RandomTransfersStayAsLongAsInAProcessorSharingQueue) {
  // M/M/1 processor sharing: a transfer of x bytes stays x / bandwidth / (1 - rho) in the mean.
  Rng rng(TestSeed());
  constexpr double kRho = 0.6;
  SharedLink link(1);
  const auto exponential = [&] { return -std::log(1 - rng.Uniform()); };
  std::vector<double> began, sizes;
  double sum = 0, coming = exponential() / kRho;
  std::size_t ended = 0;
  while (ended < 200'000) {
    if (link.idle() || coming < link.NextEnd()) {
      began.push_back(coming);
      sizes.push_back(exponential());
      link.Start(coming, sizes.back(), static_cast<std::uint32_t>(began.size() - 1));
      coming += exponential() / kRho;
    } else {
      const double now = link.NextEnd();
      sum += now - began[link.End(now)];
      ++ended;
    }
  }
  const double expected = 1 / (1 - kRho);
  EXPECT_NEAR(sum / static_cast<double>(ended), expected,
              5 * 1.5 * expected * (1 + kRho) / (1 - kRho) / std::sqrt(200'000.0));
}

TEST(EventQueueTest, GivesEventsByTimeAndThenByOrder) {
  Rng rng(TestSeed());
  EventQueue events;
  for (std::uint32_t i = 0; i < 2000; ++i) {
    events.Add(static_cast<double>(rng.Below(50)), 0, i);
  }
  SimEvent last = events.Take();
  while (!events.empty()) {
    const SimEvent event = events.Take();
    ASSERT_TRUE(event.time > last.time ||
                (event.time == last.time && event.subject > last.subject));
    EXPECT_EQ(events.now(), event.time);
    last = event;
  }
  EXPECT_EQ(events.handled(), 2000u);
}

}  // namespace
}  // namespace troupe
