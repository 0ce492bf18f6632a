"""A release on one page, in plain language."""

from __future__ import annotations

from dpmanifolds.releases.release import Release


def summarize_release(release: Release) -> str:
    """One page: what was released, what is promised, how good it is, what it rests on."""
    promise = release.guarantee
    stages = ""
    if release.stages:
        stages = f"  Stages before it: {len(release.stages)}; the promise covers all of them together.\n"
    public = "" if release.public is None else f"  {release.public}\n"
    if release.descent is not None:
        stages += f"  By descent: {release.descent}.\n"
    if release.sites is not None:
        stages += f"  {release.sites}\n"
    noise = "".join(f"  WARNING: {text}.\n" for text in (release.noise_warning, release.edge_warning) if text)
    warning = ""
    if release.reproducible:
        warning = (
            "\nNOT FOR REAL RECORDS\n  It was made with a seed: whoever knows the seed can take the noise away again.\n"
        )
    if release.advisories:
        told = "".join(f"  {text}\n" for text in release.advisories)
        warning += f"\nKNOWN FAULTS OF VERSION {release.version} (docs/security.md)\n{told}"
    return (
        f"What was released\n"
        f"  The private {release.statistic}{release.counted} on {release.manifold!r}.\n"
        f"{stages}"
        f"\nThe promise\n"
        f"  {release.promise}, {promise.neighbours}.\n"
        f"  Someone who knows everyone else's record, and wonders which of two values one {promise.unit} has, guesses\n"
        f"  right with a probability of at most {promise.best_guess:.1%} after seeing this release; without it, 50 %.\n"
        f"  It holds whatever else that someone knows or will learn, and whatever is computed from the release.\n"
        f"\nHow good it is\n"
        f"  Distance to the answer without privacy: {release.error_statement}.\n"
        f"{noise}{public}"
        f"  {release.clipping_statement}\n"
        f"\nWhat it rests on\n"
        f"  Mechanism: {release.mechanism}, sigma {release.sigma:.6g} ({release.reason}).\n"
        f"  Theorem: {release.theorem}.\n"
        f"  Sensitivity (how far one {promise.unit} can move the answer before noise): "
        f"{float(release.sensitivity):.6g}, {release.sensitivity.reason}.\n"
        f"  Numerics: {release.numerics_statement}.\n"
        f"  The centre, the radius, n and the budget must have been chosen without looking at the records.\n"
        f"{warning}"
    )
