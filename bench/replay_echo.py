"""What the default policy judges by, chosen on the recordings of one model and played on another's: its own constants were
chosen looking at all of them. Runs nothing itself."""

# By model. What is chosen for one has seen nothing of it.
MODELS = (("intent", "law", "summary"), ("gpt-oss-20b",))
# One after the other, each with the best of those before; all begin with their first.
CHOICES = {"matches": (16, 64, 256), "half_after": (1, 3, 10), "recent_share": (0, 0.25, 1), "recent_kept": (0.8, 0.95, 0.99)}


def text_of(chosen):
    """As `troupe replay --echo` reads it."""
    return ",".join(f"{chosen[name]:g}" for name in ("matches", "recent_share", "recent_kept", "half_after"))


def choose(hits_of):
    """The settings with which `hits_of(settings)` is the highest, one constant after the other."""
    chosen = {name: values[0] for name, values in CHOICES.items()}
    most = hits_of(text_of(chosen))
    for name, values in CHOICES.items():
        for value in values[1:]:
            tried = {**chosen, name: value}
            hits = hits_of(text_of(tried))
            if hits > most:
                most, chosen = hits, tried
    return text_of(chosen)


def held_out(play, sizes):
    """Of each trace the settings that suit the other models best, each layer with its share, and its hit rates with them.
    `play(trace, settings, sharing)` has the hit rate by size."""
    found = {"settings": {}, "hit_rates": {"layer": {}, "global": {}}}
    for names in MODELS:
        others = [name for of in MODELS if of != names for name in of]
        settings = choose(lambda text, others=others: sum(play(name, text, "layer")[size] for name in others for size in sizes))
        for name in names:
            found["settings"][name] = settings
            for sharing, rates in found["hit_rates"].items():
                rates[name] = play(name, settings, sharing)
    return found
