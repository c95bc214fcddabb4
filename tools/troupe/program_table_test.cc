#include "troupe/program_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <set>

#include "troupe/commands.h"
#include "troupe/option_parser.h"

namespace troupe {
namespace {

using ::testing::Contains;
using ::testing::IsSupersetOf;

const Options& Find(const Options& options, std::string_view name) {
  for (const Options& sub : options.subcommands()) {
    if (sub.name() == name) return sub;
  }
  ADD_FAILURE() << name;
  return options;
}

void ForEachOption(const Options& options,
                   const std::function<void(const Options&, const Option&)>& visit) {
  for (const Option& option : options.all()) visit(options, option);
  for (const Options& sub : options.subcommands()) ForEachOption(sub, visit);
}

TEST(ProgramTable, HasEveryCommandWithItsSubcommands) {
  const ProgramTable program = MakeProgramTable();
  EXPECT_EQ(program.options.subcommands().size(), AllCommands().size());
  EXPECT_EQ(Find(program.options, "trace").subcommands().size(), 5u);
}

TEST(ProgramTable, HasTheShortOptionsThatUsersOfOtherToolsExpect) {
  const ProgramTable program = MakeProgramTable();
  const Options& run = Find(program.options, "run");
  for (const auto& [short_name, long_name] :
       {std::pair("-p", "--prompt"), std::pair("-m", "--model"), std::pair("-t", "--threads"),
        std::pair("-c", "--ctx"), std::pair("-n", "--tokens")}) {
    ASSERT_NE(run.Find(short_name), nullptr) << short_name;
    EXPECT_EQ(run.Find(short_name)->long_name(), long_name);
  }
}

TEST(ProgramTable, PutsTheOptionsOfRunUnderHeadings) {
  const ProgramTable program = MakeProgramTable();
  std::set<std::string> headings;
  ForEachOption(Find(program.options, "run"),
                [&](const Options&, const Option& option) { headings.insert(option.heading()); });
  EXPECT_THAT(headings, IsSupersetOf({"Generation", "Memory and experts", "Prediction",
                                      "Lossy answers", "Output"}));
}

TEST(ProgramTable, ExplainsEveryOptionAndNamesItsValue) {
  const ProgramTable program = MakeProgramTable();
  ForEachOption(program.options, [](const Options& command, const Option& option) {
    EXPECT_FALSE(option.help().empty()) << command.name() << " " << option.name();
    if (option.takes() != Option::Takes::kNothing) {
      EXPECT_NE(option.type(), "VALUE") << command.name() << " " << option.name();
    }
  });
}

TEST(ProgramTable, NamesOnlyOptionsThatThereAreInWhatExcludesOrNeedsThem) {
  const ProgramTable program = MakeProgramTable();
  ForEachOption(program.options, [](const Options& command, const Option& option) {
    for (const std::string& other : option.excluded()) EXPECT_NE(command.Find(other), nullptr);
    for (const std::string& other : option.needed()) EXPECT_NE(command.Find(other), nullptr);
  });
}

TEST(ProgramTable, OffersThePoliciesOfTheCache) {
  const ProgramTable program = MakeProgramTable();
  EXPECT_THAT(Find(program.options, "run").Find("--cache")->choices(), Contains("echo"));
}

// Of the flags of one command: each of them, given with a value, is refused by its name.
void ExpectFlagsToTakeNoValue(Options& program, std::vector<std::string> words,
                              const Options& command) {
  for (const Option& option : command.all()) {
    if (option.takes() != Option::Takes::kNothing) continue;
    for (const std::string value : {"3", "false", "yes"}) {
      std::vector<std::string> line = words;
      line.push_back(option.long_name() + "=" + value);
      const ParsedLine parsed = ParseLine(program, line);
      EXPECT_EQ(parsed.kind, ParsedLine::Kind::kMistake) << command.name() << option.name();
      EXPECT_EQ(parsed.text, option.long_name() + ": '" + value + "' found, expected no value");
    }
  }
  for (const Options& sub : command.subcommands()) {
    std::vector<std::string> below = words;
    below.push_back(sub.name());
    ExpectFlagsToTakeNoValue(program, below, sub);
  }
}

TEST(ProgramTable, NoFlagOfAnyCommandTakesAValue) {
  for (const CommandInfo& info : AllCommands()) {
    const std::unique_ptr<Command> command = info.make();
    Options options(info.name);
    command->AddOptions(options);
    ExpectFlagsToTakeNoValue(options, {}, options);
  }
}

}  // namespace
}  // namespace troupe
