# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""TorchScript: archives, and modules that PyTorch scripts or traces.

The work is done by a native importer, which reads archives itself and needs no PyTorch. Modules
in memory are saved by the PyTorch that they belong to, and imported from what it wrote.
"""
