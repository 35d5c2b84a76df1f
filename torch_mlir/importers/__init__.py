# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Importers: a PyTorch program in, Torch-dialect MLIR out, built through `torch_mlir.ir`.

What reads an FX graph is cut by concept, one to a module: types and dtypes, literals,
constants, locations, symbolic shapes, operator signatures, arguments, nodes, programs.
"""
