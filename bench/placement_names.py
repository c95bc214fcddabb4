"""What bench/placement's tables call methods and scenarios, the paper's figures beside which they stand, and how a change
is written."""

NAMES = {"uniform": "Uniform", "redundance": "Redundance", "smartmoe": "SmartMoE", "eplb": "EPLB",
         "dancemoe": "DanceMoE", "optimum": "optimum of Eq. 2", "latency": "latency search (ours)"}
# Table II of the paper: server 1, 2, 3 and the average, in seconds.
PAPER = {
    "testbed-deepseek.json": {"uniform": (48.55, 17.28, 9.43, 21.66),
                              "redundance": (25.88, 13.77, 4.79, 13.08),
                              "smartmoe": (40.28, 16.43, 9.51, 19.39),
                              "eplb": (23.93, 7.08, 3.12, 9.56),
                              "dancemoe": (14.67, 5.85, 2.49, 6.63)},
    "testbed-deepseek-rotated.json": {"uniform": (24.85, 30.63, 36.48, 30.65),
                                      "redundance": (15.96, 24.76, 12.36, 17.70),
                                      "smartmoe": (23.68, 30.41, 35.21, 29.77),
                                      "eplb": (16.36, 19.07, 9.35, 14.93),
                                      "dancemoe": (13.96, 16.72, 9.20, 13.29)},
    "testbed-mixtral.json": {"uniform": (6.44, 6.04, 3.44, 5.08),
                             "redundance": (5.96, 6.16, 3.07, 4.85),
                             "smartmoe": (3.76, 1.59, 2.03, 2.30),
                             "eplb": (3.60, 1.53, 1.82, 2.16),
                             "dancemoe": (3.52, 1.57, 1.67, 2.09)},
    "testbed-mixtral-rotated.json": {"uniform": (9.20, 10.26, 13.31, 10.92),
                                     "redundance": (8.28, 10.32, 11.08, 9.90),
                                     "smartmoe": (9.82, 11.89, 13.84, 11.85),
                                     "eplb": (8.69, 9.52, 9.89, 9.36),
                                     "dancemoe": (8.30, 9.80, 9.41, 9.17)},
}
TITLES = {"testbed-deepseek.json": "DeepSeek-V2-Lite, a task a server, Poisson 10 s (paper: BigBench)",
          "testbed-deepseek-rotated.json":
              "DeepSeek-V2-Lite, tasks rotated, longer answers, Poisson 20 s (paper: MultiData)",
          "testbed-mixtral.json": "Mixtral-8x7B, a subject a server, Poisson 10 s (paper: BigBench)",
          "testbed-mixtral-rotated.json":
              "Mixtral-8x7B, subjects rotated, longer answers, Poisson 20 s (paper: MultiData)"}
MAIN = "testbed-deepseek.json"

SERVING_NAMES = {"alone": "each server alone, loads on demand: nothing read ahead, nothing overlapped (paper: MoE-Infinity)",
                 "redirected": "the same, prompts redirected to idle servers",
                 "naive": "naive collaboration (Uniform)", "dancemoe": "DanceMoE",
                 "latency": "latency search (ours)"}
# Table I: Mixtral-8x7B.
PAPER_SERVINGS = {"alone": (9.14, 4.77, 3.18, 5.19), "redirected": (8.60, 4.77, 3.10, 5.03),
                  "naive": (4.96, 4.34, 3.40, 4.11)}
# Fig. 7: what is done about a change of tasks.
MIGRATION_NAMES = {"with": "migration, over links and into devices that serve",
                   "with, devices wait": "migration, from each host's memory, devices wait",
                   "with, loads beside": "migration, from each host's memory, beside serving",
                   "without": "none, placed for a third task",
                   "without, first tasks": "none, placed for the users' first tasks"}


def change(new, old):
    return f"{100 * (new / old - 1):+.1f} %"
