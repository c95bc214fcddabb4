#include "runtime/kept_prefixes.h"

#include <fmt/core.h>

#include <algorithm>
#include <filesystem>
#include <vector>

#include "base/check.h"

namespace troupe {

Result<std::string> KeptPrefixes::FileFor(const std::string& path) const {
  if (!engine_.fingerprint()) {
    return Error(Code::kFailedPrecondition, "{}: the model was opened without its fingerprint",
                 path);
  }
  std::error_code ignored;
  if (!std::filesystem::is_directory(path, ignored)) return path;
  const std::string name =
      fmt::format("{}-{}.prefixes", ToString(*engine_.fingerprint()), Name(engine_.kv().type()));
  return (std::filesystem::path(path) / name).string();
}

Result<PrefixFileReport> KeptPrefixes::Load(const std::string& path, const MayGoOn& go_on) {
  TROUPE_ASSIGN_OR_RETURN(const std::string file, FileFor(path));
  const std::optional<FileIdentity> found = IdentityOf(file);
  Result<PrefixFileReport> report = ReadPrefixes(file, *engine_.fingerprint(), texts(), go_on);
  if (report.ok()) {
    if (Status status = Check(file, go_on); !status.ok()) {
      cache_.GiveUp(cache_.pages());
      states_.GiveUp(states_.size());
      report = std::move(status);
    }
  }
  known_ = {.path = file, .file = std::nullopt, .changes = changes()};
  const Code code = report.status().code();
  const bool useless = code == Code::kDataLoss || code == Code::kFailedPrecondition;
  if (report.ok() || useless) known_.file = found;
  if (code != Code::kAlreadyExists) return report;
  return Error(code,
               "{}; it stays as it is, and nothing is kept: name a folder, in which each model has "
               "a file of its own",
               report.status().message());
}

Status KeptPrefixes::Save(const std::string& path, const MayGoOn& go_on) {
  TROUPE_ASSIGN_OR_RETURN(const std::string file, FileFor(path));
  if (file != known_.path) known_ = {.path = file, .file = std::nullopt, .changes = 0};
  if (cache_.All().empty()) return OkStatus();
  if (known_.file && changes() == known_.changes && IdentityOf(file) == known_.file) {
    return OkStatus();
  }
  const auto may_go_on = [&]() -> Status {
    if (go_on) TROUPE_RETURN_IF_ERROR(go_on());
    return MayReplace(file);
  };
  TROUPE_RETURN_IF_ERROR(WritePrefixes(file, *engine_.fingerprint(), texts(), may_go_on));
  known_ = {.path = file, .file = IdentityOf(file), .changes = changes()};
  return OkStatus();
}

// Another server may keep its own there, and they are worth as much.
Status KeptPrefixes::MayReplace(const std::string& path) const {
  const std::optional<FileIdentity> now = IdentityOf(path);
  if (!now || now == known_.file) return OkStatus();
  return Error(Code::kAlreadyExists,
               "{}: it is not the file that was read at the start: it stays as it is", path);
}

// Other weights than the fingerprint has sampled, or another arithmetic, would give other bytes.
Status KeptPrefixes::Check(const std::string& path, const MayGoOn& go_on) {
  TROUPE_RETURN_IF_ERROR(CheckPages(path, go_on));
  if (go_on) TROUPE_RETURN_IF_ERROR(go_on());
  return CheckState(path);
}

// A tile of positions at the beginning of a text, and one as far behind as there is any that only
// needs the pages before it.
Status KeptPrefixes::CheckPages(const std::string& path, const MayGoOn& go_on) {
  const std::vector<PrefixCache::Kept> all = cache_.All();
  std::vector<std::size_t> depth(all.size());
  std::optional<std::size_t> first, deepest;
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (all[i].behind != PrefixCache::Kept::kNone) depth[i] = depth[all[i].behind] + 1;
    if (all[i].tokens.size() < KvLayout::kTile) continue;
    if (!first && depth[i] == 0) first = i;
    if (engine_.config().HasState()) continue;
    if (!deepest || depth[i] > depth[*deepest]) deepest = i;
  }
  for (const std::optional<std::size_t> page : {first, deepest}) {
    if (!page) continue;
    if (go_on) TROUPE_RETURN_IF_ERROR(go_on());
    std::vector<TokenId> text;  // up to the tile that is computed
    for (std::size_t at = all[*page].behind; at != PrefixCache::Kept::kNone; at = all[at].behind) {
      text.insert(text.begin(), all[at].tokens.begin(), all[at].tokens.end());
    }
    TROUPE_RETURN_IF_ERROR(
        CheckTile(path, text, all[*page].tokens.first(KvLayout::kTile), *all[*page].page));
  }
  return OkStatus();
}

Status KeptPrefixes::Compute(Session& session, TokenIds tokens) {
  SequenceRows rows{.sequence = &session, .phase = Phase::kPrompt, .exact = true};
  for (std::size_t at = 0; at < tokens.size(); at += rows.tokens.size()) {
    rows.tokens =
        tokens.subspan(at, std::min<std::size_t>(tokens.size() - at, engine_.plan().memory.chunk));
    TROUPE_RETURN_IF_ERROR(engine_.Run({&rows, 1}));
  }
  return OkStatus();
}

// The state that stands the least behind another one, or behind the beginning of its text.
Status KeptPrefixes::CheckState(const std::string& path) {
  struct Way {
    const SavedState* from = nullptr;  // null: from the beginning
    KeptStates::Entry to;
    std::size_t begins() const { return from == nullptr ? 0 : from->length(); }
    std::size_t tokens() const { return to.tokens.size() - begins(); }
  };
  const std::vector<KeptStates::Entry> all = states_.All();
  std::optional<Way> shortest;
  for (const KeptStates::Entry& to : all) {
    Way way{.from = nullptr, .to = to};
    for (const KeptStates::Entry& from : all) {
      if (from.tokens.size() >= to.tokens.size() || from.tokens.size() <= way.begins()) continue;
      const TokenIds beginning = to.tokens.first(from.tokens.size());
      if (std::ranges::equal(beginning, from.tokens)) way.from = from.state;
    }
    if (!shortest || way.tokens() < shortest->tokens()) shortest = way;
  }
  if (!shortest) return OkStatus();
  const TokenIds text = shortest->to.tokens;
  TROUPE_ASSIGN_OR_RETURN(Session session, Session::CreateWithoutRoom(
                                               engine_, static_cast<std::uint32_t>(text.size())));
  const std::size_t begins = shortest->begins();
  session.TakeFrom(cache_, text.first(begins));  // and what is copied, once there is room for it
  TROUPE_RETURN_IF_ERROR(session.ReserveRoom());
  session.TakeFrom(cache_, text.first(begins));
  if (session.tokens().size() < begins) {
    return Error(Code::kResourceExhausted, "{}: no room to compute a state of it anew", path);
  }
  if (begins > 0) session.Restore(*shortest->from);
  TROUPE_RETURN_IF_ERROR(Compute(session, text.subspan(begins)));
  if (engine_.kv().states()->Same(session.LeaveState(), *shortest->to.state)) return OkStatus();
  return Error(Code::kFailedPrecondition,
               "{}: its state after {} tokens, computed anew, comes to other numbers: it is of "
               "another version",
               path, text.size());
}

Status KeptPrefixes::CheckTile(const std::string& path, TokenIds before, TokenIds tile,
                               const KvPage& page) {
  const std::size_t first = before.size();
  TROUPE_ASSIGN_OR_RETURN(
      Session session,
      Session::CreateWithoutRoom(engine_, static_cast<std::uint32_t>(first + KvLayout::kTile)));
  const std::size_t taken = session.TakeFrom(cache_, before);
  TROUPE_CHECK(taken == first);
  TROUPE_RETURN_IF_ERROR(session.ReserveRoom());
  TROUPE_RETURN_IF_ERROR(Compute(session, tile));
  if (session.SameTile(first, engine_.kv().BytesOf(page))) return OkStatus();
  return Error(Code::kFailedPrecondition,
               "{}: its tokens {} to {}, computed anew, come to other keys and values: it is of "
               "another version",
               path, first, first + tile.size() - 1);
}

}  // namespace troupe
