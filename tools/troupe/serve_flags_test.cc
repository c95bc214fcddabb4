#include "troupe/serve_flags.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>
#include <tuple>
#include <utility>

namespace troupe {
namespace {

using testing::ElementsAre;
using testing::EndsWith;
using testing::HasSubstr;

class ServeFlagsTest : public testing::Test {
 protected:
  ~ServeFlagsTest() override { std::filesystem::remove_all(folder_); }

  std::string Write(const std::string& name, const std::string& text) {
    const std::string path = folder_ + "/" + name;
    std::ofstream(path) << text;
    return path;
  }
  std::unique_ptr<ServeFlags> Read(std::vector<std::string> arguments) {
    return ServeFlags::Read(arguments).value();
  }
  // Of a file alone.
  std::string Mistake(const std::string& text) {
    return ServeFlags::Read({"--config", Write("a.conf", text)}).status().message();
  }

  std::string folder_ = [] {
    std::string name = std::filesystem::temp_directory_path() / "troupe-flags-XXXXXX";
    return std::string(::mkdtemp(name.data()));
  }();
};

TEST_F(ServeFlagsTest, AFileMayNameTheModel) {
  const auto flags =
      Read({"--config", Write("a.conf", "model = /srv/big.gguf\nparallel = 8\nqueue = 2\n")});
  EXPECT_EQ(flags->model(), "/srv/big.gguf");
  EXPECT_EQ(flags->most_requests(), 10u);
  EXPECT_EQ(flags->Service()->name, "big");
  EXPECT_EQ(flags->ForRequests().sequences, 8u);
}

TEST_F(ServeFlagsTest, LimitsOfEveryRequestAreNotWhatOneGetsThatSaysNothing) {
  const auto service =
      Read({"a.gguf", "--tokens", "7", "--most-tokens", "90", "--request-s", "1.5"})->Service();
  EXPECT_EQ(service->tokens, 7u);
  EXPECT_EQ(service->most_tokens, 90u);
  EXPECT_EQ(service->most_time, std::chrono::milliseconds(1500));
  EXPECT_FALSE(Read({"a.gguf"})->Service()->most_tokens);
  EXPECT_FALSE(Read({"a.gguf"})->Service()->most_time);
  EXPECT_EQ(Read({"a.gguf"})->Service()->most_silence, std::chrono::seconds(30));
  EXPECT_FALSE(Read({"a.gguf", "--silence-s", "0"})->Service()->most_silence);
  EXPECT_EQ(Read({"a.gguf"})->Service()->most_parked, std::chrono::minutes(10));
  EXPECT_FALSE(Read({"a.gguf"})->Service()->cache_per_key);
  EXPECT_TRUE(Read({"a.gguf", "--cache-per-key"})->Service()->cache_per_key);
  EXPECT_EQ(Read({"a.gguf", "--reload-wait-s", "0.5"})->Service()->most_parked,
            std::chrono::milliseconds(500));
}

TEST_F(ServeFlagsTest, TheCommandLineWinsOverTheFile) {
  const std::string path = Write("a.conf", "model = a.gguf\nparallel = 8\nport = 1\n");
  const auto flags = Read({"b.gguf", "--config", path, "--parallel", "2"});
  EXPECT_EQ(flags->model(), "b.gguf");
  EXPECT_EQ(flags->ForRequests().sequences, 2u);
  EXPECT_EQ(flags->Http().port, 1);
}

TEST_F(ServeFlagsTest, WhatTheFileSaysIsKeptWhereTheCommandLineDoesNotWin) {
  const std::string path =
      Write("a.conf",
            "model = a.gguf\nparallel = 8\ncors = https://a\ncors = https://b\n"
            "no-prefix-cache = false\n");
  EXPECT_EQ(Read({"--config", path, "--parallel", "2"})->file_options(),
            (FileOptions{{"cors", {"https://a", "https://b"}}, {"model", {"a.gguf"}}}));
  EXPECT_EQ(Read({"b.gguf", "--config", path})->file_options().count("model"), 0u);
}

TEST_F(ServeFlagsTest, MistakesNameTheFileAndWhereTheyAre) {
  EXPECT_THAT(Mistake("model = a\nmemroy = 1G"),
              EndsWith("a.conf: line 2: there is no option 'memroy'; did you mean 'memory'?"));
  EXPECT_THAT(Mistake("model = a\nport = 70000"),
              EndsWith("a.conf: line 2: port: '70000' found, expected a number from 0 to 65535"));
  EXPECT_THAT(Mistake("model = a\n\nconfig = b"),
              EndsWith("a.conf: line 3: a file cannot name another"));
  EXPECT_THAT(Mistake("model = a\nquality = 1%\nsubstitute = drop"),
              EndsWith("a.conf: line 2: quality excludes --substitute"));
  EXPECT_THAT(Mistake("parallel = 8"), EndsWith("a.conf: MODEL is required"));
  EXPECT_THAT(Mistake("model = a\ntls-key = b"), EndsWith("belong together"));
  EXPECT_THAT(ServeFlags::Read({"--config", folder_ + "/none"}).status().message(),
              HasSubstr("/none"));
}

TEST_F(ServeFlagsTest, WithoutAFileTheModelMustBeOnTheCommandLine) {
  EXPECT_EQ(Read({"a.gguf"})->CheckUsage().message(), "");
  EXPECT_EQ(Read({})->CheckUsage().message(), "MODEL is required");
}

TEST_F(ServeFlagsTest, WhatIsBoundToTheSocketNeedsARestart) {
  const auto before = Read({"a.gguf", "--port", "8080"});
  for (const char* same : {"b.gguf", "a.gguf"}) {
    EXPECT_TRUE(Read({same, "--parallel", "9", "--memory", "1G", "--name", "x"})
                    ->CheckFollows(*before)
                    .ok());
  }
  EXPECT_EQ(Read({"a.gguf", "--port", "9090"})->CheckFollows(*before).message(),
            "port: '9090' in place of '8080' needs a restart");
  EXPECT_EQ(Read({"a.gguf", "--host", "0.0.0.0"})->CheckFollows(*before).message(),
            "host: '0.0.0.0' in place of '127.0.0.1' needs a restart");
  EXPECT_THAT(
      Read({"a.gguf", "--tls-key", "k", "--tls-certificate", "c"})->CheckFollows(*before).message(),
      HasSubstr("needs a restart"));
  EXPECT_THAT(Read({"a.gguf", "--connections", "5"})->CheckFollows(*before).message(),
              HasSubstr("connections: '5' in place of '1024'"));
  EXPECT_EQ(Read({"a.gguf", "--most-body", "20MiB"})->CheckFollows(*before).message(),
            "most-body: '20.0 MiB' in place of '8.0 MiB' needs a restart");
}

TEST_F(ServeFlagsTest, ABodyMayBeLongerThanUsualWithinLimits) {
  const auto flags = Read({"a.gguf", "--most-body", "20MiB"});
  EXPECT_EQ(flags->CheckUsage().message(), "");
  EXPECT_EQ(flags->most_body(), 20_MiB);
  EXPECT_EQ(flags->Http().limits.all_body_bytes, std::size_t{49} << 20);
  EXPECT_EQ(Read({"a.gguf"})->most_body(), std::nullopt);
  for (const char* wrong : {"1KiB", "2GiB"}) {
    EXPECT_THAT(Read({"a.gguf", "--most-body", wrong})->CheckUsage().message(),
                HasSubstr("expected 64.0 KiB to 1.0 GiB"));
  }
}

TEST_F(ServeFlagsTest, KeysAreReadWhenTheyAreAskedFor) {
  const std::string keys = Write("keys", "one\n");
  const auto flags = Read({"a.gguf", "--api-keys", keys, "--cors", "*"});
  EXPECT_THAT(flags->Access()->keys, ElementsAre("one"));
  Write("keys", "two\nthree\n");
  EXPECT_THAT(flags->Access()->keys, ElementsAre("two", "three"));
  EXPECT_FALSE(flags->Access()->local_only);
  EXPECT_TRUE(Read({"a.gguf"})->Access()->local_only);
  EXPECT_FALSE(Read({"a.gguf", "--host", "0.0.0.0"})->Access()->local_only);
}

TEST_F(ServeFlagsTest, BlanksAroundTheKeyInTheEnvironmentAreNoneOfIt) {
  setenv("TROUPE_API_KEY", " secret\r\n", 1);
  EXPECT_THAT(Read({"a.gguf"})->Access()->keys, ElementsAre("secret"));
  setenv("TROUPE_API_KEY", "\n", 1);
  EXPECT_THAT(Read({"a.gguf"})->Access().status().message(), HasSubstr("TROUPE_API_KEY: no key"));
  unsetenv("TROUPE_API_KEY");
}

TEST_F(ServeFlagsTest, ADoorThatIsOpenToAllIsRemarkedOn) {
  const auto remark = [&](std::vector<std::string> arguments) {
    const auto flags = Read(std::move(arguments));
    return flags->RemarkOn(*flags->Access());
  };
  EXPECT_THAT(remark({"a.gguf", "--host", "0.0.0.0"}), HasSubstr("no key is asked for at 0.0.0.0"));
  EXPECT_EQ(remark({"a.gguf"}), "");
  EXPECT_EQ(remark({"a.gguf", "--host", "0.0.0.0", "--api-keys", Write("keys", "one\n")}), "");
}

TEST_F(ServeFlagsTest, PrefixesPerKeyNeedKeysAndAreKeptInNoFile) {
  const std::string keys = Write("keys", "one\n");
  EXPECT_THAT(Read({"a.gguf", "--cache-per-key"})->Access().status().message(),
              HasSubstr("--cache-per-key: no keys are asked for"));
  const auto both = Read({"a.gguf", "--cache-per-key", "--prefix-file", "p", "--api-keys", keys});
  EXPECT_THAT(both->RemarkOn(*both->Access()), HasSubstr("nothing is kept in --prefix-file"));
  const auto one = Read({"a.gguf", "--cache-per-key", "--api-keys", keys});
  EXPECT_EQ(one->RemarkOn(*one->Access()), "");
}

// All that ServiceOptions has: one more needs a name here, and an option that changes it.
auto MembersOf(const ServiceOptions& options) {
  const auto& [name, sampling, seed_is_given, tokens, most_tokens, most_time, most_silence,
               most_parked, cache_per_key, pooling] = options;
  return std::tuple(name, sampling, seed_is_given, tokens, most_tokens, most_time, most_silence,
                    most_parked, cache_per_key, pooling);
}

TEST_F(ServeFlagsTest, WhatRequestsGetChangesWhileTheModelStaysOpen) {
  const FileOptions before = {{"model", {"a.gguf"}}};
  const auto usual = MembersOf(*Read({"a.gguf"})->Service());
  std::set<std::size_t> changed;
  for (const auto& [option, value] :
       {std::pair("name", "other"), std::pair("temperature", "0.5"), std::pair("seed", "7"),
        std::pair("tokens", "9"), std::pair("most-tokens", "9"), std::pair("request-s", "9"),
        std::pair("silence-s", "9"), std::pair("reload-wait-s", "9"),
        std::pair("cache-per-key", ""), std::pair("pooling", "last")}) {
    std::vector<std::string> arguments = {"a.gguf", std::string("--") + option};
    if (*value != 0) arguments.emplace_back(value);
    const auto members = MembersOf(*Read(std::move(arguments))->Service());
    const std::set<std::size_t> now = [&]<std::size_t... I>(std::index_sequence<I...>) {
      std::set<std::size_t> differ;
      const auto compare = [&](bool same, std::size_t member) {
        if (!same) differ.insert(member);
      };
      (compare(std::get<I>(usual) == std::get<I>(members), I), ...);
      return differ;
    }
    (std::make_index_sequence<std::tuple_size_v<decltype(members)>>());
    EXPECT_FALSE(now.empty()) << option;
    changed.insert(now.begin(), now.end());
    FileOptions after = before;
    after[option] = {value};
    EXPECT_FALSE(ChangesBetween(before, after).needs_model) << option;
  }
  EXPECT_EQ(changed.size(), std::tuple_size_v<decltype(usual)>);
}

TEST_F(ServeFlagsTest, WhatTheServerHasTakenAlreadyIsNotTakenTwice) {
  ModelConfig config;
  config.vocabulary = 1000;
  const auto flags = Read({"a.gguf"});
  const Bytes all = flags->EngineWith(Bytes()).options().serving(config, 256).total();
  EXPECT_EQ(all - flags->EngineWith(5_MiB).options().serving(config, 256).total(), 5_MiB);
  const Bytes rules = flags->EngineWith(1_GiB).options().serving(config, 256).total();
  EXPECT_GT(rules, Bytes());
  EXPECT_EQ(all - rules, 80_MiB);
}

TEST_F(ServeFlagsTest, WhatWasFittedForCutPromptsIsInThePlanOfWhoReadsIt) {
  const std::string model = folder_ + "/a.gguf";
  const auto cuts = [&](std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), model);
    return Read(arguments)->EngineWith(Bytes()).options().serving(ModelConfig(), 256).cuts;
  };
  const std::vector<std::string> end = {"--cloud", "http://a:1"},
                                 coded = {"--cloud", "http://a:1", "--cut-code", "8:int8"};
  const Bytes of_cloud = cuts({"--for-ends"}), of_end = cuts(coded);
  Write("a.cuts.json", std::string(1000, ' '));
  EXPECT_EQ(cuts({"--for-ends"}) - of_cloud, 3000_B);
  EXPECT_EQ(cuts(coded) - of_end, 3000_B);
  EXPECT_EQ(cuts(end), of_end) << "exact rows need none";
}

TEST_F(ServeFlagsTest, ConnectionsWithTlsTakeMoreMemory) {
  const auto connections = [&](const std::vector<std::string>& arguments) {
    return Read(arguments)->EngineWith(Bytes()).options().serving(ModelConfig(), 256).connections;
  };
  EXPECT_EQ(connections({"a.gguf", "--tls-certificate", "c.pem", "--tls-key", "k.pem"}) -
                connections({"a.gguf"}),
            1024 * 72_KiB);
}

}  // namespace
}  // namespace troupe
