"""Made-up EEG: eight channels in µV; trials of one private subject, new ones of theirs, and five public subjects."""

import numpy as np

CHANNELS, SAMPLES = 8, 150
rng = np.random.default_rng(0)
common = rng.standard_normal((CHANNELS, CHANNELS)) / np.sqrt(CHANNELS)


def record(trials):
    """Trials (n, channels, samples) of one subject, and which hand was imagined."""
    hands = rng.integers(0, 2, trials)
    logs = 0.5 * rng.standard_normal((trials, CHANNELS))
    logs[:, :2] += 0.45 * np.outer(2 * hands - 1, [1.0, -1.0])
    mixing = 10.0 * common @ (np.eye(CHANNELS) + 0.5 * rng.standard_normal((CHANNELS, CHANNELS)) / np.sqrt(CHANNELS))
    return mixing @ (rng.standard_normal((trials, CHANNELS, SAMPLES)) * np.exp(logs / 2)[..., None]), hands


public = [record(300) for _ in range(5)]
trials, hands = record(840)
np.savez("subject.npz", trials=trials[:240], hands=hands[:240])
np.savez("new.npz", trials=trials[240:], hands=hands[240:])
np.savez("public.npz", trials=[one for one, _ in public], hands=[one for _, one in public])
