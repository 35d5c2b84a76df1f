# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Architectures of transformers and diffusers: imported, and run by the backends as by eager.

What cannot be is told in table.tsv, and stays so: an improvement has to change the table as well
(regenerate.py).
"""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

pytest.importorskip("transformers")
pytest.importorskip("diffusers")
torch = pytest.importorskip("torch")
if not hasattr(getattr(torch.export, "Dim", None), "DYNAMIC"):
    pytest.skip("torch.export cannot find the range of an open size", allow_module_level=True)

from trial import AGREES, REFERENCE_TOLERANCE, Trial, read_table, told, trials

pytestmark = pytest.mark.filterwarnings("ignore")
OUTCOMES = read_table()


@pytest.fixture(scope="module", params=trials(), ids=str)
def trial(request):
    """A case, whose export the tests share; given up after them."""
    case = request.param
    return Trial(case.architecture, case.sizes)


@pytest.fixture
def outcome(trial):
    """What the table says of the case."""
    return OUTCOMES[trial.architecture.name, trial.sizes]


def test_the_table_has_every_architecture():
    assert list(OUTCOMES) == [(case.architecture.name, case.sizes) for case in trials()]


def test_most_architectures_pass_everything():
    passed = {name for name, _ in OUTCOMES}
    for (name, _), outcome in OUTCOMES.items():
        if outcome.export != "yes" or outcome.iree != AGREES:
            passed.discard(name)
    assert len(passed) >= 24


def test_export(trial, outcome):
    if outcome.export == "yes":
        assert trial.program.graph.nodes
    else:
        with pytest.raises(RuntimeError) as raised:
            trial.program  # noqa: B018
        assert told(raised.value) == outcome.export


def test_the_reference_backend_agrees_with_eager(trial, outcome):
    if outcome.export != "yes":
        pytest.skip(f"torch.export: {outcome.export}")
    assert trial.on_reference() <= REFERENCE_TOLERANCE[trial.architecture.dtype]


@pytest.mark.iree
def test_iree_does_what_the_table_says(trial, outcome):
    pytest.importorskip("iree.compiler")
    pytest.importorskip("iree.runtime")
    if outcome.export != "yes":
        pytest.skip(f"torch.export: {outcome.export}")
    verdict, error = trial.on_iree()
    assert verdict == outcome.iree, f"largest error {error}"
