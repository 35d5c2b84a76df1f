# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A module's graph as a page for browsers."""
