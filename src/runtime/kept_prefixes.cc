#include "runtime/kept_prefixes.h"

#include <fmt/core.h>

#include <algorithm>
#include <filesystem>
#include <vector>

#include "base/check.h"
#include "runtime/session.h"

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
  Result<PrefixFileReport> report =
      ReadPrefixes(file, *engine_.fingerprint(), cache_, engine_.kv(), go_on);
  if (report.ok()) {
    if (Status status = Check(file, go_on); !status.ok()) {
      cache_.GiveUp(cache_.pages());
      report = std::move(status);
    }
  }
  known_ = {.path = file, .file = std::nullopt, .changes = cache_.changes()};
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
  if (cache_.pages() == 0) return OkStatus();
  if (known_.file && cache_.changes() == known_.changes && IdentityOf(file) == known_.file) {
    return OkStatus();
  }
  const auto may_go_on = [&]() -> Status {
    if (go_on) TROUPE_RETURN_IF_ERROR(go_on());
    return MayReplace(file);
  };
  TROUPE_RETURN_IF_ERROR(
      WritePrefixes(file, *engine_.fingerprint(), cache_, engine_.kv(), may_go_on));
  known_ = {.path = file, .file = IdentityOf(file), .changes = cache_.changes()};
  return OkStatus();
}

// Another server may keep its own there, and they are worth as much.
Status KeptPrefixes::MayReplace(const std::string& path) const {
  const std::optional<FileIdentity> now = IdentityOf(path);
  if (!now || now == known_.file) return OkStatus();
  return Error(Code::kAlreadyExists,
               "{}: it is not the file that was read at the start: it stays as it is", path);
}

// A tile of positions at the beginning of a text, and one as far behind as there is any: other
// weights than the fingerprint has sampled, or another arithmetic, would give other bytes.
Status KeptPrefixes::Check(const std::string& path, const MayGoOn& go_on) {
  const std::vector<PrefixCache::Kept> all = cache_.All();
  std::vector<std::size_t> depth(all.size());
  std::optional<std::size_t> first, deepest;
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (all[i].behind != PrefixCache::Kept::kNone) depth[i] = depth[all[i].behind] + 1;
    if (all[i].tokens.size() < KvLayout::kTile) continue;
    if (!first && depth[i] == 0) first = i;
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

Status KeptPrefixes::CheckTile(const std::string& path, TokenIds before, TokenIds tile,
                               const KvPage& page) {
  const std::size_t first = before.size();
  TROUPE_ASSIGN_OR_RETURN(
      Session session,
      Session::CreateWithoutRoom(engine_, static_cast<std::uint32_t>(first + KvLayout::kTile)));
  const std::size_t taken = session.TakeFrom(cache_, before);
  TROUPE_CHECK(taken == first);
  TROUPE_RETURN_IF_ERROR(session.ReserveRoom());
  SequenceRows rows{.sequence = &session, .phase = Phase::kPrompt, .exact = true};
  for (std::size_t at = 0; at < tile.size(); at += rows.tokens.size()) {
    rows.tokens =
        tile.subspan(at, std::min<std::size_t>(tile.size() - at, engine_.plan().memory.chunk));
    TROUPE_RETURN_IF_ERROR(engine_.Run({&rows, 1}));
  }
  if (session.SameTile(first, engine_.kv().BytesOf(page))) return OkStatus();
  return Error(Code::kFailedPrecondition,
               "{}: its tokens {} to {}, computed anew, come to other keys and values: it is of "
               "another version",
               path, first, first + tile.size() - 1);
}

}  // namespace troupe
