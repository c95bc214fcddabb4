#include "base/log.h"

namespace troupe {
namespace {
WarningSink& Sink() {
  static WarningSink sink;
  return sink;
}
}  // namespace

void SetWarningSink(WarningSink sink) { Sink() = std::move(sink); }

void WarnOf(std::string_view line) {
  if (Sink()) Sink()(line);
}

}  // namespace troupe
