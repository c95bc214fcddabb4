// Traces in a file of their own, replayed: for tests.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "sim/replay/replay.h"
#include "testing/temp_folder.h"
#include "trace/trace_writer.h"

namespace troupe {

class ReplayedTrace : public testing::Test {
 protected:
  void Write(const TraceHeader& header, const TraceBlock& block) {
    TraceWriter writer =
        TraceWriter::Create(WholeFile(path()).value(), header, {.chunk_tokens = 16}).value();
    ASSERT_TRUE(writer.Append(block).ok() && writer.Finish().ok());
  }
  std::string path() const { return folder_.PathOf("t"); }
  TraceReader Open() const { return TraceReader::Open(path()).value(); }

  std::vector<ReplayOutcome> Run(const std::vector<ReplaySpec>& specs,
                                 const ReplayOptions& options = {.group = 1}) {
    TraceReader reader = Open();
    ThreadPool pool(2);
    return Replay(reader, specs, options, pool).value();
  }
  ReplayResult RunOne(const ReplaySpec& spec, const ReplayOptions& options = {.group = 1}) {
    return Run({spec}, options).front().result;
  }

  TempFolder folder_;
};

}  // namespace troupe
