"""The systems that bench/fate compares, and the settings that each may choose from. Runs nothing."""
import typing

# What each is called in tables.
NO_CACHE, DEMAND, PATHS, FATE = "on demand, no cache", "on demand", "activation paths", "Fate"
NOTHING, TROUPE, PROFILED = "troupe, nothing ahead", "troupe", "troupe, profile"
TUNED, WRONG, PAIRS, FILLED = "troupe, tuned", "troupe, wrong guesses", "troupe, pairs", "troupe, filled"

OURS = (FATE, TROUPE, PROFILED, TUNED)
AS_USED = (TROUPE, PROFILED)        # held to the speed of NOTHING, whose cache is the same
COMPARED = (NOTHING, *AS_USED, WRONG)  # by pairs of runs in turn, so these take more rounds

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
    PROFILED: [PROFILE],
    WRONG: ["--predict", "wrong"],
}
FIXED_SETTINGS = {NO_CACHE: "lru, 8 slots", NOTHING: "echo, shallow 0", TROUPE: "defaults",
                  PROFILED: "defaults, profile", WRONG: "defaults"}
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
    """The same, and one whose cache begins with what the profile says is used most: before the request, which does not pay."""
    arguments, words = with_settings(chosen)
    return ({**arguments, FILLED: [PROFILE, "--fill", "on"]}, {**words, FILLED: "defaults, profile, filled"})


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


# The caches, and nothing else.
SAME_PREDICTOR = {
    str(setting): ["--predict", "lookahead", *setting.arguments()]
    for setting in (*(Setting(cache, 0) for cache in CACHES), Setting("echo", 1), Setting("echo", 0, False))}
