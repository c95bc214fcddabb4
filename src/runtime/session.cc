#include "runtime/session.h"

#include <algorithm>
#include <cstring>

namespace troupe {

Session::Session(Engine& engine, SequenceSlots::Slot slot, KvSequence cache, std::uint32_t most)
    : engine_(&engine),
      slot_(std::move(slot)),
      request_(engine.NewRequest()),
      cache_(std::move(cache)),
      most_(most) {
  tokens_.reserve(most);
}

Result<Session> Session::Create(Engine& engine, std::optional<std::uint32_t> positions) {
  TROUPE_ASSIGN_OR_RETURN(Session session,
                          CreateWithoutRoom(engine, positions.value_or(engine.plan().context())));
  TROUPE_RETURN_IF_ERROR(session.ReserveRoom());
  return session;
}

Result<Session> Session::CreateWithoutRoom(Engine& engine, std::uint32_t positions) {
  const std::uint32_t context = engine.plan().context();
  if (positions > context) {
    return ContextFull("a sequence of {} tokens does not fit into a context of {}", positions,
                       context);
  }
  std::optional<SequenceSlots::Slot> slot = engine.sequence_slots().Take();
  if (!slot) {
    return Error(Code::kResourceExhausted, "{} sequences are open, and no more were planned for",
                 engine.sequence_slots().count());
  }
  return Session(engine, std::move(*slot), engine.kv().NewSequence(), positions);
}

Status Session::ReserveRoom() { return cache_.Reserve(most_); }

bool Session::HasRoomFree() const {
  return most_ <= cache_.capacity() + engine_->kv().free_positions();
}

std::size_t Session::TakeFrom(PrefixCache& prefixes, TokenIds tokens, LastPage last) {
  TROUPE_CHECK(tokens.size() <= most_);
  const std::size_t taken = last == LastPage::kTake ? prefixes.ExtendByTaking(cache_, tokens, salt_)
                                                    : prefixes.Extend(cache_, tokens, salt_);
  const TokenIds more = tokens.subspan(tokens_.size(), taken);
  tokens_.insert(tokens_.end(), more.begin(), more.end());
  return taken;
}

bool Session::SameTile(std::size_t first, std::span<const std::byte> page) const {
  TROUPE_CHECK(first % engine_->kv().page_positions() == 0);
  TROUPE_CHECK(cache_.length() >= first + KvLayout::kTile &&
               page.size() == engine_->kv().page_bytes());
  const LayerRange layers = engine_->kv().layers();
  for (std::uint32_t layer = layers.first; layer < layers.end; ++layer) {
    if (!engine_->kv().HasLayer(layer)) continue;
    const KvLayout& layout = engine_->kv().LayoutOf(layer);
    const std::byte* const mine = cache_.PageOf(layer, first);
    const std::byte* const theirs = page.data() + engine_->kv().OffsetOf(layer);
    const auto same = [&](std::size_t offset, std::size_t bytes) {
      return std::memcmp(mine + offset, theirs + offset, bytes) == 0;
    };
    for (std::uint32_t head = 0; head < layout.kv_heads; ++head) {
      if (!same(layout.KeyTileOffset(head, 0), layout.KeyTileBytes())) return false;
      if (!same(layout.ValueRowOffset(head, 0), KvLayout::kTile * layout.ValueRowBytes()))
        return false;
    }
  }
  return true;
}

Status Session::CheckRoom(std::size_t tokens) const {
  if (tokens <= room()) return OkStatus();
  return ContextFull("{} tokens after {} are more than the context of {} tokens holds", tokens,
                     tokens_.size(), most_);
}

Status Session::CatchUp() {
  if (cache_.length() == tokens_.size()) return OkStatus();
  const std::vector<std::int32_t> owed(
      tokens_.begin() + static_cast<std::ptrdiff_t>(cache_.length()), tokens_.end());
  tokens_.resize(cache_.length());
  const Status status = RunInChunks(
      {.sequence = this, .tokens = owed, .phase = Phase::kPrompt, .wanted = LogitsWanted::kNone},
      {});
  if (!status.ok()) tokens_.insert(tokens_.end(), owed.begin(), owed.end());
  return status;
}

Status Session::RunInChunks(SequenceRows rows, const StopAsked& stop) {
  TROUPE_RETURN_IF_ERROR(CatchUp());
  const TokenIds tokens = rows.tokens;
  const std::size_t first_wanted = rows.first_wanted, before = tokens_.size();
  const LogitsWanted wanted = rows.wanted;
  const RowVisitor on_row = std::move(rows.on_row);
  TROUPE_RETURN_IF_ERROR(CheckRoom(tokens.size()));
  for (std::size_t at = 0; at < tokens.size(); at += rows.tokens.size()) {
    if (stop && stop()) return Error(Code::kCancelled, "stopped after {} tokens", at);
    const std::size_t chunk = engine_->plan().memory.chunk;
    rows.tokens = tokens.subspan(at, std::min(chunk, tokens.size() - at));
    if (wanted == LogitsWanted::kAll) {
      rows.first_wanted = first_wanted > at ? first_wanted - at : 0;
      rows.on_row = [&on_row, at](std::size_t row, std::span<const float> logits) {
        on_row(at + row, logits);
      };
    } else if (at + rows.tokens.size() < tokens.size()) {
      rows.wanted = LogitsWanted::kNone;
    } else {
      rows.wanted = wanted;
    }
    const Status status = engine_->Run({&rows, 1});
    if (!status.ok()) {
      Truncate(before);
      return status;
    }
  }
  return OkStatus();
}

Status Session::Feed(TokenIds tokens) {
  return RunInChunks({.sequence = this, .tokens = tokens}, {});
}

Status Session::FeedWithGuesses(TokenIds tokens, std::uint32_t guessed) {
  TROUPE_RETURN_IF_ERROR(CheckRoom(tokens.size()));
  const SequenceRows rows{.sequence = this, .tokens = tokens, .guessed = guessed};
  return engine_->Run({&rows, 1});
}

Status Session::FeedByResidents(TokenIds tokens, RequestId request) {
  TROUPE_CHECK(engine_->DraftsByResidents());
  TROUPE_RETURN_IF_ERROR(CheckRoom(tokens.size()));
  if (!drafted_from_) drafted_from_ = tokens_.size();
  const SequenceRows rows{
      .sequence = this, .tokens = tokens, .exact = true, .request = request, .drafts = true};
  return engine_->Run({&rows, 1});
}

Status Session::FeedPrompt(TokenIds tokens, const StopAsked& stop) {
  return RunInChunks({.sequence = this, .tokens = tokens, .phase = Phase::kPrompt}, stop);
}

Status Session::FeedForLogits(TokenIds tokens, std::size_t first, Phase phase,
                              const RowVisitor& row) {
  if (engine_->config().encoder) {
    return Error(Code::kUnimplemented,
                 "{}: an encoder-decoder, which says nothing of the tokens of a text but for an "
                 "answer's",
                 engine_->path());
  }
  return RunInChunks({.sequence = this,
                      .tokens = tokens,
                      .phase = phase,
                      .wanted = LogitsWanted::kAll,
                      .first_wanted = first,
                      .on_row = row},
                     {});
}

void Session::Truncate(std::size_t length) {
  if (drafted_from_ && length <= *drafted_from_) drafted_from_.reset();
  tokens_.resize(length);
  if (cache_.length() > length) cache_.Truncate(length);
}

}  // namespace troupe
