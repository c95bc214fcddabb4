// The `troupe` program: finds the command, lets it parse its options and run, and turns the outcome
// into what a shell sees: 0, 1 after a failure, 2 for usage, 130 after Ctrl-C (129 after SIGHUP,
// 143 after SIGTERM), 141 if whoever read standard output has gone; errors as one line on stderr.
#include <fmt/format.h>
#include <poll.h>
#include <troupe/version.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <new>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "base/log.h"
#include "base/printable.h"
#include "gpu/driver_call.h"
#include "kernels/target.h"
#include "machine/program_files.h"
#include "troupe/commands.h"
#include "troupe/commit.h"
#include "troupe/did_you_mean.h"
#include "troupe/interrupt.h"
#include "troupe/option_parser.h"
#include "troupe/remark.h"

namespace troupe {
namespace {

enum ExitCode {
  kSuccess = 0,
  kFailed = 1,
  kUsage = 2,
  kSignal = 128,  // and the signal's number
  kUnread = 128 + SIGPIPE,
};

// One line, whatever a path, a file or the parser puts into the message.
void PrintError(std::string message) {
  std::replace(message.begin(), message.end(), '\n', ' ');
  Remark("troupe: {}\n", Printable(message));
}

void PrintUsageError(const CommandInfo& command, std::string_view message) {
  PrintError(fmt::format("{} (see troupe {} --help)", message, command.name));
}

void PrintHelp(std::FILE* out) {
  fmt::print(out,
             "Runs Mixture-of-Experts language models (GGUF).\n\n"
             "Usage: troupe COMMAND [OPTIONS]\n\nCommands:\n");
  for (const CommandInfo& command : AllCommands()) {
    fmt::print(out, "  {:<12}  {}\n", command.name, command.summary);
  }
  fmt::print(out,
             "\n`troupe COMMAND --help` explains its options, with an example.\n"
             "`troupe --version` prints the version and the instruction sets it is built for.\n");
}

std::string NamesOf(const std::vector<Target>& targets) {
  std::vector<std::string_view> names;
  for (const Target target : targets) names.push_back(Name(target));
  return fmt::format("{}", fmt::join(names, ", "));
}

void PrintVersion() {
  fmt::print("troupe {} (commit {})\n", Version(), Commit());
  fmt::print("built for {}; this machine runs {}\n", NamesOf(CompiledTargets()),
             Name(ActiveTarget()));
}

// Whoever starts the program may want less than the machine has: to compare, or since a virtual
// machine says that it has what it has not.
Status UseNamedKernels() {
  const char* const name = std::getenv("TROUPE_KERNELS");
  if (name == nullptr || *name == '\0') return OkStatus();
  const Result<Target> target = SupportedTargetNamed(name);
  if (!target.ok()) return Status(target.status()).WithContext("TROUPE_KERNELS");
  ForceTarget(*target);
  return OkStatus();
}

// Whether a write has failed since the other end of a pipe is closed, as `head` does it when it has
// had enough. Other programs end there by SIGPIPE, without a word.
bool NobodyReads() {
  if (std::ferror(stdout) == 0) return false;
  pollfd out = {.fd = STDOUT_FILENO, .events = POLLOUT, .revents = 0};
  return poll(&out, 1, /*timeout=*/0) == 1 && (out.revents & (POLLERR | POLLHUP)) != 0;
}

// What was printed may still wait in a buffer; a disk that is full shows here at the latest.
Status FlushStandardOutput() {
  if (std::ferror(stdout) != 0) {  // the reason was the last write's, and is long gone
    return Error(Code::kUnavailable, "not everything could be written to standard output");
  }
  if (std::fflush(stdout) == 0) return OkStatus();
  return ErrnoStatus(errno, "writing to standard output");
}

// No exception of ours leaves the function that runs it (base/json_value.h), but what we stand on
// throws in two cases that are not bugs.
Status RunGuarded(Command& command) {
  try {
    return command.Run();
  } catch (const std::system_error& error) {  // fmt::print, if it cannot
    return ErrnoStatus(error.code().value(), "writing to standard output");
  } catch (const std::bad_alloc&) {
    return Error(Code::kResourceExhausted, "out of memory");
  }
}

int Finish(Status status) {
  if (status.ok()) status = FlushStandardOutput();
  if (status.ok()) return kSuccess;
  if (NobodyReads()) return kUnread;
  PrintError(status.message());
  return status.code() == Code::kCancelled ? kSignal + InterruptGuard::signal() : kFailed;
}

int RunCommand(const CommandInfo& info, std::vector<std::string> arguments) {
  const std::unique_ptr<Command> command = info.make();
  Options options(fmt::format("troupe {}", info.name), info.summary, info.example);
  command->AddOptions(options);
  command->SetArguments(arguments);
  const ParsedLine line = ParseLine(options, std::move(arguments));
  if (line.kind == ParsedLine::Kind::kAnswer) {
    fmt::print("{}", line.text);
    return Finish(OkStatus());
  }
  if (line.kind == ParsedLine::Kind::kMistake) {
    PrintUsageError(info, line.text);
    return kUsage;
  }
  if (const Status usage = command->CheckUsage(); !usage.ok()) {
    PrintUsageError(info, usage.message());
    return kUsage;
  }
  return Finish(RunGuarded(*command));
}

// What other programs call it.
std::optional<std::string> OurNameFor(std::string_view name) {
  constexpr std::pair<std::string_view, std::string_view> kNames[] = {
      {"show", "inspect"},     {"start", "serve"},     {"server", "serve"},  {"chat", "run"},
      {"generate", "run"},     {"remove", "rm"},       {"delete", "rm"},     {"benchmark", "bench"},
      {"convert", "quantize"}, {"perplexity", "eval"}, {"download", "pull"}, {"models", "list"}};
  const auto found =
      std::ranges::find(kNames, name, &std::pair<std::string_view, std::string_view>::first);
  return found == std::end(kNames) ? std::nullopt : std::optional(std::string(found->second));
}

// One line for a command that there is not.
std::string NoCommand(const std::string& name) {
  std::vector<std::string> names;
  for (const CommandInfo& command : AllCommands()) names.emplace_back(command.name);
  if (name.starts_with('-')) names = {"--help", "--version"};
  std::optional<std::string> meant = OurNameFor(name);
  if (!meant) meant = DidYouMean(name, names);
  const std::string_view kind = name.starts_with('-') ? "option" : "command";
  if (meant) {
    return fmt::format("there is no {} '{}'; did you mean '{}'? (see troupe --help)", kind, name,
                       *meant);
  }
  return fmt::format("there is no {} '{}'; the commands are {}", kind, name, CommandNames());
}

int Main(std::vector<std::string> arguments) {
  std::signal(SIGXFSZ, SIG_IGN);  // a file too large for `ulimit -f` is an error, not an end
  std::signal(SIGPIPE, SIG_IGN);  // so is a reader that goes away: the record is still written
  SetWarningSink([](std::string_view line) { Remark("warning: {}\n", Printable(line)); });
  if (const Status kernels = UseNamedKernels(); !kernels.ok()) {
    PrintError(kernels.message());
    return kUsage;
  }
  if (arguments.empty()) {
    PrintHelp(stderr);
    return kUsage;
  }
  std::string first = arguments.front();
  if (first == "help" && arguments.size() > 1) {  // `troupe help run` as `troupe run --help`
    arguments = {arguments[1], "--help"};
    first = arguments.front();
  } else if (first == "--help" || first == "-h" || first == "help") {
    PrintHelp(stdout);
    return Finish(OkStatus());
  }
  if (first == "--version" || first == "-V" || first == "version") {
    PrintVersion();
    return Finish(OkStatus());
  }
  const CommandInfo* command = FindCommand(first);
  if (command == nullptr) {
    PrintError(NoCommand(first));
    return kUsage;
  }
  arguments.erase(arguments.begin());
  (void)MapProgramFiles();  // before a command plans its memory
  return RunCommand(*command, std::move(arguments));
}

}  // namespace
}  // namespace troupe

int main(int argc, char** argv) {
  const int code = troupe::Main(std::vector<std::string>(argv + 1, argv + argc));
  if (troupe::DriverHasHung()) {  // what it does at an ordinary end may wait for ever
    std::_Exit(code);             // standard output is written by now
  }
  return code;
}
