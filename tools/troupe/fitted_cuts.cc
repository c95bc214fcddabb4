#include "troupe/fitted_cuts.h"

#include <cstdint>
#include <filesystem>
#include <system_error>
#include <utility>

#include "io/text_file.h"
#include "runtime/container_path.h"
#include "troupe/remark.h"

namespace troupe {
namespace {

std::string FileOf(const std::string& model) { return PathBeside(model, ".cuts.json"); }

}  // namespace

std::vector<PricedCut> FittedCuts(const std::string& model, const ModelFingerprint& fingerprint) {
  const std::string path = FileOf(model);
  std::error_code ignored;
  if (!std::filesystem::exists(path, ignored)) return {};
  constexpr Bytes kMost = 4_GiB;
  const Result<std::string> text = ReadWholeText(path, kMost);
  Result<CutFile> file = text.ok() ? DecodeCutFile(path, *text) : text.status();
  if (!file.ok() || file->fingerprint != ToString(fingerprint)) {
    Remark("note: {}; not used\n",
           file.ok() ? path + ": its cuts are of another model" : file.status().message());
    return {};
  }
  return std::move(file->cuts);
}

std::vector<CutBasis> BasesOf(std::vector<PricedCut> cuts) {
  std::vector<CutBasis> bases;
  for (PricedCut& cut : cuts) bases.push_back(std::move(cut.basis));
  return bases;
}

std::map<std::uint32_t, std::vector<TriedCode>> CodesWithin(const std::vector<PricedCut>& cuts,
                                                            double most_loss) {
  std::map<std::uint32_t, std::vector<TriedCode>> codes;
  for (const PricedCut& cut : cuts) {
    std::vector<TriedCode> of_cut = CodesWorthATry(cut, most_loss);
    if (!of_cut.empty()) codes.emplace(cut.basis.layer, std::move(of_cut));
  }
  return codes;
}

// While it is read its text and its values lie beside what comes of them, which is shorter than
// either, as an end's tables of them later are.
Bytes BytesOfFittedBases(const std::string& model) {
  std::error_code none;
  const std::uintmax_t size = std::filesystem::file_size(FileOf(model), none);
  return none ? Bytes() : Bytes(3 * size);
}

}  // namespace troupe
