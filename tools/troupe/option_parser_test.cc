#include "troupe/option_parser.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>

namespace troupe {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Kind = ParsedLine::Kind;

class ParseLineTest : public ::testing::Test {
 protected:
  ParseLineTest() {
    options_.Add("-m,--model,MODEL", model_, "Model file").Required().Type("FILE");
    options_.Add("-n,--tokens", tokens_, "Most tokens").Between(0u, 100u).Type("N");
    options_.Heading("Memory");
    options_.Add("--cache", cache_, "Policy").OneOf({"lru", "arc"}).Type("POLICY");
    options_.Add("--memory", memory_, "Budget").Type("SIZE");
    options_.Add("--shares", shares_, "Shares").SeparatedBy(',').Between(1.0, 99.0).Type("P,P");
    options_.Add("--stop", stop_, "Stop").Type("TEXT");
    options_.AddFlag("--chat", chat_, "Chat").Excludes("--stop");
    options_.Add("--system", system_, "System message").Needs("--chat").Type("TEXT");
    options_.Add("--chain", chain_, "Chain").Answers("help", [] {
      return std::string("chains\n");
    });
  }

  // The error; empty if there is none.
  std::string Mistake(std::vector<std::string> arguments) {
    const ParsedLine line = ParseLine(options_, std::move(arguments));
    EXPECT_NE(line.kind, Kind::kAnswer);
    return line.text;
  }
  std::string Answer(std::vector<std::string> arguments) {
    const ParsedLine line = ParseLine(options_, std::move(arguments));
    EXPECT_EQ(line.kind, Kind::kAnswer) << line.text;
    return line.text;
  }

  std::string model_, cache_ = "lru", system_, chain_;
  std::optional<std::uint32_t> tokens_;
  std::optional<Bytes> memory_;
  std::vector<double> shares_ = {50};
  std::vector<std::string> stop_;
  bool chat_ = false;
  Options options_{"troupe test", "Tests", "  troupe test m.gguf"};
};

TEST_F(ParseLineTest, SetsTheVariablesOfWhatIsGivenAndNoOther) {
  EXPECT_EQ(Mistake({"m.gguf", "-n", "5", "--memory=6GiB", "--shares", "25,75"}), "");
  EXPECT_EQ(model_, "m.gguf");
  EXPECT_EQ(tokens_, 5u);
  EXPECT_EQ(memory_, 6_GiB);
  EXPECT_THAT(shares_, ElementsAre(25, 75));
  EXPECT_EQ(cache_, "lru");
  EXPECT_FALSE(chat_);
}

TEST_F(ParseLineTest, TakesAPositionalArgumentByItsOtherNames) {
  EXPECT_EQ(Mistake({"-m", "a.gguf"}), "");
  EXPECT_EQ(model_, "a.gguf");
  EXPECT_EQ(Mistake({"--model", "b.gguf", "--chat"}), "");
  EXPECT_EQ(model_, "b.gguf");
  EXPECT_EQ(Mistake({"-m", "a.gguf", "b.gguf"}), "'b.gguf' found, no further argument expected");
}

TEST_F(ParseLineTest, TakesSeveralValuesOneByOneOrTogether) {
  EXPECT_EQ(Mistake({"m", "--stop", "a", "--stop", "b,c"}), "");
  EXPECT_THAT(stop_, ElementsAre("a", "b,c"));
  EXPECT_EQ(Mistake({"m", "--stop", "x", "y"}), "");
  EXPECT_THAT(stop_, ElementsAre("x", "y"));
}

TEST_F(ParseLineTest, TakesAnEmptyText) {
  system_ = "before";
  EXPECT_EQ(Mistake({"m", "--chat", "--system", ""}), "");
  EXPECT_EQ(system_, "");
}

TEST_F(ParseLineTest, NamesTheOptionWhoseValueIsRefused) {
  EXPECT_EQ(Mistake({"m", "-n", "-1"}), "--tokens: '-1' found, expected a number from 0 to 100");
  EXPECT_EQ(Mistake({"m", "--cache", "fifo"}), "--cache: 'fifo' found, expected one of lru, arc");
  EXPECT_EQ(Mistake({"m", "--cache", "lrv"}),
            "--cache: 'lrv' found, expected one of lru, arc; did you mean lru?");
  EXPECT_THAT(Mistake({"m", "--memory", "much"}), HasSubstr("--memory: 'much' is not a size"));
  EXPECT_THAT(Mistake({"m", "--shares", "5,100"}), HasSubstr("--shares: '100' found"));
  EXPECT_EQ(Mistake({"m", "--cache"}), "--cache: no value found, expected POLICY");
  EXPECT_EQ(Mistake({"m", "-n"}), "--tokens: no value found, expected N");
  EXPECT_EQ(Mistake({"m", "--chain"}), "--chain: no value found, expected VALUE");
}

TEST_F(ParseLineTest, SaysThatAnOptionIsGivenTwice) {
  EXPECT_EQ(Mistake({"m", "-n", "5", "--tokens", "6"}), "--tokens: given 2 times, expected once");
  EXPECT_EQ(Mistake({"m", "--cache", "lru", "--cache", "arc"}),
            "--cache: given 2 times, expected once");
}

TEST_F(ParseLineTest, AFlagTakesNoValue) {
  EXPECT_EQ(Mistake({"m", "--chat=3"}), "--chat: '3' found, expected no value");
  EXPECT_EQ(Mistake({"m", "--chat=false"}), "--chat: 'false' found, expected no value");
  EXPECT_FALSE(chat_);
  EXPECT_EQ(Mistake({"m", "--stop", "--chat=3"}), "");  // a text that begins with dashes
  EXPECT_EQ(stop_, std::vector<std::string>{"--chat=3"});
}

TEST_F(ParseLineTest, HoldsOptionsAgainstEachOther) {
  EXPECT_EQ(Mistake({"m", "--system", "s"}), "--system requires --chat");
  EXPECT_THAT(Mistake({"m", "--chat", "--stop", "a"}), HasSubstr("excludes"));
}

TEST_F(ParseLineTest, SaysWhatIsMissing) {
  EXPECT_EQ(Mistake({}), "MODEL is required");
  EXPECT_EQ(Mistake({"--chat"}), "MODEL is required");
}

TEST_F(ParseLineTest, SuggestsTheOptionThatWasMeant) {
  EXPECT_EQ(Mistake({"m", "--cahce", "lru"}), "there is no option --cahce; did you mean --cache?");
  EXPECT_THAT(Mistake({"--tokns=5"}), HasSubstr("did you mean --tokens?"));
  EXPECT_THAT(Mistake({"m", "--hlep"}), HasSubstr("did you mean --help?"));
  EXPECT_EQ(Mistake({"m", "--unheard-of"}), "there is no option --unheard-of");
  EXPECT_EQ(Mistake({"--unheard-of"}), "there is no option --unheard-of");
}

TEST_F(ParseLineTest, OptionsOfSeveralLettersWithOneDashAreNotTakenForAShortOnesValue) {
  EXPECT_EQ(Mistake({"m", "-nkvo", "5"}),
            "there is no option -nkvo; those of several letters begin with two dashes");
  EXPECT_EQ(Mistake({"m", "-cahce", "lru"}), "there is no option -cahce; did you mean --cache?");
  EXPECT_EQ(Mistake({"m", "-n5"}), "");
  EXPECT_EQ(Mistake({"m", "--chat", "--system", "-abc"}), "");
}

TEST_F(ParseLineTest, LayersOnAGpuAreSaidToBeNone) {
  for (const std::string option : {"-ngl", "--n-gpu-layers", "--gpu-layers"}) {
    EXPECT_THAT(Mistake({"m", option, "99"}),
                HasSubstr("there is no option " + option + ": no layers go to a GPU here"));
  }
}

TEST_F(ParseLineTest, OptionsOfOtherProgramsAreToldByTheirNamesHere) {
  EXPECT_EQ(Mistake({"m", "--n-predict", "5"}), "there is no option --n-predict; here it is -n");
  EXPECT_EQ(Mistake({"m", "--n-predict=5"}), "there is no option --n-predict; here it is -n");
  EXPECT_EQ(Mistake({"m", "-cnv"}), "there is no option -cnv; here it is --chat");
  EXPECT_EQ(Mistake({"m", "-sys", "s"}), "there is no option -sys; here it is --system");
  EXPECT_THAT(Mistake({"m", "--jinja"}), HasSubstr("there is no option --jinja: the model's own"));
  EXPECT_EQ(Mistake({"m", "--temp", "1"}), "there is no option --temp");  // nor its like
}

TEST_F(ParseLineTest, OptionsOfOtherProgramsAreNotTakenForAShortOneAndItsValue) {
  options_.Add("-f,--file", system_, "A file").Type("FILE");
  EXPECT_THAT(Mistake({"m", "-fa"}), HasSubstr("there is no option -fa: attention"));
  EXPECT_THAT(Mistake({"m", "-fa=on"}), HasSubstr("there is no option -fa: attention"));
  EXPECT_THAT(Mistake({"m", "-hf", "o/r"}), HasSubstr("there is no option -hf: `troupe pull"));
  EXPECT_EQ(Mistake({"m", "-f", "-fa"}), "");
  EXPECT_EQ(system_, "-fa");
  EXPECT_EQ(Mistake({"m", "-fab"}), "");
  EXPECT_EQ(system_, "ab");
}

TEST_F(ParseLineTest, AnswersAQuestionInPlaceOfAValue) {
  EXPECT_EQ(Answer({"m", "--chain", "help"}), "chains\n");
  EXPECT_EQ(Mistake({"m", "--chain", "drop"}), "");
  EXPECT_EQ(chain_, "drop");
}

TEST_F(ParseLineTest, ExplainsItsOptionsUnderTheirHeadings) {
  const std::string help = Answer({"--help"});
  EXPECT_THAT(help, HasSubstr("troupe test [OPTIONS] MODEL"));
  EXPECT_THAT(help, HasSubstr("  -m,--model FILE               The same as MODEL\n"));
  EXPECT_THAT(help, HasSubstr("Example:\n  troupe test m.gguf"));
  const std::size_t memory = help.find("\nMemory:\n");
  ASSERT_NE(memory, std::string::npos);
  EXPECT_LT(help.find("--tokens"), memory);
  EXPECT_GT(help.find("--cache"), memory);
  EXPECT_EQ(Answer({"-h"}), help);
}

class ParseSubcommandTest : public ::testing::Test {
 protected:
  ParseSubcommandTest() {
    info_.Add("TRACE", trace_, "Trace").Required();
    cut_.Add("--every", every_, "Every").Between(1, 10);
  }

  std::string trace_;
  std::optional<int> every_;
  Options options_{"troupe trace", "Traces"};
  Options& info_ = options_.AddSubcommand("info", "Show a trace");
  Options& cut_ = options_.AddSubcommand("cut", "Cut a trace");
};

TEST_F(ParseSubcommandTest, MarksTheOneThatIsChosen) {
  EXPECT_EQ(ParseLine(options_, {"cut", "--every", "2"}).kind, Kind::kComplete);
  EXPECT_TRUE(cut_.chosen());
  EXPECT_FALSE(info_.chosen());
  EXPECT_EQ(every_, 2);
}

TEST_F(ParseSubcommandTest, AsksForOneAndSuggestsTheOneThatWasMeant) {
  EXPECT_EQ(ParseLine(options_, {}).text, "a subcommand is missing, expected one of info, cut");
  const ParsedLine line = ParseLine(options_, {"inof"});
  EXPECT_EQ(line.kind, Kind::kMistake);
  EXPECT_EQ(line.text,
            "there is no subcommand 'inof', expected one of info, cut; did you mean info?");
  EXPECT_EQ(ParseLine(options_, {"convert"}).text,
            "there is no subcommand 'convert', expected one of info, cut");
}

TEST_F(ParseSubcommandTest, ExplainsMistakesInItsOptions) {
  EXPECT_EQ(ParseLine(options_, {"info"}).text, "TRACE is required");
  EXPECT_THAT(ParseLine(options_, {"cut", "--evry", "2"}).text, HasSubstr("did you mean --every?"));
  EXPECT_THAT(ParseLine(options_, {"cut", "--every", "20"}).text, HasSubstr("from 1 to 10"));
}

TEST_F(ParseSubcommandTest, ExplainsAllOfThemAtOnce) {
  const ParsedLine line = ParseLine(options_, {"--help-all"});
  EXPECT_EQ(line.kind, Kind::kAnswer);
  EXPECT_THAT(line.text, HasSubstr("--every"));
  EXPECT_THAT(line.text, HasSubstr("TRACE"));
}

}  // namespace
}  // namespace troupe
