"""pyRiemann's pipeline with its classifier swapped for the private one."""

import numpy as np
from pyriemann.classification import MDM
from pyriemann.estimation import Covariances
from sklearn.pipeline import make_pipeline

import dpmanifolds as dpm

subject, new = np.load("subject.npz"), np.load("new.npz")
ball = dpm.Ball.typical(dpm.SPD(8), "eeg", unit="µV²")
for name, classifier in (("pyRiemann's MDM", MDM()), ("PrivateMDM, ε = 1", dpm.PrivateMDM(ball, dpm.PureDP(1.0)))):
    pipeline = make_pipeline(Covariances("oas"), classifier).fit(subject["trials"], subject["hands"])
    print(f"{name}: {np.mean(pipeline.predict(new['trials']) == new['hands']):.0%} of new trials right")
