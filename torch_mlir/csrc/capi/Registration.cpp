// Part of torch-mlir-static, under the Apache License v2.0 with LLVM exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "capi/Registration.h"

#include "dialect/TorchDialect.h"

#include "mlir/CAPI/IR.h"
#include "mlir/CAPI/Support.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/IR/ValueBoundsOpInterfaceImpl.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlow.h"
#include "mlir/Dialect/Func/Extensions/InlinerExtension.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Linalg/IR/ValueBoundsOpInterfaceImpl.h"
#include "mlir/Dialect/Linalg/Passes.h"
#include "mlir/Dialect/Linalg/Transforms/RuntimeOpVerification.h"
#include "mlir/Dialect/Linalg/Transforms/SubsetInsertionOpInterfaceImpl.h"
#include "mlir/Dialect/Linalg/Transforms/TilingInterfaceImpl.h"
#include "mlir/Dialect/MLProgram/IR/MLProgram.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRefMemorySlot.h"
#include "mlir/Dialect/MemRef/IR/ValueBoundsOpInterfaceImpl.h"
#include "mlir/Dialect/MemRef/Transforms/Passes.h"
#include "mlir/Dialect/MemRef/Transforms/RuntimeOpVerification.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/SCF/IR/ValueBoundsOpInterfaceImpl.h"
#include "mlir/Dialect/SparseTensor/IR/SparseTensor.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Tensor/IR/TensorInferTypeOpInterfaceImpl.h"
#include "mlir/Dialect/Tensor/IR/TensorTilingInterfaceImpl.h"
#include "mlir/Dialect/Tensor/IR/ValueBoundsOpInterfaceImpl.h"
#include "mlir/Dialect/Tensor/Transforms/RuntimeOpVerification.h"
#include "mlir/Dialect/Tensor/Transforms/SubsetInsertionOpInterfaceImpl.h"
#include "mlir/Transforms/Passes.h"

using namespace mlir;

void torchMlirRegisterAllDialects(MlirDialectRegistry cRegistry) {
  DialectRegistry &registry = *unwrap(cRegistry);

  // builtin is in every context.
  registry.insert<arith::ArithDialect, cf::ControlFlowDialect, func::FuncDialect,
                  linalg::LinalgDialect, math::MathDialect, ml_program::MLProgramDialect,
                  scf::SCFDialect, tensor::TensorDialect, torch_mlir::torch::TorchDialect>();
  // The attribute that says how the elements of a sparse torch tensor are stored.
  registry.insert<sparse_tensor::SparseTensorDialect>();

  // The dialects above promise these interfaces without bringing them: MLIR
  // aborts where an operation is asked for a promised one that isn't here.
  // Each is one that a pass registered below, or canonicalisation, asks for.
  func::registerInlinerExtension(registry);
  tensor::registerInferTypeOpInterfaceExternalModels(registry);

  tensor::registerTilingInterfaceExternalModels(registry);
  linalg::registerTilingInterfaceExternalModels(registry);

  tensor::registerSubsetOpInterfaceExternalModels(registry);
  linalg::registerSubsetOpInterfaceExternalModels(registry);

  arith::registerValueBoundsOpInterfaceExternalModels(registry);
  linalg::registerValueBoundsOpInterfaceExternalModels(registry);
  memref::registerValueBoundsOpInterfaceExternalModels(registry);
  scf::registerValueBoundsOpInterfaceExternalModels(registry);
  tensor::registerValueBoundsOpInterfaceExternalModels(registry);

  linalg::registerRuntimeVerifiableOpInterfaceExternalModels(registry);
  memref::registerRuntimeVerifiableOpInterfaceExternalModels(registry);
  tensor::registerRuntimeVerifiableOpInterfaceExternalModels(registry);

  // linalg lowers to memref's operations.
  memref::registerMemorySlotExternalModels(registry);
}

void torchMlirRegisterAllPasses() {
  registerTransformsPasses();
  registerLinalgPasses();

  // Shapes of tensors in terms of the operands they come from.
  memref::registerReifyResultShapesPass();
  memref::registerResolveRankedShapeTypeResultDimsPass();
  memref::registerResolveShapedTypeResultDimsPass();
}

void torchMlirForEachDialectName(MlirDialectRegistry registry, MlirStringCallback callback,
                                 void *userData) {
  for (StringRef name : unwrap(registry)->getDialectNames())
    callback(wrap(name), userData);
}
