"""Where the packages lie: the wheel installs ``actcodec`` alone; hardware, models and flow stay at the top level."""

from setuptools import find_packages, setup

TREES = ("rtl", "golden", "synth")
inner = [f"actcodec.{package}" for tree in TREES for package in find_packages(include=[tree, f"{tree}.*"])]
setup(packages=[*find_packages(include=["actcodec", "actcodec.*"]), *inner],
      package_dir={f"actcodec.{tree}": tree for tree in TREES})
