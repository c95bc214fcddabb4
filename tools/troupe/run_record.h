// What a run has to say at its end: the figures (run_figures.h), the record for --json, and the
// plan that
// --explain prints at its beginning.
#pragma once

#include <troupe/request.h>

#include <span>
#include <string>

#include "runtime/engine.h"
#include "troupe/json_record.h"
#include "troupe/run_figures.h"

namespace troupe {

RunFigures FiguresOf(const Engine& engine, const Answer& answer);

// The members that tell where experts came from, as every record has them.
void AddUsage(Json& record, const ExpertUsage& usage);

// What chose experts, what that took, and what a group gate counted.
void AddGate(Json& record, const Engine& engine);

// The chain of substitution policies in force, with its counts; exact if every expert is in memory.
ChainReport ChainOf(const Engine& engine);

// Of each link of the chain that answered, what its gates and answers counted; none of an exact
// run.
Json LinkCounts(const ChainReport& report);

Json RunRecord(const Engine& engine, std::span<const TokenId> prompt, const Sampling& sampling,
               const Answer& answer);

// To stderr: stdout is for the text.
void PrintPlan(const Engine& engine, const Sampling& sampling);

// Tells of the first misses of the cache as they happen: what was missing, what it displaced, how
// long it took and who waited.
void ExplainMisses(Engine& engine);

// The chain of substitution policies, with what each gate and kind of answer counted.
void ExplainSubstitution(const Engine& engine);
// How well the answer's needed loads were foreseen, by distance; nothing where none was.
void ExplainForesight(const Usage& usage);
// What a group gate did; nothing where there is none.
void ExplainGate(const Engine& engine);
// What the card did; nothing where there is none.
void ExplainCard(const Engine& engine);
// What drafts did for an answer, and why there were none.
void ExplainSpeculation(const Engine& engine, const Usage& usage);

}  // namespace troupe
