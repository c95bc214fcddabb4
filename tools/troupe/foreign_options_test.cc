#include "troupe/foreign_options.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "troupe/program_table.h"

namespace troupe {
namespace {

TEST(ForeignOptionsTest, NameWhatSomeCommandHas) {
  const ProgramTable program = MakeProgramTable();
  for (const ForeignOption& option : AllForeignOptions()) {
    EXPECT_NE(option.here.empty(), option.why.empty()) << option.name;
    if (option.here.empty()) continue;
    EXPECT_TRUE(std::ranges::any_of(
        program.options.subcommands(),
        [&](const Options& command) { return command.Find(option.here) != nullptr; }))
        << option.name << " as " << option.here;
  }
}

TEST(ForeignOptionsTest, AreNamedOnce) {
  std::set<std::string_view> names;
  for (const ForeignOption& option : AllForeignOptions()) {
    EXPECT_TRUE(names.insert(option.name).second) << option.name;
  }
}

TEST(ForeignOptionsTest, AreHintsWhereTheCommandHasTheirLike) {
  Options options("troupe test");
  std::string tokens, verbose;
  options.Add("-n,--tokens", tokens, "Tokens");
  options.Add("--verbose", verbose, "Of this command");
  EXPECT_EQ(ForeignHint(options, "--n-predict"), "; here it is -n");
  EXPECT_EQ(ForeignHint(options, "--temp"), std::nullopt) << "it has no --temperature";
  EXPECT_EQ(ForeignHint(options, "--verbose"), std::nullopt) << "it is its own";
  EXPECT_EQ(ForeignHint(options, "--unheard-of"), std::nullopt);
  EXPECT_EQ(ForeignHint(options, "--color"), ": nothing is coloured; leave it out");
}

}  // namespace
}  // namespace troupe
