#include "troupe/man_page.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <iterator>

#include "troupe/program_table.h"

namespace troupe {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class ManPageTest : public ::testing::Test {
 protected:
  ManPageTest() {
    run_.Add("-m,--model,MODEL", model_, "Model file").Required().Type("FILE");
    run_.Heading("Memory");
    run_.Add("--cache", cache_, "Policy: 'lru' or C:\\arc, …").OneOf({"lru", "arc"}).Type("POLICY");
    run_.AddFlag("--chat", chat_, ".begins with a point");
    run_.AddSubcommand("fast", "Run fast");
  }

  std::string model_, cache_;
  bool chat_ = false;
  Options program_{"troupe"};
  Options& run_ = program_.AddSubcommand("run", "Run a model", "  troupe run m.gguf");
};

TEST_F(ManPageTest, HasTheSectionsThatAManualHas) {
  const std::string page = ManPage(program_, "1.2.3");
  EXPECT_THAT(page, HasSubstr(".TH TROUPE 1 \"\" \"troupe 1.2.3\""));
  std::size_t last = 0;
  for (const char* section : {"NAME", "SYNOPSIS", "DESCRIPTION", "COMMANDS", "EXIT STATUS"}) {
    const std::size_t at = page.find(std::string("\n.SH ") + section + "\n");
    ASSERT_NE(at, std::string::npos) << section;
    EXPECT_GT(at, last);
    last = at;
  }
}

TEST_F(ManPageTest, ExplainsCommandsAndTheirOptions) {
  const std::string page = ManPage(program_, "1");
  EXPECT_THAT(page, HasSubstr(".SS \"troupe run\"\nRun a model.\n"));
  EXPECT_THAT(page, HasSubstr(".SS \"troupe run fast\"\nRun fast.\n"));
  EXPECT_THAT(page, HasSubstr(".TP\n\\fB\\-m\\fR, \\fB\\-\\-model\\fR, \\fBMODEL\\fR \\fIFILE\\fR\n"
                              "Model file.\nRequired.\n"));
  EXPECT_THAT(page, HasSubstr("\\fIMemory:\\fR"));
  EXPECT_THAT(page, HasSubstr("One of: lru, arc."));
  EXPECT_THAT(page, HasSubstr(".nf\n  troupe run m.gguf\n.fi\n"));
}

TEST_F(ManPageTest, LetsNoTextBeACommandOfRoff) {
  const std::string page = ManPage(program_, "1");
  EXPECT_THAT(page, HasSubstr("\n\\&.begins with a point.\n"));
  EXPECT_THAT(page, HasSubstr("Policy: \\(aqlru\\(aq or C:\\earc, ...."));
  EXPECT_THAT(page, Not(HasSubstr("\n.begins")));
}

TEST(ManPageOfTheProgram, IsRoffWithoutWarnings) {
  if (std::system("command -v groff > /dev/null") != 0) GTEST_SKIP() << "groff is not installed";
  const std::string path = ::testing::TempDir() + "/troupe.1";
  const std::string said = path + ".warnings";
  std::ofstream(path) << ManPage(MakeProgramTable().options, "1");
  EXPECT_EQ(std::system(("groff -man -Tascii -ww " + path + " > /dev/null 2> " + said).c_str()), 0);
  std::ifstream in(said);
  EXPECT_EQ(std::string(std::istreambuf_iterator<char>(in), {}), "");
}

}  // namespace
}  // namespace troupe
