#include "base/log.h"

namespace troupe {
namespace {
LogSink& Sink() {
  static LogSink sink;
  return sink;
}
}  // namespace

void SetLogSink(LogSink sink) { Sink() = std::move(sink); }

void LogLine(LogLevel level, std::string_view line) {
  if (Sink()) Sink()(level, line);
}

}  // namespace troupe
