#include "troupe/completion.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <sstream>

#include "troupe/program_table.h"

namespace troupe {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::IsSupersetOf;
using ::testing::Not;

struct Ran {
  int code = -1;
  std::vector<std::string> lines;
};

Ran RunShell(const std::string& command) {
  Ran ran;
  std::FILE* pipe = ::popen(command.c_str(), "r");
  if (pipe == nullptr) return ran;
  std::string text;
  std::array<char, 4096> piece;
  while (const std::size_t n = std::fread(piece.data(), 1, piece.size(), pipe)) {
    text.append(piece.data(), n);
  }
  ran.code = WEXITSTATUS(::pclose(pipe));
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) ran.lines.push_back(line);
  return ran;
}

// bash with the script of the whole program.
class BashCompletionTest : public ::testing::Test {
 protected:
  BashCompletionTest() { std::ofstream(path_) << BashCompletion(MakeProgramTable().options); }

  // What is offered for the last of the words.
  std::vector<std::string> Offered(const std::vector<std::string>& words,
                                   const std::string& before = "") const {
    std::string line;
    for (const std::string& word : words) line += " " + ShellQuoted(word);
    const std::string command =
        before + "source '" + path_ + "'; COMP_WORDS=(" + line +
        "); COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); _troupe; printf '%s\\n' \"${COMPREPLY[@]}\"";
    Ran ran = RunShell("bash -c " + ShellQuoted(command));
    EXPECT_EQ(ran.code, 0);
    std::erase(ran.lines, "");
    return ran.lines;
  }

  std::string path_ = ::testing::TempDir() + "/" +
                      ::testing::UnitTest::GetInstance()->current_test_info()->name() + ".bash";
};

TEST_F(BashCompletionTest, IsAScriptThatBashAccepts) {
  EXPECT_EQ(RunShell("bash -n '" + path_ + "' 2>&1").code, 0);
}

TEST_F(BashCompletionTest, OffersCommands) {
  EXPECT_THAT(Offered({"troupe", ""}), IsSupersetOf({"run", "bench", "trace", "completion"}));
  EXPECT_THAT(Offered({"troupe", "re"}), ElementsAre("replay"));
  EXPECT_THAT(Offered({"troupe", "--v"}), ElementsAre("--version"));
}

TEST_F(BashCompletionTest, OffersOptionsThatBeginAsTyped) {
  EXPECT_THAT(Offered({"troupe", "run", "--ca"}), ElementsAre("--cache", "--cache-share"));
  EXPECT_THAT(Offered({"troupe", "run", "m.gguf", "-"}),
              IsSupersetOf({"-p", "--prompt", "--help"}));
  EXPECT_THAT(Offered({"troupe", "inspect", "--ca"}), IsEmpty());
}

TEST_F(BashCompletionTest, OffersTheValuesOfAnOption) {
  EXPECT_THAT(Offered({"troupe", "run", "--cache", ""}),
              IsSupersetOf({"lru", "lfu", "arc", "score", "echo"}));
  EXPECT_THAT(Offered({"troupe", "run", "--cache", "=", "ec"}), ElementsAre("echo"));
  EXPECT_THAT(Offered({"troupe", "run", "--cache", "="}), Contains("lru"));
  EXPECT_THAT(Offered({"troupe", "replay", "--policy", "lru,ar"}), ElementsAre("lru,arc"));
  EXPECT_THAT(Offered({"troupe", "run", "--ctx", ""}), IsEmpty());
  EXPECT_THAT(Offered({"troupe", "completion", ""}), ElementsAre("bash", "zsh", "fish"));
}

TEST_F(BashCompletionTest, KnowsSubcommandsOfSubcommands) {
  EXPECT_THAT(Offered({"troupe", "trace", "c"}), ElementsAre("convert", "cut"));
  EXPECT_THAT(Offered({"troupe", "trace", "cut", "--ph"}), ElementsAre("--phase"));
  EXPECT_THAT(Offered({"troupe", "trace", "cut", "--phase", ""}), ElementsAre("prefill", "decode"));
}

TEST_F(BashCompletionTest, OffersTheModelsThatAreHereAndShapes) {
  const std::string here =
      "cd /; troupe() { echo '{\"models\": [{\"name\": \"hf.co/o/zany-GGUF:Q8_0\"}, "
      "{\"name\": \"hf.co/o/zany-GGUF:Q4_0\"}]}'; }; ";
  EXPECT_THAT(Offered({"troupe", "run", "za"}, here), ElementsAre("zany-GGUF"));
  EXPECT_THAT(Offered({"troupe", "run", "m", "--draft", "za"}, here), ElementsAre("zany-GGUF"));
  EXPECT_THAT(Offered({"troupe", "rm", ""}, here), ElementsAre("zany-GGUF"));
  EXPECT_THAT(Offered({"troupe", "run", "--ca"}, here), ElementsAre("--cache", "--cache-share"));
  EXPECT_THAT(Offered({"troupe", "run", "/et"}, here), Contains("/etc"));
  EXPECT_THAT(Offered({"troupe", "synth", "out", "--shape", "tiny-o"}), Contains("tiny-olmoe"));
}

class SmallCompletionTest : public ::testing::Test {
 protected:
  SmallCompletionTest() {
    run_.Add("MODEL", model_, "Model").Type("FILE");
    run_.Add("--draft", model_, "Draft").NamesModels().Type("FILE");
    run_.Add("-c,--cache", cache_, "Policy [it's: a choice]; more").OneOf({"lru", "arc"}).Type("P");
    run_.AddFlag("--chat", chat_, "Chat");
    Options& trace = program_.AddSubcommand("trace", "Traces");
    trace.AddSubcommand("cut", "Cut").Add("--data", model_, "Folder").Type("DIR");
  }

  std::string model_, cache_;
  bool chat_ = false;
  Options program_{"troupe"};
  Options& run_ = program_.AddSubcommand("run", "Run a model");
};

TEST_F(SmallCompletionTest, OfZshDescribesOptionsAndTheirValues) {
  const std::string script = ZshCompletion(program_);
  EXPECT_TRUE(script.starts_with("#compdef troupe\n"));
  EXPECT_THAT(script, HasSubstr("':FILE:_files'"));
  EXPECT_THAT(script, HasSubstr("'--cache[Policy \\[it'\\''s]:P:(lru arc)'"));
  EXPECT_THAT(script, HasSubstr("'--chat[Chat]'"));
  EXPECT_THAT(script, HasSubstr("'--draft[Draft]:FILE:_troupe_models_or_files'"));
  EXPECT_THAT(script, HasSubstr("$(troupe list --json - 2> /dev/null | "));
  EXPECT_THAT(script, HasSubstr("'--data[Folder]:DIR:_files -/'"));
  EXPECT_THAT(script, HasSubstr("cut) _troupe_trace_cut ;;"));
}

TEST_F(SmallCompletionTest, OfFishNamesTheCommandOfEachOption) {
  const std::string script = FishCompletion(program_);
  EXPECT_THAT(script, HasSubstr("-n 'not __fish_seen_subcommand_from run trace' -f -a run"));
  EXPECT_THAT(script, HasSubstr("-n '__fish_seen_subcommand_from run' -s c -l cache -r "
                                "-a 'lru arc' -f -d 'Policy [it\\'s'"));
  EXPECT_THAT(script, HasSubstr("-l chat -d 'Chat'"));
  EXPECT_THAT(script, HasSubstr("-l draft -r -a '(__troupe_models)' -F"));
  EXPECT_THAT(script, HasSubstr("__fish_seen_subcommand_from trace; and "
                                "__fish_seen_subcommand_from cut' -l data -r"));
}

TEST_F(SmallCompletionTest, OffersFilesWhereAValueNamesOne) {
  EXPECT_TRUE(ValueOf(*run_.Find("MODEL")).files);
  EXPECT_FALSE(ValueOf(*run_.Find("--cache")).files);
  EXPECT_THAT(ValueOf(*run_.Find("--cache")).words, ElementsAre("lru", "arc"));
  EXPECT_THAT(ValueOf(*run_.Find("--chat")).words, IsEmpty());
  EXPECT_THAT(BashCompletion(program_), Not(HasSubstr("run --chat\")")));
}

TEST(CompletionText, IsTheFirstClauseOfTheHelp) {
  EXPECT_EQ(Brief("Type of cache: f16, q8_0"), "Type of cache");
  EXPECT_EQ(Brief("Lossy: read less. More"), "Lossy: read less");
  EXPECT_EQ(Brief("Model file (GGUF; any part)"), "Model file (GGUF; any part)");
  EXPECT_EQ(Brief("Stop before this; may be repeated"), "Stop before this");
  EXPECT_EQ(Brief("A page (.html)"), "A page (.html)");
}

TEST(CompletionText, IsQuotedForAShell) {
  EXPECT_EQ(ShellQuoted("it's"), "'it'\\''s'");
  EXPECT_THAT(RunShell("printf %s " + ShellQuoted("a 'b' $c \"d\"")).lines,
              ElementsAre("a 'b' $c \"d\""));
}

}  // namespace
}  // namespace troupe
