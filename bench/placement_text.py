"""The words of docs/reports/placement.md; placement_report.py puts in the figures."""

TEXT = """# Where experts should live on a cluster: placements compared

Written by `bench/placement --report docs/reports/placement.md --data DIR` from recorded routing; `bench/README.md` says
where the recordings come from. All latencies are simulated (`troupe simulate`) on one virtual clock; none is a time of a
real cluster. The scenarios are in `bench/scenarios`; `docs/design/placement.md` explains the methods. Figures are means over
three seeds in Tables I and II, and of seed 1 elsewhere. The command under each heading reproduces a single figure. All figures
are the same on every machine, except time to place and events per second. Placements learn from every second prompt of a recording,
and users ask the others; Figs. 6 and 7 place for a task that the users do not have.

In short: on the recorded DeepSeek-V2-Lite routing, with one task on each server, DanceMoE's latency is {dance_eplb} against EPLB's
(the paper: -30.6 %), and the latency search's is {ours_dance} against DanceMoE's. DanceMoE is {dance_gap} % above the
optimum of Eq. 2.

## Latency by server and method (Table II)

    troupe simulate bench/scenarios/testbed-deepseek.json --data DIR --method dancemoe --seed 1

{comparisons}

![latency by server](placement/latency.svg)

Differences from the paper, and their reasons:

- *Absolute times.* The paper's testbed runs MoE-Infinity, whose cost for each call is unknown. Here the costs are those in
  `bench/scenarios/costs`, **assumed** for the A100 from its published peaks and an eager framework's overhead. The
  rest is the time of 500 Mbps out of each server. It dominates in both, which explains the similar magnitude on DeepSeek-V2-Lite.
- *Tasks.* No routing of BIG-bench, MMLU-Pro, WikiText or TACO is published. The routing here is that of three recorded tasks (dialogue
  summary, law, intent; 652, 252 and 65 tokens a prompt), all Chinese. Their hot experts differ, but less than those of
  different languages or code would.
- *Experts per token.* The paper says 8 of 64 for DeepSeek-V2-Lite. The model has 6 routed and 2 shared ones; the shared ones are on every
  server and cause no calls. Here the number is 6.
- *Mixtral.* Only counts are published, so tokens are drawn from them independently, without locality from token to token. The gain
  is small, as in the paper and for the same reason: 8 experts, of which a token takes 2 evenly, leave little choice. The
  paper's SmartMoE and EPLB take less than half of Uniform's time there. With every expert's load nearly even, neither has
  anything to balance that would explain this, and here they do not.
- *EPLB* is stronger here than an EPLB that works device by device: it never gives a server a second copy (`src/placement/eplb.cc`).

What holding prompts out is worth: the same scenario (mean of the seeds) beside one in which a placement knows the prompts that are then served
(`--set /placement/held_out=false`). The prompts differ, so the latencies do by more than what was known.

{held_out}

## Together or alone (Table I)

    troupe simulate bench/scenarios/testbed-mixtral.json --data DIR --method uniform --seed 1 --set '/serving="alone"' \\
        --set /links/bytes_per_s=62.5e6 --set /users/0/phases/0/mean_interval_s=60 (and of users 1 and 2)

Each server gets a prompt every 60 s, so that servers that work alone keep up. With one every 10 s, one GPU alone does not keep up with Mixtral (an expert of
352 MB loads in 29 ms, and a prompt needs nearly all of 256), and the mean would depend on the length of the run.

{servings}

Working together wins with Mixtral, as in the paper. It wins by more, because loading and computing do not overlap here
(the paper's MoE-Infinity prefetches) and the prompts are shorter. Redirecting helps little, as in the paper, when servers are
mostly idle.

With DeepSeek-V2-Lite the result depends on two speeds: that of the link, and that of loading from the host's own memory, here
12 GB/s for a GPU (assumed). Its experts of 17 MB load in 1.4 ms. Sending a long prompt's tokens over 500 Mbps, both ways, takes longer
than loading all the experts it needs from the host. Where servers that work alone are faster in the table, do not distribute.
Hosts without memory for all experts have no choice.

## Gaps to the optimum of Eq. 2

    troupe place bench/scenarios/testbed-deepseek.json --data DIR --method all

{gaps}

The optimum is exact (minimum-cost flow): no placement has fewer remote calls. It is not the fastest, because Eq. 2 counts a
call that a prompt of 650 tokens makes anyway as much as one that could be avoided. The latency search has more remote
calls than the optimum, and its latency in Table II is {ours_optimum} against it.

## Time to place, on one core

    build/release/src/placement/placement_bench

{placing}

## Local computation over time (Fig. 6)

    troupe simulate bench/scenarios/fig6.json --data DIR --method dancemoe --json -

The first placement is made for another task than the users have. All methods but Uniform and Redundance may migrate every 5 minutes.

{timeline}

![local ratio over time](placement/local-ratio.svg)

The paper prints a plot without numbers, and says that DanceMoE's ratio is the highest, more so after the migration at
5 minutes (BigBench) or 10 (MultiData). Here it also rises sharply after the first five minutes and ends above all baselines. The
optimum of Eq. 2, which the paper does not have, ends above it. EPLB gains less, because it follows the load of all users together.
SmartMoE cannot gain, because it places every expert once, wherever its users are.

## Migration over a change of tasks (Fig. 7)

    troupe simulate bench/scenarios/fig7.json --data DIR          # and with --set /migration=null

Each server gets 200 prompts of one task, then 200 of another from minute 67 on. The first placement is made for a third task, by DanceMoE. Mean latency over all
prompts is {with} s with migration and {without} s without: {migration_change} (the paper: 7.48 to 6.73 s, -10 %).

The gain is greater than the paper's for two reasons. The placement that stays is worse: it was made for a task that its server
never has, while the paper's was made from a data set of the kind that follows. And prompts queue at home, which multiplies the extra time
of a pass. T_mig of Eq. 3 is as printed: it counts drops like loads, and no link.

{migrations}

A load takes from serving what it needs: the expert comes over the sender's link, which its calls share, and the device computes nothing while it is loaded. The paper's Eq. 3 has the experts in each
host's memory; with that assumption (`--set '/migration/loads="devices"'`), and where copies go on beside computing (`"beside"`):

{migration_costs}

![local ratio](placement/migration-ratio.svg)
![latency](placement/migration-latency.svg)

As in the paper, the change is followed in more than one step, because the first sees old and new calls mixed. There are
more migrations than the paper's three: loading at 12 GB/s, all that T_mig knows, costs so little next to the remote calls that
Eq. 4 also adopts small gains. C is the remote calls since the last change, each at its extra cost over a local call.

## Scaling (Fig. 8a)

    troupe simulate bench/scenarios/fig8.json --data DIR --method dancemoe --seed 1 --set /servers/0/count=256 \\
        --set /prompts=10240 --set /users/0/phases/0/mean_interval_s=15 (and of users 1 and 2; 8 is the scenario's)

Servers of one GPU, every third with the same task, 40 prompts for each GPU.

{scaling}

![scaling](placement/scaling.svg)

The paper has no figures for each size, only the gains from 4 to 256: 9 % at 15 s, 19 % at 8 s. At 15 s the optimum and the
latency search gain about the same here. At 8 s the latency gains nothing: each server brings its own users and its own link, so a server's own calls
stay the same, and more servers only add a choice of hosts. The paper does not say whether its users grow with the GPUs.

DanceMoE gets slower. Servers of one task all hold the same experts, and Algorithm 2 leaves the experts that none of them uses to the
few servers that gave way first. All others then wait for the links of these few. The optimum of Eq. 2 happens to spread those experts. The latency
search sees the queues, and is the fastest of the three at every size here (`src/sim/latency_estimate_test.cc` checks this).

## Bandwidth (Fig. 8b)

    troupe simulate bench/scenarios/fig8.json --data DIR --method dancemoe --set /links/bytes_per_s=12.5e6 \\
        --set /prompts=80 --set /users/0/phases/0/mean_interval_s=60 (and of users 1 and 2)

Prompts arrive every 60 s, so that 100 Mbps can serve them with 4 GPUs.

{bandwidth}

![bandwidth](placement/bandwidth.svg)

The paper reports more than 55 % less from 100 to 1000 Mbps with 4 GPUs, and 35 % with 256. Here the link takes nearly all of the time (the
paper's engine spends much time elsewhere, as its Table II shows), so the gain is greater. It does not fall with the number
of GPUs, because every server keeps a link of its own. DanceMoE's gain rises: at 100 Mbps and 256 GPUs the few hosts of rare experts
are overloaded, as in Fig. 8a.

## Recorded requests, and processors instead of GPUs

Azure's conversation trace (times stretched 30-fold, at most 1024 tokens in and 16 out), routing as above:

    troupe simulate bench/scenarios/recorded-requests.json --data DIR --method eplb

{recorded}

Computers of two processors each, the costs of an expert and of a call **measured** on this engine (`troupe probe`, and `bench/cluster --part speeds` between nodes in
network namespaces; the dense part is estimated, see `bench/scenarios/costs/cpu-deepseek-v2-lite.json`), a prompt every 60 s, beside Table II's assumed GPU. `bench/placement --check` holds both
to the same order of methods:

    troupe simulate bench/scenarios/cpu-deepseek.json --data DIR --method eplb

{costs}

## The simulator

    troupe simulate bench/scenarios/fig8.json --data DIR --set /servers/0/count=10000

{speed}

Memory is that of the whole process. It includes the problem itself: servers x experts bytes for who holds what, and four times that for
who answers. The rest is what is in flight; a test checks that twenty times the prompts take no more.
With one prompt for each server, DanceMoE's 10,000 GPUs are overloaded at the hosts to which Algorithm 2 leaves rare experts.
"""
