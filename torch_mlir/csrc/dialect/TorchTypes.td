// Part of torch-mlir-static, under the Apache License v2.0 with LLVM exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TORCH_MLIR_DIALECT_TORCHTYPES_TD
#define TORCH_MLIR_DIALECT_TORCHTYPES_TD

include "dialect/TorchDialect.td"
include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/OpBase.td"

class Torch_Type<string name, string typeMnemonic, string text> : TypeDef<Torch_Dialect, name> {
  let mnemonic = typeMnemonic;
  let summary = text;
}

//===----------------------------------------------------------------------===//
// Tensors
//===----------------------------------------------------------------------===//

class Torch_AnyTensorType<string name, string typeMnemonic, string text>
    : Torch_Type<name, typeMnemonic, text> {
  let description = [{
    `<[2,?],f32>`: sizes, `?` where unknown, or `*` where even the rank is; then the dtype,
    or `unk`; then, where there is one, an attribute for the sparse layout. Nothing at all
    means `<*,unk>`.
  }];
  let parameters = (ins
    "bool":$ranked,
    ArrayRefParameter<"int64_t", "sizes, ShapedType::kDynamic where unknown">:$shape,
    "::mlir::Type":$dtype,
    "::mlir::Attribute":$sparsity);
  let builders = [
    TypeBuilder<(ins), [{ return $_get($_ctxt, false, ::llvm::ArrayRef<int64_t>(),
                                       ::mlir::Type(), ::mlir::Attribute()); }]>,
    TypeBuilder<(ins "std::optional<::llvm::ArrayRef<int64_t>>":$sizes, "::mlir::Type":$dtype,
                     CArg<"::mlir::Attribute", "{}">:$sparsity), [{
      return $_get($_ctxt, sizes.has_value(), sizes.value_or(::llvm::ArrayRef<int64_t>()), dtype,
                   sparsity);
    }]>,
  ];
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    /// The sizes, or nullopt where the rank is unknown.
    std::optional<::llvm::ArrayRef<int64_t>> getOptionalSizes() const {
      if (getRanked())
        return getShape();
      return std::nullopt;
    }
    bool hasDtype() const { return static_cast<bool>(getDtype()); }
  }];
}

def Torch_NonValueTensorType : Torch_AnyTensorType<"NonValueTensor", "tensor",
    "a tensor in memory that operators may write to, and that may share it with others">;
def Torch_ValueTensorType : Torch_AnyTensorType<"ValueTensor", "vtensor",
    "a tensor that is a value: never written to">;

//===----------------------------------------------------------------------===//
// Scalars and other leaves
//===----------------------------------------------------------------------===//

def Torch_IntType : Torch_Type<"Int", "int", "Python's int, in 64 bits">;
def Torch_FloatType : Torch_Type<"Float", "float", "Python's float">;
def Torch_BoolType : Torch_Type<"Bool", "bool", "Python's bool">;
def Torch_StringType : Torch_Type<"String", "str", "Python's str">;
def Torch_NoneType : Torch_Type<"None", "none", "the type of Python's None">;
def Torch_NumberType : Torch_Type<"Number", "number", "int, float or complex: a schema's Scalar">;
def Torch_DeviceType : Torch_Type<"Device", "Device", "torch.device">;
def Torch_GeneratorType : Torch_Type<"Generator", "Generator", "torch.Generator">;
def Torch_AnyType : Torch_Type<"Any", "any", "any object">;
def Torch_LinearParamsType : Torch_Type<"LinearParams", "LinearParams",
    "packed weights of a quantised linear layer">;

def Torch_QInt8Type : Torch_Type<"QInt8", "qint8", "torch.qint8">;
def Torch_QUInt8Type : Torch_Type<"QUInt8", "quint8", "torch.quint8">;
def Torch_QInt16Type : Torch_Type<"QInt16", "qint16", "a quantised 16-bit integer">;
def Torch_QInt32Type : Torch_Type<"QInt32", "qint32", "torch.qint32">;
def Torch_QUInt4x2Type : Torch_Type<"QUInt4x2", "quint4x2", "torch.quint4x2">;
def Torch_QUInt2x4Type : Torch_Type<"QUInt2x4", "quint2x4", "torch.quint2x4">;

def Torch_NnModuleType : Torch_Type<"NnModule", "nn.Module", "an object of a TorchScript class"> {
  let description = "The string names a `torch.class_type`.";
  let parameters = (ins StringRefParameter<"name of the class">:$className);
  let assemblyFormat = "`<` $className `>`";
}

//===----------------------------------------------------------------------===//
// Containers. What they hold is written without `!torch.`: `list<optional<vtensor>>`.
//===----------------------------------------------------------------------===//

class Torch_ContainerType<string name, string typeMnemonic, string text>
    : Torch_Type<name, typeMnemonic, text> {
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
}

class Torch_UnaryContainerType<string name, string typeMnemonic, string text>
    : Torch_ContainerType<name, typeMnemonic, text> {
  let parameters = (ins "::mlir::Type":$containedType);
  let builders = [TypeBuilderWithInferredContext<(ins "::mlir::Type":$containedType), [{
    return $_get(containedType.getContext(), containedType);
  }]>];
}

def Torch_ListType : Torch_UnaryContainerType<"List", "list", "a list">;
def Torch_OptionalType : Torch_UnaryContainerType<"Optional", "optional", "a value or None">;

class Torch_NaryContainerType<string name, string typeMnemonic, string text>
    : Torch_ContainerType<name, typeMnemonic, text> {
  let parameters = (ins ArrayRefParameter<"::mlir::Type">:$containedTypes);
}

def Torch_TupleType : Torch_NaryContainerType<"Tuple", "tuple", "a tuple">;
def Torch_UnionType : Torch_NaryContainerType<"Union", "union", "one of several types">;

def Torch_DictType : Torch_ContainerType<"Dict", "dict", "a dict"> {
  let parameters = (ins "::mlir::Type":$keyType, "::mlir::Type":$valueType);
}

//===----------------------------------------------------------------------===//
// Constraints
//===----------------------------------------------------------------------===//

def AnyTorchType
    : Type<CPred<"::torch_mlir::torch::isTorchType($_self)">, "a type of the torch dialect">;
def AnyTorchTensorType : AnyTypeOf<[Torch_NonValueTensorType, Torch_ValueTensorType], "a tensor">;

#endif // TORCH_MLIR_DIALECT_TORCHTYPES_TD
