#include "troupe/commands.h"

namespace troupe {
namespace {

constexpr CommandInfo kCommands[] = {
    {"run", "Generate text with a model",
     "  troupe run models/small-qwen2moe-q8_0.gguf --prompt \"The kernel\" -n 64\n"
     "  troupe run model.gguf \"Why is the sky blue?\"\n"
     "  troupe run model.gguf --chat --memory 6GiB\n"
     "  troupe run model.gguf --file question.txt --temperature 0 --json record.json",
     MakeRunCommand},
    {"pull", "Get a model from Hugging Face or from ollama's library",
     "  troupe pull hf.co/OWNER/REPO-GGUF:Q4_K_M\n"
     "  troupe pull qwen3:30b-a3b",
     MakePullCommand},
    {"list", "Show the models that were got, and whether they are complete",
     "  troupe ls\n  troupe list --json -", MakeListCommand},
    {"rm", "Remove a model that was got, with all that belongs to it",
     "  troupe rm hf.co/OWNER/REPO-GGUF:Q4_K_M", MakeRmCommand},
    {"bench", "Measure how fast a model runs on this machine",
     "  troupe bench model.gguf --prefill 128,512 --decode 128", MakeBenchCommand},
    {"bench-server", "Measure what clients of a server see when many ask at once",
     "  troupe bench-server http://127.0.0.1:8080 --clients 8 --requests 64\n"
     "  troupe bench-server https://gpu.lan:8443 --insecure --api-key KEY --rate 2 --lengths "
     "azure_llm_2023_conv.csv.zst",
     MakeBenchServerCommand},
    {"calibrate",
     "Learn from a text which experts a model uses next and which together, for faster runs",
     "  troupe calibrate model.gguf --text book.txt\n"
     "  troupe calibrate model.gguf --text book.txt --measure-quality --shares 25,50\n"
     "  troupe calibrate model.gguf --trace run.trace",
     MakeCalibrateCommand},
    {"eval", "Measure a model's quality on a text and on tasks, exact and lossy",
     "  troupe eval model.gguf --text book.txt --logits reference.logits\n"
     "  troupe eval model-q4_k.gguf --text book.txt --reference reference.logits\n"
     "  troupe eval model.gguf --tasks copa.jsonl.zst --items 100\n"
     "  troupe eval model.gguf --text book.txt --sweep smoe:alpha=0.3,drop,random -o sweep",
     MakeEvalCommand},
    {"inspect", "Show what a model file contains and how much memory it needs",
     "  troupe inspect models/tiny-qwen2moe-q8_0.gguf --tensors", MakeInspectCommand},
    {"pack", "Pack a copy of a model's experts into a file that loads fastest",
     "  troupe pack model.gguf\n"
     "  troupe pack model-00001-of-00003.gguf -o /fast/model.experts --low Q2_K",
     MakePackCommand},
    {"plan", "Show how a model uses a memory budget and how fast it should run",
     "  troupe plan model.gguf --memory 6GiB --ctx 8192\n"
     "  troupe plan model.gguf --memory 6GiB --ctx 8192 --parallel 8",
     MakePlanCommand},
    {"probe", "Measure how fast this machine reads memory and disk and computes experts",
     "  troupe probe\n"
     "  troupe probe model.gguf --fresh --json probe.json",
     MakeProbeCommand},
    {"device", "Show what this machine has to give now, and the experts that it may run of that",
     "  troupe device\n"
     "  troupe device model.gguf --cloud https://strong:8443 --cloud-key key --json -",
     MakeDeviceCommand},
    {"place", "Decide which server of a cluster holds which experts",
     "  troupe place problem.json --method all\n"
     "  troupe place problem.json --from now.json --seconds-per-call 0.004 -o next.json",
     MakePlaceCommand},
    {"cluster", "Show a cluster as one of its nodes sees it; write certificates for nodes",
     "  troupe cluster status http://10.0.0.1:8080\n"
     "  troupe cluster explain http://10.0.0.1:8080\n"
     "  troupe cluster plan http://10.0.0.1:8080\n"
     "  troupe cluster certificates /etc/troupe --hosts 10.0.0.1,10.0.0.2,b.lan",
     MakeClusterCommand},
    {"ps", "Show the servers of this machine and what they are doing",
     "  troupe ps\n"
     "  troupe ps --json -",
     MakePsCommand},
    {"quantize", "Convert a model's weights to another type",
     "  troupe quantize model-f16.gguf model-q4_k.gguf Q4_K --output-type Q6_K",
     MakeQuantizeCommand},
    {"replay", "Simulate caches of every policy and size on a recorded trace",
     "  troupe replay tests/data/routing/gpt-oss-20b.trace --pass 1\n"
     "  troupe replay run.trace --as-recorded\n"
     "  troupe replay run.trace --policy lru,arc --budget 25,50 --predict none,eap --link "
     "2GiB/100us "
     "--plot hits.html\n"
     "  troupe replay run.trace --substitute exact,smoe:alpha=0.3,buddies --buddies 25%",
     MakeReplayCommand},
    {"serve", "Serve a model over HTTP to clients of OpenAI's API",
     "  troupe serve models/small-qwen2moe-q8_0.gguf --port 8080\n"
     "  troupe serve model.gguf --memory 6GiB --parallel 8 --api-keys keys.txt",
     MakeServeCommand},
    {"simulate", "Simulate a cluster that serves prompts",
     "  troupe simulate tests/data/routing/scenario.json\n"
     "  troupe simulate bench/scenarios/testbed-deepseek.json --data data --method eplb",
     MakeSimulateCommand},
    {"simulate-server", "Simulate what clients of one server see by recorded requests",
     "  troupe simulate-server tests/data/serving/azure_conv.csv.zst --times 10\n"
     "  troupe simulate-server azure_llm_2023_conv.csv.zst --row-cost-ms 0.2 --parallel 32 "
     "--pass-ms 100",
     MakeSimulateServerCommand},
    {"simulate-ends", "Simulate weak machines that share a strong one with their users",
     "  troupe simulate-ends --ends 6 --end-row-cost-ms 1.4 --cloud-row-cost-ms 0.3 --prompts 4 "
     "--rate 6\n"
     "  troupe simulate-ends --ends 3 --end-row-cost-ms 1.4 --cloud-row-cost-ms 0.3 --together 3 "
     "--place cloud",
     MakeSimulateEndsCommand},
    {"split", "Write a model in several files", "  troupe split model.gguf parts/model --size 4GiB",
     MakeSplitCommand},
    {"merge", "Write a model of several files as one",
     "  troupe merge parts/model-00001-of-00003.gguf model.gguf", MakeMergeCommand},
    {"synth", "Write a model with random weights, for tests and speed runs",
     "  troupe synth olmoe.gguf --shape olmoe-1b-7b --type Q4_K\n"
     "  troupe synth two-layers.gguf --shape ~/OLMoE/config.json --type Q8_0 --layers 2\n"
     "  troupe synth wide.gguf --widen models/tiny-qwen2moe-q8_0.gguf --factor 16",
     MakeSynthCommand},
    {"tokenize", "Show the tokens of a text, or the text of tokens",
     "  troupe tokenize model.gguf --prompt \"The kernel\"\n"
     "  troupe tokenize model.gguf --count < book.txt\n"
     "  troupe tokenize model.gguf --ids 464,9720",
     MakeTokenizeCommand},
    {"trace", "Show, convert, cut, merge and plot records of a model's routing",
     "  troupe trace info run.trace\n"
     "  troupe trace convert tests/data/routing/intent.meta.json -o intent.trace\n"
     "  troupe trace cut run.trace --layers 1-4 --tokens 200 -o small.trace\n"
     "  troupe trace stats run.trace --plot routing.html",
     MakeTraceCommand},
    {"completion", "Print a script that completes troupe's command lines in a shell",
     "  source <(troupe completion bash)\n"
     "  troupe completion fish > ~/.config/fish/completions/troupe.fish",
     MakeCompletionCommand},
    {"man", "Print the manual page",
     "  troupe man | man -l -\n"
     "  troupe man > /usr/share/man/man1/troupe.1",
     MakeManCommand},
};

}  // namespace

std::span<const CommandInfo> AllCommands() { return kCommands; }

const CommandInfo* FindCommand(std::string_view name) {
  if (name == "ls") name = "list";  // as ollama has it
  for (const CommandInfo& command : kCommands) {
    if (command.name == name) return &command;
  }
  return nullptr;
}

std::string CommandNames() {
  std::string names;
  for (const CommandInfo& command : kCommands) {
    if (!names.empty()) names += ", ";
    names += command.name;
  }
  return names;
}

}  // namespace troupe
