"""The words of docs/reports/placement.md that no run changes; placement_report.py puts in the figures, and placement_claims.py
what is said of them."""

TEXT = """# Where experts should live on a cluster: placements compared

Written by `bench/placement --report docs/reports/placement.md --data DIR` from recorded routing; `bench/README.md` says
where the recordings come from. All latencies are simulated (`troupe simulate`) on one virtual clock; none is a time of a
real cluster. The scenarios are in `bench/scenarios`; `docs/design/placement.md` explains the methods. Figures are means over
three seeds in Tables I and II, and of seed 1 elsewhere. The command under each heading reproduces a single figure. All figures
are the same on every machine, except time to place and events per second. Placements learn from every second prompt of a recording,
and users ask the others; Figs. 6 and 7 place for a task that the users do not have. Users ask few prompts ({says_served}) again and again,
so seeds vary when and in which order prompts come, and not which there are.

In short: on the recorded DeepSeek-V2-Lite routing, with one task on each server, DanceMoE's latency is {dance_eplb} against EPLB's
(the paper: -30.6 %), and the latency search's is {ours_dance} against DanceMoE's, both simulated with costs that are assumed for a GPU. DanceMoE is
{dance_gap} % above the optimum of Eq. 2. Live, three nodes of this engine that serve a trained model had -3 to -12 %, DanceMoE against EPLB, and with random weights, whose tasks
do not differ, no gain ([cluster.md](cluster.md#placement)). {says_elsewhere}

## Latency by server and method (Table II)

    troupe simulate bench/scenarios/testbed-deepseek.json --data DIR --method dancemoe --seed 1

{comparisons}

![latency by server](placement/latency.svg)

Differences from the paper, and their reasons:

- *Absolute times.* The paper's testbed runs MoE-Infinity, whose cost for each call is unknown. Here the costs are those in
  `bench/scenarios/costs`, **assumed** for the A100 from its published peaks and an eager framework's overhead. The
  rest is the time of 500 Mbps out of each server. {says_magnitude}
- *Tasks.* No routing of BIG-bench, MMLU-Pro, WikiText or TACO is published. The routing here is that of three recorded tasks, all Chinese (dialogue
  summary, law and intent: {says_served}). Their hot experts differ; whether those of
  other languages, or of code, would differ more these recordings do not tell.
- *Experts per token.* The paper says 8 of 64 for DeepSeek-V2-Lite. The model has 6 routed and 2 shared ones; the shared ones are on every
  server and cause no calls. Here the number is 6.
- *Mixtral.* Only counts are published, so tokens are drawn from them independently, without locality from token to token. The prompts from which a
  placement learns and those that are served are drawn from the same counts, so nothing is held out there but chance. {says_mixtral}
- *EPLB* never gives a server a second copy here (`src/placement/eplb.cc`), as one that works device by device may: such a copy saves no call between servers.

What it costs a placement not to know the prompts: the same scenario (mean of the seeds) beside one in which it learns from the very prompts that are then served
(`--set '/placement/held_out="served"'`; they are the same prompts, at the same times). {says_held_out}

{held_out}

## Together or alone (Table I)

    troupe simulate bench/scenarios/testbed-mixtral.json --data DIR --method uniform --seed 1 --set '/serving="alone"' \\
        --set /links/bytes_per_s=62.5e6 --set /users/0/phases/0/mean_interval_s=60 (and of users 1 and 2)

Each server gets a prompt every 60 s, so that servers that work alone keep up. With one every 10 s, one GPU alone does not keep up with Mixtral (an expert of
352 MB loads in 29 ms, a prompt needs nearly all of 256, and each further token of its answer 64), and the mean would depend on the length of the run.

{servings}

{says_servings}

A lone server here loads what it lacks on demand from its host's memory: it reads nothing ahead, and does not compute while it loads. The paper's MoE-Infinity does
both, so these rows are no measure of it, and what collaboration gains over a good engine alone is less than they show.

With DeepSeek-V2-Lite the result depends on two speeds: that of the link, and that of loading from the host's own memory, here
12 GB/s for a GPU (assumed). {says_link_or_host} Where servers that work alone are faster in the table, do not distribute.
Hosts without memory for all experts have no choice.

## Gaps to the optimum of Eq. 2

    troupe place bench/scenarios/testbed-deepseek.json --data DIR --method all

{gaps}

The optimum is exact (minimum-cost flow): no placement has fewer remote calls. That need not be the fastest, because Eq. 2 counts a
call that a long prompt makes anyway as much as one that could be avoided. {says_fewest_calls}

What a method may be above the optimum here was stated from the scenario whose tasks are rotated (`testbed-deepseek-rotated.json`): what it was above there, rounded up, and
{gap_margin} points more. `bench/placement --check` holds it to both.

## Time to place, on one core

    build/release/src/placement/placement_bench

{placing}

{says_placing_load}

## Local computation over time (Fig. 6)

    troupe simulate bench/scenarios/fig6.json --data DIR --method dancemoe --json -

The first placement is made for another task than the users have. All methods but Uniform and Redundance may migrate every 5 minutes, and then go by the calls of prompts
that users ask again and again (13, 33 and 127 a task): nothing is held out from a migration here or in Fig. 7.

{timeline}

![local ratio over time](placement/local-ratio.svg)

The paper prints a plot without numbers, and says that DanceMoE's ratio is the highest, more so after the migration at
5 minutes (BigBench) or 10 (MultiData). {says_timeline}

## Migration over a change of tasks (Fig. 7)

    troupe simulate bench/scenarios/fig7.json --data DIR          # and with --set /migration=null

Each server gets 200 prompts of one task, then 200 of another from minute 67 on. The first placement is made for a third task, by DanceMoE. Mean latency over all
prompts is {with} s with migration and {without} s without: {migration_change} (the paper: 7.48 to 6.73 s, -10 %).

Two things differ from the paper's run. What stays was made for a task that its server never has, while the paper's was made from a data set of the kind that
follows: {says_staying}. And prompts queue at home, which multiplies the extra time of a pass. T_mig of Eq. 3 is as printed: it counts drops like loads, and no link.

{migrations}

A load takes from serving what it needs: the expert comes over the sender's link, which its calls share, and the device computes nothing while it is loaded. The paper's Eq. 3 has the experts in each
host's memory; with that assumption (`--set '/migration/loads="devices"'`), and where copies go on beside computing (`"beside"`):

{migration_costs}

![local ratio](placement/migration-ratio.svg)
![latency](placement/migration-latency.svg)

{says_migrations} C is the remote calls since the last change, each at its extra cost over a local call.

## Scaling (Fig. 8a)

    troupe simulate bench/scenarios/fig8.json --data DIR --method dancemoe --seed 1 --set /servers/0/count=256 \\
        --set /prompts=10240 --set /users/0/phases/0/mean_interval_s=15 (and of users 1 and 2; 8 is the scenario's)

Servers of one GPU, every third with the same task, 40 prompts for each GPU.

{scaling}

![scaling](placement/scaling.svg)

The paper has no figures for each size, only the gains from 4 to 256: 9 % at 15 s, 19 % at 8 s. {says_scaling}
(`src/sim/latency_estimate_test.cc` holds the search to being the fastest with 4, 9 and 24 servers of another problem.) A mean above the interval is of servers with
queues; where they do not keep up it grows with the length of the run.

## Bandwidth (Fig. 8b)

    troupe simulate bench/scenarios/fig8.json --data DIR --method dancemoe --set /links/bytes_per_s=12.5e6 \\
        --set /prompts=80 --set /users/0/phases/0/mean_interval_s=60 (and of users 1 and 2)

Prompts arrive every 60 s, so that 100 Mbps can serve them with 4 GPUs.

{bandwidth}

![bandwidth](placement/bandwidth.svg)

{says_bandwidth}

## Recorded requests, and processors instead of GPUs

Azure's conversation trace (times stretched 30-fold, at most 1024 tokens in and 16 out), routing as above:

    troupe simulate bench/scenarios/recorded-requests.json --data DIR --method eplb

{recorded}

Computers of two processors each, beside Table II's assumed GPU. The costs of an expert and of a call were **measured** on this engine, the dense part is estimated (`troupe probe`, and
an earlier form of `bench/cluster --part speeds` between nodes in network namespaces; see `bench/scenarios/costs/cpu-deepseek-v2-lite.json`). Besides costs, experts are smaller (4.9 MB in Q4_0 for
17.3 MB in fp16), so is memory (room for 534 of them a device, for 543), rows go in 8 bits and come back as floats (16 bits both ways), and prompts come every 60 s in place of 10. Links and routing are the same:

    troupe simulate bench/scenarios/cpu-deepseek.json --data DIR --method eplb

{costs}

These costs of a call are of nodes that did nothing else, and have no fixed part: the fit's was below zero and was cut. [cluster.md](cluster.md#what-a-call-costs) measures 0.11 to 0.28 ms a
call and, in a later fit, 6.2 ms a MiB in place of 3.7; the means that `troupe simulate` gave with costs of such nodes were 19 to 27 % below those of live ones. The last two columns are with 0.28 ms and 6.2 ms a MiB: {says_dearer_calls}. `bench/placement --check`
holds DanceMoE below EPLB and the latency search below DanceMoE with all three.

## The simulator

    troupe simulate bench/scenarios/fig8.json --data DIR --set /servers/0/count=10000

{speed}

Memory is that of the whole process. It includes the problem itself: servers x experts bytes for who holds what, and four times that for
who answers. The rest is what is in flight; a test holds that of twenty times the prompts to twice as much.
With 10,000 GPUs there is one prompt for each server, and {says_largest}.
"""
