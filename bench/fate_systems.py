"""The systems that bench/fate compares, and the settings that each may choose from. Runs nothing."""
import typing

# What each is called in tables.
NO_CACHE, DEMAND, PATHS, FATE = "on demand, no cache", "on demand", "activation paths", "Fate"
NOTHING, TROUPE, PROFILED = "troupe, nothing ahead", "troupe", "troupe, profile"
TUNED, WRONG, PAIRS, FILLED = "troupe, tuned", "troupe, wrong guesses", "troupe, pairs", "troupe, filled"
PATHS_PAIRS, PATHS_FILLED = "activation paths, pairs", "activation paths, filled"

OURS = (FATE, TROUPE, PROFILED, TUNED)  # exact, and beginning with an empty cache: as their rivals do
AS_USED = (TROUPE, PROFILED)  # held to the speed of NOTHING, whose cache and quotas are the same
INEXACT = (PAIRS, PATHS_PAIRS)

PROFILE = "PROFILE"  # stands for --profile and the file that calibration left


class Setting(typing.NamedTuple):
    """What a system at its best may choose."""
    cache: str
    shallow: int
    governed: bool = True

    def arguments(self):
        return ["--cache", self.cache, "--shallow", str(self.shallow), *([] if self.governed else ["--ungoverned"])]

    def __str__(self):
        return ", ".join([self.cache, f"shallow {self.shallow}", *([] if self.governed else ["ungoverned"])])


# Systems without a choice; slots beside the budget's where there is no cache to speak of.
FIXED = {
    NO_CACHE: ["--predict", "none", "--cache", "lru", "--slots", "8"],
    NOTHING: ["--predict", "none"],
    TROUPE: [],
    PROFILED: [PROFILE, "--shallow", "0"],  # a profile may keep layers, and NOTHING has none
    WRONG: ["--predict", "wrong"],
}
FIXED_SETTINGS = {NO_CACHE: "lru, 8 slots", NOTHING: "echo, shallow 0", TROUPE: "defaults",
                  PROFILED: "defaults, profile, shallow 0", WRONG: "defaults"}
# And those that get the best of the grid.
CHOOSING = {
    DEMAND: ["--predict", "none"],
    PATHS: ["--predict", "eap", PROFILE],
    FATE: ["--predict", "gate"],
    TUNED: ["--predict", "lookahead", PROFILE],
}
CACHES = ("lru", "arc", "echo")
# One of eight layers is what the paper's three of 24 are.
SHALLOW = (0, 1)


def grid(system, quick):
    """The settings to try. Nothing is governed where nothing reads ahead."""
    governed = (True,) if system == DEMAND else (True, False)
    return [Setting(cache, shallow, how) for cache in CACHES for shallow in (SHALLOW[:1] if quick else SHALLOW)
            for how in governed]


def with_settings(chosen):
    """Every system's arguments by name, and its settings in words; `chosen`: a Setting of each of CHOOSING."""
    order = (NO_CACHE, DEMAND, PATHS, FATE, NOTHING, TROUPE, PROFILED, TUNED, WRONG)
    arguments = {**FIXED, **{name: [*CHOOSING[name], *chosen[name].arguments()] for name in CHOOSING}}
    words = {**FIXED_SETTINGS, **{name: str(chosen[name]) for name in CHOOSING}}
    return {name: arguments[name] for name in order}, {name: words[name] for name in order}


def for_prompts(chosen):
    """The same, and two whose cache begins with what the profile says is used most: before the request, which does not pay."""
    arguments, words = with_settings(chosen)
    fill = ["--fill", "on"]
    return ({**arguments, FILLED: [PROFILE, *fill], PATHS_FILLED: [*arguments[PATHS], *fill]},
            {**words, FILLED: "defaults, profile, filled", PATHS_FILLED: f"{words[PATHS]}, filled"})


def with_pairs(arguments, words, share):
    """The same, and two that answer by low copies: this engine as it is, and activation paths with the same share of them."""
    low = ["--low-copy", f"prefill={share}"]
    return ({**arguments, PAIRS: low, PATHS_PAIRS: [*arguments[PATHS], *low]},
            {**words, PAIRS: " ".join(low), PATHS_PAIRS: f"{words[PATHS]}, {' '.join(low)}"})


# What reads ahead nothing first; `smoe` is SMoE's look-ahead.
PREDICTORS = ("none", "eap", "gate", "smoe", "lookahead")


def same_cache(quick):
    """The predictors, and nothing else: one cache, one profile, no shallow layers kept."""
    cache = ["--cache", "echo", "--shallow", "0", PROFILE]
    rows = {predictor: ["--predict", predictor, *cache] for predictor in PREDICTORS}
    if not quick:
        rows |= {f"{predictor}, ungoverned": ["--predict", predictor, "--ungoverned", *cache]
                 for predictor in PREDICTORS[1:]}
    return rows


# With and without the first layer's experts kept, and nothing else: behind each link, with each budget.
KEEPING = {f"shallow {count}": ["--predict", "lookahead", *Setting("echo", count).arguments()] for count in SHALLOW}

# The caches, and nothing else.
SAME_PREDICTOR = {
    str(setting): ["--predict", "lookahead", *setting.arguments()]
    for setting in (*(Setting(cache, 0) for cache in CACHES), Setting("echo", 1), Setting("echo", 0, False))}
