"""Says what is wrong with a wheel.

``python -m audit some.whl`` (this folder's parent on ``PYTHONPATH``) or
``nix run .#audit -- some.whl``. What is asked of a wheel is data, ``policy.json``;
how each thing is found out is code: :mod:`.binaries` for shared objects,
:mod:`.contents` for the files, :mod:`.metadata` for what describes them, and
:mod:`.tools` for the verdicts of auditwheel, twine and check-wheel-contents.
"""
