"""The first block of the README, with the records of the sample table."""

import dpmanifolds as dpm

space = dpm.SPD(3)
ball = dpm.Ball.typical(space, "diffusion-tensor", unit="mm²/s")
records = dpm.read_points("tensors.csv", layout="upper", manifold=space)
release = dpm.private_mean(records, ball, dpm.PureDP(1.0))
print(release.value)
print(release.summary())
