"""The words of docs/reports/placement.md; placement_report.py puts in the figures."""

TEXT = """# Where experts should live: placements compared

Made by `bench/placement --report docs/reports/placement.md --data DIR` from recorded routing; `bench/README.md` says
where the recordings come from. All latencies are simulated (`troupe simulate`), on one virtual clock; none is the time of a
real cluster. The scenarios lie in `bench/scenarios`, `docs/design/placement.md` says how the placements work. Means over
three seeds where nothing else is said.

In short: on the recorded DeepSeek-V2-Lite routing, a task a server, DanceMoE's latency is {dance_eplb} against EPLB's
(the paper: -30.6 %), and the search for latency is {ours_dance} against DanceMoE's. DanceMoE is {dance_gap} % above the
optimum of Eq. 2.

## Latency by server and method (Table II)

{comparisons}

![latency by server](placement/latency.svg)

What differs from the paper, and why:

- *Absolute times.* The paper's testbed runs MoE-Infinity, whose cost for each call we do not know; ours are the costs that
  `bench/scenarios/costs` says, **assumed** for the A100 from its published peaks and an eager framework's overhead. What is
  left is the time of 500 Mbps out of each server, which dominates in both: hence the like magnitude on DeepSeek-V2-Lite.
- *Tasks.* No routing of BIG-bench, MMLU-Pro, WikiText or TACO is published. Ours is that of three recorded tasks (dialogue
  summary, law, intent; 652, 252 and 65 tokens a prompt), all Chinese: their hot experts differ, but less than those of
  unlike languages or code would.
- *Experts a token.* The paper says 8 of 64 for DeepSeek-V2-Lite; the model has 6 routed and 2 shared ones, which are on every
  server and cause no calls. Ours are 6.
- *Mixtral.* Only counts are published, so tokens are drawn independently by them: no locality from token to token. The gain
  is small there, as in the paper and for its reason: 8 experts, of which a token takes 2 evenly, leave little to choose. The
  paper's SmartMoE and EPLB are at less than half of Uniform's time there; with every expert's load nearly even, neither has
  anything to balance that would explain this, and here they are not.
- *EPLB* is stronger here than a device-by-device one: it never gives a server a second copy (`src/expert/placement/eplb.cc`).

## Together or alone (Table I)

{servings}

Lone servers with one GPU do not keep up with Mixtral here: an expert of 352 MB loads in 29 ms, a prompt wants nearly all of 256, and the
queue grows as long as the run lasts. (The paper's MoE-Infinity prefetches while it computes, and its prompts are shorter.) The order is
the paper's. Whether that is so depends on two speeds: of the link, and of
loading from the host's own memory, here 12 GB/s for a GPU (assumed). An expert of DeepSeek-V2-Lite is 17 MB and loads in
1.4 ms; a prompt's tokens take longer over 500 Mbps, both ways, than all the experts it needs take from the host. Then the answer is: do not
distribute. Loading wins less where experts are large and tokens few, and where the link is fast; hosts without memory for all experts have no
choice.

## Gaps to the optimum of Eq. 2

{gaps}

The optimum is exact (minimum-cost flow): no placement has fewer remote calls. It is not the fastest: Eq. 2 counts a
call that a prompt of 650 tokens makes anyway as much as one that it could have avoided. The latency search has more remote
calls than the optimum and is {ours_optimum} against it.

## Time to place, on one core

{placing}

## Local computation over time (Fig. 6)

Placed for another task than the users have. All but Uniform and Redundance may migrate every 5 minutes.

![local ratio over time](placement/local-ratio.svg)

As in the paper the ratio jumps after the first five minutes and DanceMoE's ends above the baselines'. SmartMoE cannot gain:
it places every expert once, wherever its users are.

## Migration over a change of tasks (Fig. 7)

200 prompts a server of one task, 200 of another from minute 67 on, placed for a third; DanceMoE. Mean latency over all
prompts {with} s with migration, {without} s without: {migration_change} (the paper: 7.48 to 6.73 s, -10 %).

{migrations}

![local ratio](placement/migration-ratio.svg)
![latency](placement/migration-latency.svg)

As in the paper the change is followed in more than one step, because the first sees old and new calls mixed. There are
more migrations than the paper's three: loading from the host at 12 GB/s costs so little beside the remote calls that
Eq. 4 also adopts small gains. C is the remote calls since the last change, each at what it has cost more than a local one.

## Scaling (Fig. 8a)

Servers of one GPU, every third with the same task, 40 prompts a GPU.

{scaling}

![scaling](placement/scaling.svg)

The paper's gains from more GPUs, 9 % at 15 s and 19 % at 8 s, appear at 15 s under the optimum and the latency search, and not at 8 s. Each server
brings its own users and its own link, and a server's own calls stay the same; what more servers add is choice of a host. DanceMoE
even gets slower: servers of one task all hold the same experts, and what none of them wants, Algorithm 2 leaves to the
few servers that gave way first, whose links all others then wait for. The optimum of Eq. 2 happens to spread those.
The latency objective sees the queues at such hosts, and at 256 GPUs begins from the optimum for that reason; at 64 it takes
DanceMoE's, wrongly. The likely reason, not yet tested: it takes the slowest of the mean waits, and the slowest of forty calls waits longer than the mean.

## Bandwidth (Fig. 8b)

DanceMoE, prompts every 60 s so that 100 Mbps can serve them.

{bandwidth}

![bandwidth](placement/bandwidth.svg)

The paper: more than 55 % less from 100 to 1000 Mbps with 4 GPUs, 35 % with 256. Here the link is nearly all there is, so
the gain is greater, and does not fall with the number of GPUs, since every server keeps a link of its own.

## Requests as recorded, and processors instead of GPUs

Azure's conversation trace (times stretched 30-fold, at most 1024 tokens in and 16 out), routing as above:

{recorded}

Computers of two processors each, the cost of an expert **measured** (`troupe probe`; the rest estimated, see
`bench/scenarios/costs/cpu-deepseek-v2-lite.json`), a prompt every 60 s:

{cpu}

## The simulator

{speed}

Ten thousand GPUs of one server each, past the plan: {largest}. At a prompt a server that
cluster is overloaded at the hosts that Algorithm 2 leaves rare experts to, as above.
"""
