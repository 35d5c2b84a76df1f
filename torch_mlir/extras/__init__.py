# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Names under which programs that were written for upstream torch-mlir find the importers."""
