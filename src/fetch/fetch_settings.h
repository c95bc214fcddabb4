// What the environment says of getting models: where they are got from, with which token, and where
// they lie. The names are those that the hub's own tools use.
#pragma once

#include <string>

#include "base/status.h"

namespace troupe {

struct FetchSettings {
  std::string hub;     // HF_ENDPOINT, without a slash at its end
  std::string token;   // of the hub: HF_TOKEN, or the file HF_TOKEN_PATH or HF_HOME/token
  std::string ollama;  // OLLAMA_REGISTRY
  std::string folder;  // TROUPE_MODELS, XDG_DATA_HOME/troupe/models, ~/.local/share/troupe/models
};

// kInvalidArgument: a setting is no address, or a token that cannot be sent.
Result<FetchSettings> ReadFetchSettings();

// `folder` of these alone; empty: the environment names no folder.
std::string ModelFolder();

}  // namespace troupe
