"""The league: private means against everyone, at the same promise and with the same public knowledge."""
