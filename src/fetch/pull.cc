#include "fetch/pull.h"

#include <sys/statvfs.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <set>
#include <span>
#include <system_error>
#include <utility>
#include <vector>

#include "fetch/part_file.h"
#include "fetch/plan/hub_files.h"
#include "fetch/plan/ollama_manifest.h"
#include "io/file.h"
#include "io/temporary_name.h"
#include "io/text_file.h"

namespace troupe {
namespace {

// What a place says of a model.
struct Offer {
  ModelName name;
  std::vector<PulledFile> files;
  std::vector<std::string> addresses;  // of each
};

class Puller {
 public:
  Puller(WebClient& client, const PullOptions& options) : client_(client), options_(options) {}

  Result<PullReport> Run(const ModelName& name);

 private:
  bool GoOn(Bytes of_file) const {
    return !options_.go_on || options_.go_on(here_ + of_file, size_);
  }
  std::string TokenFor(const ModelName& name) const {
    return name.place == ModelName::Place::kHub ? options_.settings.token : std::string();
  }
  DownloadOptions ForFiles(const ModelName& name) const {
    return {.token = TokenFor(name),
            .tries = options_.tries,
            .go_on = [this](std::uint64_t here) { return GoOn(Bytes(here)); },
            .again = options_.again};
  }
  Result<Offer> OfferOf(const ModelName& name);
  Result<Offer> HubOffer(const ModelName& name);
  Result<Offer> OllamaOffer(const ModelName& name);

  // Files of an older version of the model are not taken for those of this one.
  void LookForOlder(const PulledModel& model);
  Bytes HereOf(const PulledModel& model) const;
  bool IsHere(const std::string& path, const PulledFile& file) const;
  // From here on the folder has this version, and no older one.
  Status Begin(const PulledModel& model);
  Status CheckSpace(const PulledModel& model) const;
  Status FetchFile(const Offer& offer, std::size_t i, PullReport& report);

  WebClient& client_;
  const PullOptions& options_;
  Bytes here_, size_;            // of files that are done; of all
  std::set<std::string> older_;  // where files of an older version lie
  bool may_lose_ = false;        // a model that is whole
  bool begun_ = false;
};

Result<Offer> Puller::HubOffer(const ModelName& name) {
  const std::string& hub = options_.settings.hub;
  const WebRequest request = {
      .address = HubListingAddress(hub, name), .token = TokenFor(name), .headers = {}};
  const std::string what = name.Repository();
  TROUPE_ASSIGN_OR_RETURN(const std::string json, GetText(client_, what, request, ForFiles(name)));
  TROUPE_ASSIGN_OR_RETURN(const HubListing listing, ReadHubListing(what, json));
  TROUPE_ASSIGN_OR_RETURN(const HubChoice choice, ChooseHubFiles(name, listing));
  Offer offer{.name = name, .files = {}, .addresses = {}};
  offer.name.variant = choice.variant;
  for (const HubFile& file : choice.files) {
    if (file.bytes == 0) return DataLoss("{}: {} is empty", what, file.path);
    offer.files.push_back({file.path, file.bytes, file.sha256});
    offer.addresses.push_back(HubFileAddress(hub, name, listing.commit, file.path));
  }
  return offer;
}

Result<Offer> Puller::OllamaOffer(const ModelName& name) {
  const std::string& base = options_.settings.ollama;
  const WebRequest request = {.address = ManifestAddress(base, name),
                              .token = {},
                              .headers = {fmt::format("Accept: {}", kManifestType)}};
  TROUPE_ASSIGN_OR_RETURN(const std::string json,
                          GetText(client_, name.ToString(), request, ForFiles(name)));
  TROUPE_ASSIGN_OR_RETURN(const OllamaModel model, ReadOllamaManifest(name, json));
  Offer offer{.name = name, .files = {}, .addresses = {}};
  offer.files.push_back({name.variant + ".gguf", model.bytes, model.sha256});
  offer.addresses.push_back(BlobAddress(base, name, model.sha256));
  return offer;
}

Result<Offer> Puller::OfferOf(const ModelName& name) {
  return name.place == ModelName::Place::kHub ? HubOffer(name) : OllamaOffer(name);
}

void Puller::LookForOlder(const PulledModel& model) {
  const auto is_older = [&](const PulledModel& other, const PulledFile& file) {
    return std::ranges::any_of(other.record.files, [&](const PulledFile& old) {
      return other.FilePath(old) == model.FilePath(file) && old != file;
    });
  };
  for (const PulledModel& other : ListModels(options_.settings.folder)) {
    bool goes = other.record_path == model.record_path && other.record.files != model.record.files;
    for (const PulledFile& file : model.record.files) {
      if (!is_older(other, file)) continue;
      older_.insert(model.FilePath(file));
      goes = true;
    }
    may_lose_ |= goes && other.whole();
  }
}

Bytes Puller::HereOf(const PulledModel& model) const {
  Bytes here;
  for (const PulledFile& file : model.record.files) {
    const std::string path = model.FilePath(file);
    here += IsHere(path, file)
                ? Bytes(file.bytes)
                : Bytes(std::min(SizeOfPartFile(path),
                                 file.bytes - std::min<std::uint64_t>(1, file.bytes)));
  }
  return here;
}

bool Puller::IsHere(const std::string& path, const PulledFile& file) const {
  const std::optional<FileIdentity> found = IdentityOf(path);
  return found && found->size == file.bytes && !older_.contains(path);
}

Status Puller::Begin(const PulledModel& model) {
  if (std::exchange(begun_, true)) return OkStatus();
  for (const std::string& path : older_) {
    std::error_code error;
    std::filesystem::remove(path, error);
    if (error) return ErrnoStatus(error.value(), path);
  }
  older_.clear();
  return WriteWholeText(model.record_path, PullRecordText(model.record));
}

Status Puller::CheckSpace(const PulledModel& model) const {
  struct statvfs disk = {};
  const std::string folder = FolderOf(model.record_path);
  if (::statvfs(folder.c_str(), &disk) != 0) return OkStatus();  // writing will tell
  Bytes free(std::uint64_t{disk.f_bavail} * disk.f_frsize);
  for (const std::string& path : older_) {  // they go before this one takes its space
    if (const std::optional<FileIdentity> old = IdentityOf(path)) free += Bytes(old->size);
  }
  const Bytes missing = model.size() - model.here;
  if (missing <= free) return OkStatus();
  return Error(Code::kResourceExhausted,
               "{}: {} are missing, and {} has {} free; TROUPE_MODELS names another folder",
               model.record.name, ToString(missing), folder, ToString(free));
}

Status Puller::FetchFile(const Offer& offer, std::size_t i, PullReport& report) {
  const PulledFile& file = offer.files[i];
  const std::string path = report.model.FilePath(file);
  if (file.sha256.empty()) ++report.unchecked;
  if (IsHere(path, file)) {
    ++report.files_found;
    return OkStatus();
  }
  std::error_code error;
  std::filesystem::create_directories(FolderOf(path), error);
  if (error) return ErrnoStatus(error.value(), fmt::format("{}: making it", FolderOf(path)));
  const std::string what = fmt::format("{}: {}", offer.name.Repository(), file.path);
  DownloadOptions options = ForFiles(offer.name);
  options.accepted = [&] { return Begin(report.model); };
  if (options_.look) {
    options.look = [&](std::span<const std::byte> first) {
      return options_.look(what, first, file.bytes);
    };
  }
  const Status status =
      Download(client_, what, offer.addresses[i], path, file, options, report.downloads);
  if (report.downloads.refused == 0) return status;
  // What cannot be removed stays, and is said by `troupe list`.
  if (begun_ && here_ == Bytes()) {
    static_cast<void>(RemoveModel(options_.settings.folder, report.model));
  } else {
    static_cast<void>(RemovePartFile(path));
  }
  return status;
}

Result<PullReport> Puller::Run(const ModelName& name) {
  TROUPE_ASSIGN_OR_RETURN(const Offer offer, OfferOf(name));
  PullReport report;
  PulledModel& model = report.model;
  model.record_path = PullRecordPath(options_.settings.folder, offer.name);
  model.record = {.name = offer.name.ToString(), .files = offer.files};
  const std::string folder = FolderOf(model.record_path);
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) return ErrnoStatus(error.value(), fmt::format("{}: making it", folder));
  LookForOlder(model);
  model.here = HereOf(model);
  TROUPE_RETURN_IF_ERROR(CheckSpace(model));
  if (!may_lose_) TROUPE_RETURN_IF_ERROR(Begin(model));
  size_ = model.size();
  if (options_.begun) options_.begun(model, model.here);
  for (std::size_t i = 0; i < offer.files.size(); ++i) {
    TROUPE_RETURN_IF_ERROR(FetchFile(offer, i, report));
    here_ += Bytes(offer.files[i].bytes);
  }
  TROUPE_RETURN_IF_ERROR(Begin(model));
  model.here = size_;
  report.web = client_.counts();
  return report;
}

}  // namespace

Result<PullReport> Pull(const ModelName& name, const PullOptions& options) {
  TROUPE_ASSIGN_OR_RETURN(WebClient client, WebClient::Create());
  return Puller(client, options).Run(name);
}

}  // namespace troupe
