"""The papers, reproduced: published baselines and figures. Nothing here carries a privacy promise."""
