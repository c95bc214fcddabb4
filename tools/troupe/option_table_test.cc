#include "troupe/option_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>

namespace troupe {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// What a value does to a variable of type T: itself if it is taken, else the error.
template <typename T>
Result<T> Taken(const std::string& text) {
  T value{};
  Options options("test");
  TROUPE_RETURN_IF_ERROR(options.Add("--x", value, "").Set({text}));
  return value;
}

TEST(OptionNames, AreToldApartByTheirDashes) {
  std::string value;
  Options options("test");
  const Option& option = options.Add("-m,--model,MODEL", value, "Model file");
  EXPECT_EQ(option.short_name(), "-m");
  EXPECT_EQ(option.long_name(), "--model");
  EXPECT_EQ(option.positional(), "MODEL");
  EXPECT_EQ(option.name(), "MODEL");
  EXPECT_EQ(option.help(), "Model file");
  EXPECT_EQ(options.Add("--prompt,-p", value, "").name(), "--prompt");
  EXPECT_EQ(options.Add("-q", value, "").name(), "-q");
}

TEST(OptionNames, FindTheOption) {
  bool flag = false;
  Options options("test");
  const Option& option = options.AddFlag("-v,--verbose", flag, "");
  EXPECT_EQ(options.Find("-v"), &option);
  EXPECT_EQ(options.Find("--verbose"), &option);
  EXPECT_EQ(options.Find("--verb"), nullptr);
}

TEST(OptionNamesDeathTest, StandForOneOptionEach) {
  bool flag = false;
  Options options("test");
  options.AddFlag("-v,--verbose", flag, "");
  EXPECT_DEATH(options.AddFlag("-v,--version", flag, ""), "");
}

TEST(OptionValue, IsTakenByEveryType) {
  EXPECT_EQ(*Taken<std::string>(""), "");
  EXPECT_EQ(*Taken<std::uint32_t>("4294967295"), 4294967295u);
  EXPECT_EQ(*Taken<std::uint64_t>("18446744073709551615"), ~std::uint64_t{0});
  EXPECT_EQ(*Taken<int>("-7"), -7);
  EXPECT_EQ(*Taken<double>("2.5e3"), 2500);
  EXPECT_EQ(*Taken<Bytes>("6GiB"), 6_GiB);
  EXPECT_EQ(*Taken<TensorType>("q4_k"), TensorType::kQ4_K);
  EXPECT_EQ(*Taken<std::optional<double>>("0.5"), std::optional<double>(0.5));
  EXPECT_EQ(*Taken<std::optional<Bytes>>("4096"), std::optional<Bytes>(Bytes(4096)));
}

TEST(OptionValue, SaysWhatWasFoundAndExpected) {
  EXPECT_EQ(Taken<std::uint32_t>("4294967296").status().message(),
            "'4294967296' found, expected at most 4294967295");
  EXPECT_EQ(Taken<std::uint64_t>("-1").status().message(), "'-1' found, expected 0 or more");
  EXPECT_EQ(Taken<std::uint64_t>("x").status().message(), "'x' found, expected a whole number");
  EXPECT_EQ(Taken<std::int8_t>("-129").status().message(),
            "'-129' found, expected a number from -128 to 127");
  EXPECT_FALSE(Taken<std::uint64_t>("18446744073709551616").ok());
  EXPECT_FALSE(Taken<int>("2147483648").ok());
  EXPECT_FALSE(Taken<int>("1.5").ok());
  EXPECT_FALSE(Taken<int>("").ok());
  EXPECT_EQ(Taken<double>("1.5x").status().message(), "'1.5x' found, expected a number");
  EXPECT_THAT(Taken<Bytes>("6 parsecs").status().message(), HasSubstr("'6 parsecs' is not a size"));
  EXPECT_THAT(Taken<TensorType>("Q9").status().message(), HasSubstr("'Q9' is no type"));
}

TEST(OptionValue, ReplacesSeveralThatWereThereBefore) {
  std::vector<double> values = {1, 2, 3};
  Options options("test");
  const Option& option = options.Add("--x", values, "");
  EXPECT_EQ(option.takes(), Option::Takes::kSeveralValues);
  EXPECT_TRUE(option.Set({"4", "5.5"}).ok());
  EXPECT_THAT(values, ElementsAre(4, 5.5));
  EXPECT_FALSE(option.Set({"4", "five"}).ok());
}

TEST(OptionValue, LeavesAnOptionalAloneIfItIsBad) {
  std::optional<int> value;
  Options options("test");
  EXPECT_FALSE(options.Add("--x", value, "").Set({"much"}).ok());
  EXPECT_EQ(value, std::nullopt);
}

TEST(OptionValue, GoesThroughAFunction) {
  std::string seen;
  Options options("test");
  const Option& option = options.AddParsed(
      "--x",
      [&seen](const std::string& text) {
        seen = text;
        return text == "bad" ? InvalidArgument("bad indeed") : OkStatus();
      },
      "");
  EXPECT_TRUE(option.Set({"good"}).ok());
  EXPECT_EQ(seen, "good");
  EXPECT_EQ(option.Set({"bad"}).message(), "bad indeed");
}

TEST(OptionFlag, SetsAVariableOrCallsAFunction) {
  bool flag = false;
  int calls = 0;
  Options options("test");
  EXPECT_TRUE(options.AddFlag("--flag", flag, "").Set({}).ok());
  EXPECT_TRUE(options
                  .AddFlag(
                      "--call", [&calls] { ++calls; }, "")
                  .Set({})
                  .ok());
  EXPECT_TRUE(flag);
  EXPECT_EQ(calls, 1);
}

TEST(OptionLimits, AreJudgedForWholeNumbersAndOthers) {
  std::uint32_t count = 0;
  double share = 0;
  Options options("test");
  const Option& whole = options.Add("--n", count, "").Between(1u, 1u << 30);
  const Option& part = options.Add("--p", share, "").Between(0.01, 100.0);
  const auto complaint = [](const Option& option, const std::string& text) {
    return option.judges().front()(text).message();
  };
  EXPECT_EQ(complaint(whole, "1"), "");
  EXPECT_EQ(complaint(whole, "1073741824"), "");
  EXPECT_EQ(complaint(whole, "-1"), "'-1' found, expected a number from 1 to 1073741824");
  EXPECT_NE(complaint(whole, "1073741825"), "");
  EXPECT_NE(complaint(whole, "1.5"), "");
  EXPECT_EQ(complaint(part, "0.01"), "");
  EXPECT_EQ(complaint(part, "0"), "'0' found, expected a number from 0.01 to 100");
  EXPECT_NE(complaint(part, "nan"), "");
  EXPECT_NE(complaint(part, "inf"), "");
}

TEST(OptionHeading, IsTheLastOneThatWasGiven) {
  bool flag = false;
  Options options("test");
  EXPECT_EQ(options.AddFlag("--a", flag, "").heading(), "Options");
  options.Heading("Memory");
  EXPECT_EQ(options.AddFlag("--b", flag, "").heading(), "Memory");
  EXPECT_EQ(options.AddFlag("--c", flag, "").heading(), "Memory");
}

TEST(OptionDeclaration, IsThereToRead) {
  std::vector<std::string> names;
  Options options("test");
  const Option& option = options.Add("--names", names, "")
                             .Required()
                             .Type("NAME,NAME")
                             .SeparatedBy(',')
                             .OneOf({"lru", "arc"})
                             .Suggest({"lru"})
                             .Excludes("--all")
                             .Needs("--some")
                             .Answers("help", [] { return std::string("names"); });
  EXPECT_TRUE(option.required());
  EXPECT_EQ(option.type(), "NAME,NAME");
  EXPECT_EQ(option.separator(), ',');
  EXPECT_THAT(option.choices(), ElementsAre("lru", "arc"));
  EXPECT_THAT(option.suggestions(), ElementsAre("lru"));
  EXPECT_THAT(option.excluded(), ElementsAre("--all"));
  EXPECT_THAT(option.needed(), ElementsAre("--some"));
  EXPECT_THAT(option.judges(), IsEmpty());
  EXPECT_EQ(option.questions().front().answer(), "names");
}

TEST(OptionSubcommands, HaveTablesOfTheirOwn) {
  bool flag = false;
  Options options("test", "Summary", "  test x");
  Options& sub = options.AddSubcommand("sub", "Does a part");
  sub.AddFlag("--flag", flag, "");
  EXPECT_EQ(options.example(), "  test x");
  EXPECT_EQ(options.subcommands().front().summary(), "Does a part");
  EXPECT_EQ(options.Find("--flag"), nullptr);
  EXPECT_NE(sub.Find("--flag"), nullptr);
  EXPECT_FALSE(sub.chosen());
}

}  // namespace
}  // namespace troupe
