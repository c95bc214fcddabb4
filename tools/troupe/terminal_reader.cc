#include "troupe/terminal_reader.h"

#include <histedit.h>
#include <langinfo.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <clocale>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <optional>
#include <string_view>
#include <system_error>
#include <utility>

#include "text/utf8.h"
#include "troupe/chat_command.h"
#include "troupe/interrupt.h"
#include "troupe/remark.h"
#include "troupe/terminal_kind.h"
#include "troupe/typed_characters.h"

namespace troupe {
namespace {

constexpr int kHistoryLines = 1000;
// After that a terminal has sent all of a key or a paste that it had to send.
constexpr int kPauseMilliseconds = 30;
// A signal that comes right before a wait does not end it.
constexpr int kSignalMilliseconds = 100;

// libedit writes characters as the locale has them.
void UseUtf8() {
  std::setlocale(LC_CTYPE, "");
  if (std::strcmp(::nl_langinfo(CODESET), "UTF-8") != 0) std::setlocale(LC_CTYPE, "C.UTF-8");
}

}  // namespace

class TerminalReader::Editor {
 public:
  Editor(std::size_t most_bytes, std::string history_path)
      : most_bytes_(most_bytes), history_path_(std::move(history_path)), lines_(most_bytes) {
    UseUtf8();
    editor_.reset(::el_init("troupe", stdin, stderr, stderr));
    history_.reset(::history_winit());
    ::el_wset(editor_.get(), EL_CLIENTDATA, this);
    ::el_wset(editor_.get(), EL_GETCFN, GetCharacter);
    ::el_wset(editor_.get(), EL_PROMPT, Prompt);
    ::el_wset(editor_.get(), EL_EDITOR, L"emacs");
    ::el_wset(editor_.get(), EL_ADDFN, L"troupe-complete", L"Complete a command", Complete);
    ::el_wset(editor_.get(), EL_BIND, L"^I", L"troupe-complete", nullptr);
    ::el_wset(editor_.get(), EL_BIND, L"^R", L"em-inc-search-prev", nullptr);
    ::el_wset(editor_.get(), EL_HIST, ::history_w, history_.get());
    HistEventW event;
    ::history_w(history_.get(), &event, H_SETSIZE, kHistoryLines);
    ::history_w(history_.get(), &event, H_SETUNIQUE, 1);
    if (!history_path_.empty()) {
      ::history_w(history_.get(), &event, H_LOAD, history_path_.c_str());
    }
  }
  ~Editor() {
    HistEventW event;
    if (history_path_.empty()) return;
    ::history_w(history_.get(), &event, H_SAVE, history_path_.c_str());
  }
  Editor(const Editor&) = delete;
  Editor& operator=(const Editor&) = delete;

  TypedMessage Next() {
    using Kind = TypedMessage::Kind;
    const InterruptGuard guard;
    lines_.Clear();
    for (;;) {
      const std::optional<std::string> line = Line();
      if (interrupted_) return {.kind = Kind::kInterrupted};
      if (!line) return {.kind = Kind::kEnd};
      std::optional<std::string> message = lines_.Add(*line);
      if (!message) continue;
      if (bytes_ > most_bytes_ || lines_.too_long()) return {.kind = Kind::kTooLong};
      return {.kind = Kind::kMessage, .text = *std::move(message)};
    }
  }

 private:
  struct EndEditLine {
    void operator()(EditLine* editor) const { ::el_end(editor); }
  };
  struct EndHistory {
    void operator()(HistoryW* history) const { ::history_wend(history); }
  };

  static Editor& Of(EditLine* editor) {
    void* self = nullptr;
    ::el_wget(editor, EL_CLIENTDATA, &self);
    return *static_cast<Editor*>(self);
  }

  static wchar_t* Prompt(EditLine* editor) {
    static wchar_t first[] = L"> ", further[] = L". ";
    return Of(editor).lines_.open() ? further : first;
  }

  // Tab: behind the beginning of a command the rest of it, else itself.
  static unsigned char Complete(EditLine* editor, wint_t /*character*/) {
    const LineInfoW* const line = ::el_wline(editor);
    std::string typed;
    for (const wchar_t* c = line->buffer; c != line->cursor; ++c) {
      AppendUtf8(static_cast<char32_t>(*c), typed);
    }
    const bool at_end = line->cursor == line->lastchar && !Of(editor).lines_.open();
    const std::optional<std::string> rest = at_end ? RestOfCommand(typed) : std::nullopt;
    if (rest && rest->empty()) return CC_REFRESH_BEEP;  // it may become several
    const std::wstring inserted = rest ? std::wstring(rest->begin(), rest->end()) : L"\t";
    return ::el_winsertstr(editor, inserted.c_str()) == 0 ? CC_REFRESH : CC_ERROR;
  }

  static int GetCharacter(EditLine* editor, wchar_t* character) {
    return Of(editor).Get(*character);
  }

  // One character; 0: there are no more.
  int Get(wchar_t& character) {
    for (bool all = false;;) {
      if (const std::optional<char32_t> typed = typed_.Next(all)) {
        character = static_cast<wchar_t>(*typed);
        // What does not fit is not kept; an editor of lines knows no bound.
        if (character == L'\n' || ++bytes_ <= most_bytes_) return 1;
        continue;
      }
      const Came came = Read(typed_.empty() ? -1 : kPauseMilliseconds);
      if (came == Came::kEnd) return 0;
      all = came == Came::kNothing;
    }
  }

  enum class Came { kBytes, kNothing, kEnd };

  // Waits so long for what is typed; -1: until it is.
  Came Read(int milliseconds) {
    pollfd in = {.fd = STDIN_FILENO, .events = POLLIN, .revents = 0};
    const int ready = ::poll(&in, 1, milliseconds < 0 ? kSignalMilliseconds : milliseconds);
    if (InterruptGuard::interrupted()) {
      interrupted_ = true;
      return Came::kEnd;
    }
    if (ready == 0) return milliseconds < 0 ? Came::kBytes : Came::kNothing;
    if (ready < 0) return errno == EINTR ? Came::kBytes : Came::kEnd;
    char bytes[4096];
    const ssize_t got = ::read(STDIN_FILENO, bytes, sizeof(bytes));
    if (got <= 0) return got < 0 && errno == EINTR ? Came::kBytes : Came::kEnd;
    typed_.Push({bytes, static_cast<std::size_t>(got)});
    return Came::kBytes;
  }

  // Nothing: the end, or an interrupt.
  std::optional<std::string> Line() {
    interrupted_ = false;
    if (!lines_.open()) bytes_ = 0;
    ::el_resize(editor_.get());
    // Before the prompt is there: who sees it may type Ctrl-D.
    ::el_wset(editor_.get(), EL_PREP_TERM, 1);
    if (marks_pastes_) Remark("{}", TypedCharacters::kPasteOn);
    int count = 0;
    const wchar_t* const typed = ::el_wgets(editor_.get(), &count);
    if (marks_pastes_) Remark("{}", TypedCharacters::kPasteOff);
    if (interrupted_) {
      typed_.Clear();
      Remark("\n");
    }
    if (typed == nullptr || count <= 0 || interrupted_) return std::nullopt;
    std::wstring_view line(typed, static_cast<std::size_t>(count));
    if (line.ends_with(L'\n')) line.remove_suffix(1);
    Remember(std::wstring(line));
    std::string text;
    for (const wchar_t c : line) {
      AppendUtf8(
          static_cast<char32_t>(c) == TypedCharacters::kLineEnd ? U'\n' : static_cast<char32_t>(c),
          text);
    }
    return text;
  }

  void Remember(const std::wstring& line) {
    HistEventW event;
    if (!line.empty()) ::history_w(history_.get(), &event, H_ENTER, line.c_str());
  }

  std::size_t most_bytes_;
  std::string history_path_;
  MessageLines lines_;
  TypedCharacters typed_;
  const bool marks_pastes_ = TakesEscapes(STDERR_FILENO);
  std::size_t bytes_ = 0;  // characters of this message so far
  bool interrupted_ = false;
  std::unique_ptr<HistoryW, EndHistory> history_;
  std::unique_ptr<EditLine, EndEditLine> editor_;
};

TerminalReader::TerminalReader(std::size_t most_bytes, std::string history)
    : editor_(std::make_unique<Editor>(most_bytes, std::move(history))) {}

TerminalReader::~TerminalReader() = default;

TypedMessage TerminalReader::Next() { return editor_->Next(); }

std::string ChatHistoryPath() {
  namespace fs = std::filesystem;
  if (const char* const named = std::getenv("TROUPE_HISTORY")) return named;
  const char* const state = std::getenv("XDG_STATE_HOME");
  const char* const home = std::getenv("HOME");
  if ((state == nullptr || *state == 0) && (home == nullptr || *home == 0)) return "";
  const fs::path folder =
      (state != nullptr && *state != 0 ? fs::path(state) : fs::path(home) / ".local/state") /
      "troupe";
  std::error_code error;
  fs::create_directories(folder, error);
  return error ? "" : (folder / "history").string();
}

}  // namespace troupe
