"""Controls at the rate at which buddies replace: the same gates, and a knob that is bisected until as many slots a token
are replaced. Pure; substitution_runs.py measures.

The knob of every control is most-share: only slots of at most that share of their token's weight are answered, the light
ones first. That favours the controls, since buddies take what they have a buddy for, light or heavy.
"""
# By name; K is what is left of a token's experts where rho of them go.
CONTROLS = {"random": "random", "best live score": "best-live", "zero fill": "drop", "zero fill, renormalised": "drop:renormalise=1",
            "smaller top-k": "top:keep=K"}
GATES = ("tau", "temperature", "gamma", "beta", "budget")
TOLERANCE = 0.02  # of the rate
MOST_STEPS = 9    # a knob to a five-hundredth


def chain_of(control, buddies, top_k, share):
    """The control's chain behind the gates of a chain of buddies, and within their rho."""
    options = dict(option.split("=") for option in buddies.split(":")[1:])
    rho = options.get("rho", "3")  # as `--substitute help` has it
    gates = [f"{name}={options[name]}" for name in GATES if name in options]
    chain = CONTROLS[control]
    if chain.startswith("top"):  # it knows no rho: what it keeps is all but rho
        chain = chain.replace("keep=K", f"keep={max(1, top_k - int(rho))}")
    else:
        gates.append(f"rho={rho}")
    return ":".join([chain, *gates, f"most-share={share:g}"])


def rate_in(record):
    """Slots a token that did not get their expert."""
    return (record["substituted"] + record["dropped"]) / record["tokens"]


def cost_of_a_slot(record):
    """The KL of each slot replaced: what buddies are chosen by, on a text that is not reported."""
    rate = rate_in(record)
    return record["mean_kl"] / rate if rate > 0 else float("inf")


def is_matched(rate, wanted):
    return abs(rate - wanted) <= TOLERANCE * wanted


def match_rate(rate_of, wanted):
    """The knob in [0, 1] and its rate that are nearest to the one wanted, of those measured; rates do not fall as the knob
    rises. Where all of the knob gives less than wanted, that."""
    low, high = 0.0, 1.0
    nearest = high, rate_of(high)
    if nearest[1] < wanted:
        return nearest
    for _ in range(MOST_STEPS):
        if is_matched(nearest[1], wanted):
            break
        middle = (low + high) / 2
        rate = rate_of(middle)
        if abs(rate - wanted) < abs(nearest[1] - wanted):
            nearest = middle, rate
        low, high = (middle, high) if rate < wanted else (low, middle)
    return nearest
