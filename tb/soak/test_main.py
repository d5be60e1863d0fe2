"""The command: options that exclude each other."""

import pytest

from tb.soak.__main__ import main


@pytest.mark.parametrize("options, reason", [
    ("--few --queue", "not allowed with"), ("--sweep --modes all", "not allowed with"),
    ("--sweep --seed 3", "neither --seed nor --renew"), ("--seed 3.1 --renew", "one run"),
    ("--seed 3.1 --few", "one run")])
def test_options_that_exclude_each_other_are_refused(options, reason, capsys):
    with pytest.raises(SystemExit) as error:
        main(options.split())
    assert error.value.code == 2
    assert reason in capsys.readouterr().err
