#include "expert/substitution/substitution_spec.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <sstream>
#include <string>
#include <vector>

namespace troupe {
namespace {

using testing::HasSubstr;

SubstitutionMaterial WithBuddies() {
  auto lists = std::make_shared<BuddyLists>();
  lists->grid = {.layers = 2, .experts = 1};
  lists->lists.resize(2);
  return {.buddies = lists, .tau_by_layer = {0.5, 0.6}};
}

TEST(SubstitutionSpecTest, PrintsWhatItReads) {
  for (const std::string_view text :
       {"exact",
        "smoe:alpha=0.25",
        "buddies:tau=0.5:beta=0.9:rho=3",
        "buddies:tau=0.5:budget=2:rho=3",
        "buddies:tau=layers:temperature=1.1:gamma=0.4:beta=1:rho=all:rank=4:eta=2:best-first=1",
        "low-bit:most-share=0.2",
        "low-bit",
        "drop",
        "drop:renormalise=1:most-share=0.05:rho=2",
        "bias:bonus=0.1",
        "bias:bonus=0.2:rho=1",
        "best-live",
        "best-live:rho=2",
        "random",
        "random:rho=1:seed=9",
        "random:tau=0.2:gamma=0.5:budget=3:rho=1",
        "top:keep=4",
        "best-live:tau=layers:temperature=2",
        "drop:gamma=0.4:beta=0.9:renormalise=1",
        "top:tau=0.3:beta=0.75:keep=2",
        "top:keep=2:most-share=0.25",
        "best-live:most-share=0.5:rho=2",
        "random:most-share=0.125:rho=1:seed=9",
        "smoe:alpha=0.3+drop:most-share=0.05+reunite"}) {
    const auto chain = ParseSubstitution(text, WithBuddies());
    ASSERT_TRUE(chain.ok()) << chain.status().ToString();
    EXPECT_EQ(ToString(*chain), text);
  }
}

TEST(SubstitutionSpecTest, FillsInTheUsualOptions) {
  EXPECT_EQ(ToString(ParseSubstitution("smoe").value()), "smoe:alpha=0.3");
  EXPECT_EQ(ToString(ParseSubstitution("random:rho=all").value()), "random");
}

TEST(SubstitutionSpecTest, SaysWhichChainsNeedBuddies) {
  EXPECT_TRUE(NeedsBuddies("buddies"));
  EXPECT_TRUE(NeedsBuddies("smoe:alpha=0.1+buddies:rho=1+drop"));
  EXPECT_FALSE(NeedsBuddies("exact"));
  EXPECT_FALSE(NeedsBuddies("smoe:alpha=0.1+drop"));
  EXPECT_FALSE(NeedsBuddies("random:tau=0.4"));
  EXPECT_TRUE(NeedsBuddies("random:rho=1:tau=layers"));  // whose values lie beside the lists
}

TEST(SubstitutionSpecTest, SaysWhatIsWrongInALine) {
  const auto fault = [](std::string_view text, const SubstitutionMaterial& material = {}) {
    const auto chain = ParseSubstitution(text, material);
    return chain.ok() ? "none" : chain.status().message();
  };
  EXPECT_THAT(fault(""), HasSubstr("'' is no substitution policy, expected exact or some of smoe"));
  EXPECT_THAT(fault("smoe+"), HasSubstr("'' is no substitution policy"));
  EXPECT_THAT(fault("smo"), HasSubstr("'smo' is no substitution policy"));
  EXPECT_THAT(fault("buddies:beta=0.5:budget=2"), HasSubstr("beta and budget found"));
  EXPECT_THAT(fault("smoe:beta=1"), HasSubstr("smoe: no option beta, expected alpha"));
  EXPECT_THAT(fault("reunite:x=1"), HasSubstr("no options expected"));
  EXPECT_THAT(fault("smoe:alpha=2"), HasSubstr("alpha=2 found, a number from 0 to 1 expected"));
  EXPECT_THAT(fault("smoe:alpha=nan"), HasSubstr("alpha=nan found"));
  EXPECT_THAT(fault("smoe:alpha=0.3x"), HasSubstr("alpha=0.3x found"));
  EXPECT_THAT(fault("smoe:alpha"), HasSubstr("'alpha' found, key=value expected"));
  EXPECT_THAT(fault("smoe:alpha="), HasSubstr("key=value expected"));
  EXPECT_THAT(fault("smoe:alpha=0.1:alpha=0.2"), HasSubstr("alpha is given twice"));
  EXPECT_THAT(fault("top:keep=0"), HasSubstr("a whole number from 1"));
  EXPECT_THAT(fault("drop:renormalise=yes"), HasSubstr("a whole number from 0 to 1"));
  EXPECT_THAT(fault("buddies"), HasSubstr("no buddy lists"));
  EXPECT_THAT(fault("buddies:tau=layers"), HasSubstr("tau=layers"));
  EXPECT_THAT(fault("random:tau=layers"), HasSubstr("random: tau=layers found, but no"));
  EXPECT_THAT(fault("drop:beta=0.5:budget=2"), HasSubstr("drop: beta and budget found"));
  EXPECT_THAT(fault("top:gamma=3"), HasSubstr("gamma=3 found, a number from 0 to 2 expected"));
  EXPECT_THAT(fault("buddies:kappa=0.5", WithBuddies()), HasSubstr("no option kappa"));
  EXPECT_THAT(fault("buddies:rho=-1", WithBuddies()), HasSubstr("rho=-1 found"));
}

// The help of a policy ends where the next begins. An option that its policy does not read is
// refused when it is parsed.
TEST(SubstitutionSpecTest, HelpNamesEveryPolicyAndNoOptionThatItDoesNotRead) {
  std::istringstream help(SubstitutionHelp());
  std::map<std::string, std::vector<std::string>> options;
  std::string policy;
  bool listed = false;
  for (std::string line; std::getline(help, line);) {
    const std::string name = line.substr(0, line.find(' ', 2));
    if (line.starts_with("smoe ")) listed = true;
    if (!listed || line.empty() || line.ends_with(':')) continue;
    if (line.front() != ' ') {
      policy = line.substr(0, line.find(' '));
      options[policy];
    } else if (line.find_first_not_of(' ') == 2) {
      options[policy].push_back(name.substr(2));
    }
  }
  using testing::ElementsAre;
  using testing::IsEmpty;
  using testing::Pair;
  EXPECT_THAT(options, ElementsAre(Pair("best-live", ElementsAre("most-share", "rho")),
                                   Pair("bias", ElementsAre("bonus", "rho")),
                                   Pair("buddies",
                                        ElementsAre("tau", "temperature", "gamma", "beta", "budget",
                                                    "rho", "rank", "eta", "best-first")),
                                   Pair("drop", ElementsAre("most-share", "renormalise", "rho")),
                                   Pair("low-bit", ElementsAre("most-share")),
                                   Pair("random", ElementsAre("most-share", "rho", "seed")),
                                   Pair("reunite", IsEmpty()), Pair("smoe", ElementsAre("alpha")),
                                   Pair("top", ElementsAre("keep", "most-share"))));
  for (const auto& [name, keys] : options) {
    for (const std::string& key : keys) {
      const auto made = ParseSubstitution(name + ":" + key + "=1", WithBuddies());
      EXPECT_TRUE(made.ok()) << made.status().ToString();
    }
  }
}

TEST(SubstitutionSpecTest, HelpSaysWhichControlsTakeTheGatesOfBuddies) {
  EXPECT_THAT(SubstitutionHelp(),
              HasSubstr("drop, best-live, random and top take the gates of buddies"));
  for (const std::string policy : {"drop", "best-live", "random", "top"}) {
    for (const std::string gate : {"tau", "temperature", "gamma", "beta", "budget"}) {
      const auto made = ParseSubstitution(policy + ":" + gate + "=1");
      EXPECT_TRUE(made.ok()) << made.status().ToString();
    }
  }
}

}  // namespace
}  // namespace troupe
