// Part of torch-mlir-static, under the Apache License v2.0 with LLVM exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Stands in for torch/csrc/jit/runtime/operator.cpp: what that says about operators, without its
// registry, whose place Schemas.cpp takes. Both lists of operators that alias analysis treats
// specially have to be of the same source.

#define registerOperator unusedRegisterOperator
#define deregisterOperator unusedDeregisterOperator
#define getAllOperators unusedGetAllOperators
#define getAllOperatorsFor unusedGetAllOperatorsFor
#define findOperatorFor unusedFindOperatorFor
#define findSimilarOperators unusedFindSimilarOperators
#define getOperatorForLiteral unusedGetOperatorForLiteral

#include <torch/csrc/jit/runtime/operator.cpp>
