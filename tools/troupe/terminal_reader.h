// Messages that somebody types at a terminal: lines that can be edited and searched, with those of
// earlier talks (libedit), and pasted text as one message. Ctrl-C takes back what was typed, Ctrl-D
// on an empty line ends.
#pragma once

#include <memory>
#include <string>

#include "troupe/message_reader.h"

namespace troupe {

class TerminalReader final : public MessageReader {
 public:
  // Shows what it says on stderr: stdout is for answers. `history`: a file of the lines of earlier
  // talks; empty: none.
  TerminalReader(std::size_t most_bytes, std::string history);
  ~TerminalReader() override;

  TypedMessage Next() override;

 private:
  class Editor;
  std::unique_ptr<Editor> editor_;
};

// $TROUPE_HISTORY, which may be empty for none; otherwise troupe/history in the user's folder for
// such files ($XDG_STATE_HOME, ~/.local/state), which is made. Empty: there is no such folder.
std::string ChatHistoryPath();

}  // namespace troupe
