// `troupe calibrate --groups K`: learns a group gate, and measures what looking into some of the
// groups costs in quality and saves in time; as a table, and as the file beside the model that
// --gate reads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "lab/gate_measurement.h"
#include "lab/group_calibration.h"
#include "runtime/group_gate_file.h"
#include "text/vocab.h"
#include "troupe/engine_flags.h"
#include "troupe/json_record.h"
#include "troupe/option_table.h"

namespace troupe {

class MeasureGroups {
 public:
  void AddTo(Options& options);

  bool wanted() const { return groups_ > 0; }
  // Of the text, the last tokens: calibration has to leave them unread. None if not wanted.
  std::size_t tokens() const { return wanted() ? scored_ : 0; }
  // Of a text with that many bytes.
  Bytes TakesBeside(const ModelConfig& config, std::size_t text_bytes) const;

  // To be asked before anything that takes long.
  Status CheckModel(const Engine& engine) const;
  // Reads `text` with the exact gate. The fingerprint and the text's name are the caller's to say.
  Result<GroupGateFile> Learn(Session& session, Engine& engine, std::span<const TokenId> text,
                              std::optional<TokenId> begin) const;
  struct Text {
    std::span<const TokenId> ids;  // not learned from
    std::optional<TokenId> begin;
  };
  // Saves the file first: measuring reads it as a run does.
  Result<Json> SaveAndMeasure(const EngineFlags& flags, const GroupGateFile& file, const Text& text,
                              bool table) const;

 private:
  std::string PathFor(const std::string& model) const;
  Result<std::vector<MeasuredGate>> Measure(const EngineFlags& flags, const GroupGateFile& file,
                                            const Text& text, bool table) const;
  GroupCalibrationOptions OptionsFor(std::size_t tokens) const;

  std::uint32_t groups_ = 0;
  std::size_t recorded_ = 4096, scored_ = 1024, window_ = 256;
  std::string output_;
};

}  // namespace troupe
