#include "troupe/prompt_input.h"

#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/printable.h"
#include "troupe/remark.h"
#include "troupe/text_input.h"

namespace troupe {
namespace {

// Whether standard input is a pipe or a file of which something is left to read, now.
bool HasUnreadInput() {
  struct stat facts = {};
  if (::fstat(STDIN_FILENO, &facts) != 0) return false;
  // A file whose beginning somebody has read is a loop's, as in `while read`, and not meant here.
  if (S_ISREG(facts.st_mode)) {
    return facts.st_size > 0 && ::lseek(STDIN_FILENO, 0, SEEK_CUR) == 0;
  }
  int waiting = 0;
  return S_ISFIFO(facts.st_mode) && ::ioctl(STDIN_FILENO, FIONREAD, &waiting) == 0 && waiting > 0;
}

}  // namespace

void PromptInput::AddTo(Options& options) {
  options.Add("-p,--prompt", prompt_, "Text to continue; with --chat the first message")
      .Type("TEXT");
  options
      .Add("-f,--file", file_,
           "Read the prompt from a file (- for standard input, which needs no option where it is a "
           "pipe)")
      .Type("FILE");
  options
      .Add("--prompt-ids", ids_,
           "Prompt as exact token ids, with commas or blanks between: 1,306,…")
      .Type("IDS");
}

void PromptInput::AddArgumentTo(Options& options) {
  options.Heading("Generation");
  options.Add("PROMPT", argument_, "The same as --prompt").Type("TEXT");
}

int PromptInput::Count() const {
  return int{prompt_.has_value()} + int{argument_.has_value()} + int{!file_.empty()} +
         int{!ids_.empty()};
}

Status PromptInput::CheckUsage() const {
  if (Count() <= 1) return OkStatus();
  if (argument_) {
    return InvalidArgument("PROMPT: '{}' found beside another prompt, expected one of the two",
                           Printable(*argument_));
  }
  return InvalidArgument("give one of --prompt, --file and --prompt-ids");
}

bool PromptInput::IsPiped() {
  struct stat facts = {};
  if (::fstat(STDIN_FILENO, &facts) != 0) return false;
  return S_ISFIFO(facts.st_mode) || S_ISREG(facts.st_mode) || S_ISSOCK(facts.st_mode);
}

void PromptInput::NoteWhatIsNotRead() const {
  if (!given() || file_ == "-" || !HasUnreadInput()) return;
  Remark("note: what is piped in is not read, as a prompt is given\n");
}

bool PromptInput::IsTerminal() { return ::isatty(STDIN_FILENO) == 1; }

Result<std::string> PromptInput::Text(const Tokenizer& tokenizer, std::uint32_t context) const {
  if (prompt()) return *prompt();
  const std::size_t most = context * tokenizer.longest_token();
  Result<std::string> text = ReadTextFile(file_.empty() ? "-" : file_, most);
  if (text.status().code() == Code::kResourceExhausted) {
    return Status(text.status())
        .WithContext(
            fmt::format("a context of {} tokens is too short (--ctx asks for more)", context));
  }
  // As a shell's $(…) has it: `echo hello | troupe run` is about hello. A file is taken as it is.
  if (text.ok() && file_.empty() && text->ends_with('\n')) text->pop_back();
  return text;
}

Result<std::vector<TokenId>> PromptInput::Tokens(const Tokenizer& tokenizer,
                                                 std::uint32_t context) const {
  if (has_ids()) return ParseTokenIds(ids_);
  TROUPE_ASSIGN_OR_RETURN(const std::string text, Text(tokenizer, context));
  if (text.empty()) Remark("note: the prompt is empty\n");
  Result<std::vector<TokenId>> ids = tokenizer.Encode(text);
  if (!ids.ok() && !prompt()) return Status(ids.status()).WithContext(name());
  return ids;
}

}  // namespace troupe
