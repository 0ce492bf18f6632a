"""The same, with five public subjects who say which filters to take, where records live and what to expect."""

import numpy as np
from pyriemann.classification import MDM
from pyriemann.estimation import Covariances

import dpmanifolds as dpm

covariances = Covariances("oas")
subject, new, files = np.load("subject.npz"), np.load("new.npz"), np.load("public.npz")
public = [(covariances.transform(one), hands) for one, hands in zip(files["trials"], files["hands"], strict=True)]
records, fresh = covariances.transform(subject["trials"]), covariances.transform(new["trials"])

alone = MDM().fit(np.concatenate([one for one, _ in public]), np.concatenate([hands for _, hands in public]))
print(f"public subjects alone: {np.mean(alone.predict(fresh) == new['hands']):.0%} of new trials right")
for epsilon in (0.3, 1.0):
    model = dpm.PrivateTangentClassifier(None, dpm.ApproxDP(epsilon, 1e-5), classes=[0, 1], public=public)
    model.fit(records, subject["hands"])
    right = np.mean(model.predict(fresh) == new["hands"])
    print(f"ε = {epsilon:g}: {right:.0%} right; keeps ε = {model.guarantee_.epsilon(1e-5):.3g} at δ = 1e−5")
