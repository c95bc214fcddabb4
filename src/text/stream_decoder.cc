#include "text/stream_decoder.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "text/utf8.h"

namespace troupe {

std::string StreamDecoder::Push(TokenId id) {
  const bool keeps = options_.keep_special || std::ranges::binary_search(shown_, id);
  held_ += tokenizer_->NextBytes(id, keeps, drops_blank_);
  std::string complete;
  std::string_view rest = held_;
  while (!rest.empty()) {
    const Utf8Prefix prefix = ReadUtf8(rest);
    if (prefix.state == Utf8Prefix::State::kCutShort) break;
    const bool is_valid = prefix.state == Utf8Prefix::State::kValid;
    complete += is_valid ? rest.substr(0, prefix.length) : kReplacementCharacter;
    rest.remove_prefix(prefix.length);
  }
  held_.erase(0, held_.size() - rest.size());
  return complete;
}

std::string StreamDecoder::Flush() {
  const bool was_cut_short = !std::exchange(held_, {}).empty();
  return was_cut_short ? std::string(kReplacementCharacter) : std::string();
}

}  // namespace troupe
