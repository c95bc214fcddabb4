"""The words of docs/reports/placement.md; placement_report.py puts in the figures."""

TEXT = """# Where experts should live: placements compared

Made by `bench/placement --report docs/reports/placement.md --data DIR` from recorded routing; `bench/README.md` says
where the recordings come from. All latencies are simulated (`troupe simulate`), on one virtual clock; none is the time of a
real cluster. The scenarios lie in `bench/scenarios`, `docs/design/placement.md` says how the placements work. Means over
three seeds in Tables I and II, seed 1 elsewhere. A single figure comes again from the command under its heading; all figures
but those of time to place and events a second are the same on every machine.

In short: on the recorded DeepSeek-V2-Lite routing, a task a server, DanceMoE's latency is {dance_eplb} against EPLB's
(the paper: -30.6 %), and the search for latency is {ours_dance} against DanceMoE's. DanceMoE is {dance_gap} % above the
optimum of Eq. 2.

## Latency by server and method (Table II)

    troupe simulate bench/scenarios/testbed-deepseek.json --data DIR --method dancemoe --seed 1

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
- *EPLB* is stronger here than a device-by-device one: it never gives a server a second copy (`src/placement/eplb.cc`).

## Together or alone (Table I)

    troupe simulate bench/scenarios/testbed-mixtral.json --data DIR --method uniform --seed 1 --set '/serving="alone"' \\
        --set /links/bytes_per_s=62.5e6 --set /users/0/phases/0/mean_interval_s=60 (and of users 1 and 2)

Prompts every 60 s a server, so that lone servers keep up: every 10 s, one GPU alone does not keep up with Mixtral here (an expert of
352 MB loads in 29 ms, and a prompt wants nearly all of 256), and the mean would say how long the run was.

{servings}

Working together wins with Mixtral, as in the paper; more than there, because loading and computing do not overlap here
(the paper's MoE-Infinity prefetches) and its prompts are shorter. Redirecting helps little, there as here, when servers are
mostly idle. With DeepSeek-V2-Lite it depends on two speeds: of the link, and of loading from the host's own memory, here
12 GB/s for a GPU (assumed). Its experts of 17 MB load in 1.4 ms; a long prompt's tokens take longer over 500 Mbps, both ways,
than all the experts it needs take from the host. Where lone servers are faster in the table, the answer is: do not distribute.
Hosts without memory for all experts have no choice.

## Gaps to the optimum of Eq. 2

    troupe place bench/scenarios/testbed-deepseek.json --data DIR --method all

{gaps}

The optimum is exact (minimum-cost flow): no placement has fewer remote calls. It is not the fastest: Eq. 2 counts a
call that a prompt of 650 tokens makes anyway as much as one that it could have avoided. The latency search has more remote
calls than the optimum and its latency in Table II is {ours_optimum} against it.

## Time to place, on one core

    build/release/src/expert/placement/placement_bench

{placing}

## Local computation over time (Fig. 6)

    troupe simulate bench/scenarios/fig6.json --data DIR --method dancemoe --json -

Placed for another task than the users have. All but Uniform and Redundance may migrate every 5 minutes.

{timeline}

![local ratio over time](placement/local-ratio.svg)

The paper prints a plot without numbers, and says of it: DanceMoE's ratio is the highest, more so after the migration at
5 minutes (BigBench) or 10 (MultiData). Here it jumps after the first five minutes, too, and ends above all baselines'; the
optimum of Eq. 2, which the paper does not have, ends above it. EPLB gains less: it follows the load of all users together.
SmartMoE cannot gain: it places every expert once, wherever its users are.

## Migration over a change of tasks (Fig. 7)

    troupe simulate bench/scenarios/fig7.json --data DIR          # and with --set /migration=null

200 prompts a server of one task, 200 of another from minute 67 on, placed for a third; DanceMoE. Mean latency over all
prompts {with} s with migration, {without} s without: {migration_change} (the paper: 7.48 to 6.73 s, -10 %).

The gain is greater than the paper's because the placement that stays is worse: made for a task that its server
never has, where the paper's was made from a data set of the kind that follows; and because prompts queue at home, which multiplies what a
pass takes longer. T_mig of Eq. 3 counts what goes like what comes; dropping takes no time, hence about half in the last column.

{migrations}

![local ratio](placement/migration-ratio.svg)
![latency](placement/migration-latency.svg)

As in the paper the change is followed in more than one step, because the first sees old and new calls mixed. There are
more migrations than the paper's three: loading from the host at 12 GB/s costs so little beside the remote calls that
Eq. 4 also adopts small gains. C is the remote calls since the last change, each at what it has cost more than a local one.

## Scaling (Fig. 8a)

    troupe simulate bench/scenarios/fig8.json --data DIR --method dancemoe --seed 1 --set /servers/0/count=256 \\
        --set /prompts=10240 --set /users/0/phases/0/mean_interval_s=15 (and of users 1 and 2; 8 is the scenario's)

Servers of one GPU, every third with the same task, 40 prompts a GPU.

{scaling}

![scaling](placement/scaling.svg)

The paper has no figures per size, only the gains from 4 to 256: 9 % at 15 s, 19 % at 8 s. Ours are about that at 15 s for the optimum and the
latency search; at 8 s the latency gains nothing: each server brings its own users and its own link, a server's own calls
stay the same, and what more servers add is choice of a host. The paper does not say whether its users grow with the GPUs.

DanceMoE gets slower: servers of one task all hold the same experts, and what none of them wants, Algorithm 2 leaves to the
few servers that gave way first, whose links all others then wait for. The optimum of Eq. 2 happens to spread those; the latency
search sees their queues, and is the fastest of the three at every size here. (`sim/latency_estimate_test.cc` holds it to that.)

## Bandwidth (Fig. 8b)

    troupe simulate bench/scenarios/fig8.json --data DIR --method dancemoe --set /links/bytes_per_s=12.5e6 \\
        --set /prompts=80 --set /users/0/phases/0/mean_interval_s=60 (and of users 1 and 2)

Prompts every 60 s, so that 100 Mbps can serve them with 4 GPUs.

{bandwidth}

![bandwidth](placement/bandwidth.svg)

The paper: more than 55 % less from 100 to 1000 Mbps with 4 GPUs, 35 % with 256. Here the link is nearly all there is (the
paper's engine spends much time elsewhere, as its Table II shows), so the gain is greater; and it does not fall with the number
of GPUs, since every server keeps a link of its own. DanceMoE's rises, because at 100 Mbps the few hosts of rare experts
are overloaded at 256 GPUs, as in Fig. 8a.

## Requests as recorded, and processors instead of GPUs

Azure's conversation trace (times stretched 30-fold, at most 1024 tokens in and 16 out), routing as above:

    troupe simulate bench/scenarios/recorded-requests.json --data DIR --method eplb

{recorded}

Computers of two processors each, the cost of an expert **measured** (`troupe probe`; the rest estimated, see
`bench/scenarios/costs/cpu-deepseek-v2-lite.json`), a prompt every 60 s:

    troupe simulate bench/scenarios/cpu-deepseek.json --data DIR --method eplb

{cpu}

## The simulator

    troupe simulate bench/scenarios/fig8.json --data DIR --set /servers/0/count=10000

{speed}

Memory is that of the whole process, the problem itself included: servers x experts bytes for who holds what, four times that for
who answers. The rest is what is in flight: a test holds it to the same with twenty times
the prompts. At a prompt a server, the 10,000 GPUs of DanceMoE are overloaded at the hosts that Algorithm 2 leaves rare experts to.
"""
