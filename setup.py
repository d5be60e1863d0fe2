"""The source distribution, which has symbolic links where a checkout has them: hardware, models and flow lie at the top
level, and in ``actcodec`` a link to each, so that whatever looks for a module finds it where its name says."""

import os

from setuptools import setup
from setuptools.command.sdist import sdist


class Sdist(sdist):
    def make_release_tree(self, base_dir, files):
        super().make_release_tree(base_dir, files)
        for tree in ("rtl", "golden", "synth"):
            os.symlink(f"../{tree}", f"{base_dir}/actcodec/{tree}")


setup(cmdclass={"sdist": Sdist})
