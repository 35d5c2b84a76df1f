// Part of torch-mlir-static, under the Apache License v2.0 with LLVM exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TORCH_MLIR_DIALECT_TORCHDIALECT_TD
#define TORCH_MLIR_DIALECT_TORCHDIALECT_TD

include "mlir/IR/DialectBase.td"

def Torch_Dialect : Dialect {
  let name = "torch";
  let cppNamespace = "::torch_mlir::torch";
  let summary = "PyTorch programs";
  let description = [{
    Types and operators of PyTorch: `torch.fx` graphs, `torch.export` programs and
    TorchScript. Operators that say something about a program's structure (constants,
    control flow, objects, slots) are defined in TorchOps.td. Every operator with a schema
    (`torch.aten.add.Tensor`) is registered from the operator table, see OperatorTable.h.
  }];

  let hasConstantMaterializer = 1;
  let hasRegionArgAttrVerify = 1;

  let extraClassDeclaration = [{
    /// Name of the argument attribute that bounds a tensor argument's type.
    static constexpr ::llvm::StringLiteral kTypeBoundAttr = "torch.type_bound";

    ::mlir::Type parseType(::mlir::DialectAsmParser &parser) const override;
    void printType(::mlir::Type type, ::mlir::DialectAsmPrinter &printer) const override;

    /// Operators that don't exist end here: the message says what does exist.
    std::optional<ParseOpHook> getParseOperationHook(::llvm::StringRef opName) const override;

  private:
    void registerTypes();
    void registerOperatorTable();
  public:
  }];
}

#endif // TORCH_MLIR_DIALECT_TORCHDIALECT_TD
